"""Rules of the project: what tests may import, and what workflows may do."""

import ast
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
THIS = Path(__file__)
BENCHMARKS = "benchmarks"


def uses_of_benchmarks(source: str) -> list[str]:
    """Return the imports from benchmarks/ in a source file, and the strings that name it as a module or a path."""
    uses: list[str] = []
    if BENCHMARKS not in source:
        return uses
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names if not node.module)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            words = node.value.replace("/", " ").replace(".", " ").split()
            is_page = words[1:] == ["md"]  # docs/benchmarks.md
            if (words[:1] == [BENCHMARKS] and not is_page) or f"/{BENCHMARKS}" in node.value:
                uses.append(node.value)
            continue
        else:
            continue
        uses += [name for name in names if name.split(".")[0] == BENCHMARKS]
    return uses


def test_tests_need_no_benchmark():
    """Only benchmarks may use tests (`tests.probes`); the tests of benchmarks are in benchmarks/ themselves."""
    # These files name the folder, but only read its text or record the cost of its tests.
    readers = {THIS, THIS.with_name("test_vocabulary.py"), ROOT / "tests" / "costs.py"}
    by_file = {
        str(file.relative_to(ROOT)): uses_of_benchmarks(file.read_text()) for file in TESTS if file not in readers
    }
    assert not {file: uses for file, uses in by_file.items() if uses}


def test_uses_of_benchmarks_are_detected():
    for source in (
        "import benchmarks.company",
        "def f():\n    from benchmarks.reliability import siege",
        "from benchmarks import company",
        "from .. import benchmarks",
        "ROOT / 'benchmarks' / 'company.py'",
        "load('benchmarks.company')",
        "f'benchmarks.reliability.{name}'",
        "Path('../benchmarks/company.py')",
    ):
        assert uses_of_benchmarks(source), source
    assert not uses_of_benchmarks('"""Benchmark\nbenchmarks"""\nimport translucid.benchmark')


def test_benchmarks_import_what_there_is():
    """They run rarely, and neither tests nor mypy load them."""
    missing = []
    for file in sorted((ROOT / BENCHMARKS).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and module_file(node.module):
                names = names_in(module_file(node.module))
                for alias in node.names:
                    if alias.name not in names and not module_file(f"{node.module}.{alias.name}"):
                        missing.append(f"{file.relative_to(ROOT)}: {node.module}.{alias.name}")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tests.", "translucid.")):
                missing.append(f"{file.relative_to(ROOT)}: {node.module}")
    assert not missing


def module_file(module: str) -> Path | None:
    """Return the file of a module of this project."""
    root = ROOT / "src" if module.startswith("translucid") else ROOT
    path = root.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return file
    return None


@cache
def names_in(file: Path) -> set[str]:
    """Return the names that a module defines or imports, or that its stub lists."""
    names = set()
    stub = file.with_suffix(".pyi")
    for node in ast.walk(ast.parse((stub if stub.exists() else file).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def test_ci_runs_the_commands_of_the_readme():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    commands = {step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step}
    beginning = (ROOT / "README.md").read_text().split("```")[1]
    promised = {line.split("  ")[0] for line in beginning.splitlines() if line.startswith("make ")}
    commands = {command for command in commands if command.startswith("make ")}
    others = {"make check", "make quick", "make test-trackers", "make test-runtime", "make test-lowest"}
    assert commands == promised | others


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WRITING = {
    "docs": {"deploy": {"pages", "id-token"}},
    "release": {"draft": {"contents"}},
    "publish": {"pypi": {"id-token"}, "image": {"packages"}, "manifest": {"packages"}},
}
"""The write permissions of jobs, by workflow; all other jobs may only read."""
FOREIGN = {"pypa/gh-action-pypi-publish@release/v1"}
"""Actions that are not GitHub's."""


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_may_only_read(file):
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    writing, used = {}, set()
    for name, job in workflow["jobs"].items():
        kinds = {kind for kind, access in job.get("permissions", {}).items() if access == "write"}
        if kinds:
            writing[name] = kinds
        used |= {step["uses"] for step in job.get("steps", []) if "uses" in step}
    assert writing == WRITING.get(file.stem, {})
    for name in used - FOREIGN:
        # A tag can be moved to other code, a commit can't.
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_no_job_of_a_workflow_replaces_another(file):
    # PyYAML keeps the last of several equal keys; GitHub rejects the file.
    root = yaml.compose(file.read_text())
    jobs = next(value for key, value in root.value if key.value == "jobs")
    for mapping in (root, jobs, *(job for _, job in jobs.value)):
        keys = [key.value for key, _ in mapping.value]
        assert len(keys) == len(set(keys))


def test_untrusted_texts_are_never_part_of_a_script():
    """The shell would execute a title or branch name in `${{ … }}`, so scripts have to read it from a variable."""
    for file in WORKFLOWS:
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            for step in job.get("steps", []):
                assert "${{" not in step.get("run", ""), f"{file.name}: {step['run']}"


@pytest.mark.parametrize(
    ("environment", "code"), [({}, 0), ({"GITHUB_ACTIONS": "true"}, 2)], ids=["contributor", "GitHub"]
)
def test_without_node_the_check_of_javascript_is_skipped_but_fails_on_github(tmp_path, environment, code):
    for name in ("Makefile", "package.json", "package-lock.json"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho no such package >&2; exit 1\n")
    python.chmod(0o755)
    environment["PATH"] = str(tmp_path / "empty")
    command = [shutil.which("make"), "javascript"]
    completed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert completed.stdout == "NO NODE PACKAGES: JavaScript is not checked\n"
    assert completed.returncode == code
    assert bool(completed.stderr) == bool(code)


def test_the_types_of_the_pages_elements_are_those_of_their_tags():
    """`$("source")` has the type that page.d.ts lists, and an id that it does not list is a type error."""
    page = ROOT / "src" / "translucid" / "serving" / "page"
    tags = {"a": "Anchor", "ul": "", "ol": "", "textarea": "TextArea"}
    typed = {"Anchor", "Button", "Canvas", "Details", "Dialog", "Form", "Input", "Progress", "Select", "TextArea"}
    types = {}
    for node in BeautifulSoup((page / "index.html").read_text(encoding="utf-8"), "html.parser").find_all(id=True):
        kind = tags.get(node.name, node.name.title())
        types[node["id"]] = f"HTML{kind if kind in typed else ''}Element"
    # suggestion_form.js creates these.
    types |= {"suggestion-text": "HTMLTextAreaElement", "suggestion-form": "HTMLFormElement"}
    types["suggestion-subject"] = "HTMLElement"
    declared = {}
    for ids, kind in re.findall(r"Record<([^,]*),\s*(\w+)", (page / "page.d.ts").read_text(encoding="utf-8")):
        declared |= dict.fromkeys(re.findall(r'"([\w-]+)"', ids), kind)
    assert declared == {name: types.get(name) for name in declared}
    assert len(declared) > 100
