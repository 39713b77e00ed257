"""Packages: the wheel contains all that the commands need, the container is secure, the citation is valid."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from hatchling.build import build_wheel
from packaging.requirements import Requirement
from packaging.version import Version

import translucid

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "translucid"
REPOSITORY = "https://example.org/somebody/translucid"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The unpacked wheel, in a folder without any other file of this project."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(ROOT)
        patched.setenv("REPOSITORY_URL", REPOSITORY)
        name = build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def files(folder):
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}


def test_the_wheel_holds_every_file_of_the_package_and_the_recipes(wheel):
    recipes = {f"recipes/{name}" for name in files(ROOT / "recipes")}
    declarations = {name for name in files(SOURCE) if name.endswith(".d.ts")}  # for the check of JavaScript
    assert declarations
    assert files(wheel / "translucid") == (files(SOURCE) | recipes) - declarations
    assert files(wheel / "bitext") == files(SOURCE.parent / "bitext")
    assert len(recipes) >= 6
    kinds = {Path(name).suffix for name in files(wheel / "translucid")}
    assert {".py", ".html", ".css", ".js", ".yaml", ".typed"} <= kinds


def test_the_wheel_contains_nothing_else(wheel):
    assert {path.name for path in wheel.iterdir()} == {
        "bitext",
        "translucid",
        f"translucid-{translucid.__version__}.dist-info",
    }


def test_commands_find_the_recipes_with_nothing_but_the_wheel(wheel, tmp_path):
    code = (
        "import translucid; print(translucid.__file__); from translucid.cli.main import run; "
        "run(['models']); run(['train', '--help'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(wheel)}
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    first, *listed = completed.stdout.splitlines()
    assert first == f"{wheel / 'translucid' / '__init__.py'}", completed.stderr
    for recipe in (ROOT / "recipes").glob("*.yaml"):
        assert any(line.startswith(f"{recipe.stem} ") for line in listed), recipe


def instructions():
    """Return the Dockerfile with one instruction per line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    return [line.split(maxsplit=1) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line]


def test_the_docker_context_contains_the_copied_files():
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()[0] == "*"
    copied = [w for what, rest in instructions() if what == "COPY" and "--from" not in rest for w in rest.split()[:-1]]
    assert ignored and copied
    for name in copied:
        assert (ROOT / name).exists()
        assert any(fnmatch.fnmatch(name, pattern) for pattern in let_in)
    build = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert build["services"]["translucid"]["build"] == "."


def test_the_container_runs_without_privileges_and_read_only():
    users = [rest for what, rest in instructions() if what == "USER"]
    assert users and all(user.split(":")[0].isdecimal() and int(user.split(":")[0]) > 0 for user in users)
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["translucid"]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert all(volume.endswith(":ro") for volume in service["volumes"] if volume.startswith("."))
    # A page in a browser of the same machine reaches the published port, also by a name of its own.
    assert service["environment"]["TRANSLUCID_ORIGINS"] == "${ORIGINS:-none}"
    assert "*" not in service["environment"]["TRANSLUCID_HOSTS"]


def test_the_container_asks_for_training_until_there_is_a_model(tmp_path):
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    shell, option, script = services["translucid"]["entrypoint"]
    run, programs = tmp_path / "runs" / "demo", tmp_path / "bin"
    programs.mkdir()
    for name, does in (("sleep", f"mkdir -p {run}; touch {run}/model.safetensors"), ("translucid", 'echo "done: $*"')):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TRANSLUCID_RUNS": str(run)}
    command = [shell, option, script.replace("$$", "$")]
    completed = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    assert (completed.returncode, completed.stdout) == (0, "done: serve\n")
    assert "Train first: docker compose run --rm train" in completed.stderr and completed.stderr.count("\n") == 1
    assert services["train"]["command"].split()[:2] == ["demo", "--out"]
    assert services["train"]["volumes"] == ["./runs:/runs"]


def test_the_health_check_is_a_command_that_parses():
    (check,) = (rest for what, rest in instructions() if what == "HEALTHCHECK")
    command = json.loads(check.split("CMD", 1)[1])
    compile(command[2], "health", "exec")
    assert command[:2] == ["python", "-c"] and "/health" in command[2]


def test_the_citation_names_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == translucid.__version__
    assert cited["license"] == "Apache-2.0"


def test_the_page_on_pypi_has_absolute_links_to_existing_files(wheel):
    (folder,) = wheel.glob("*.dist-info")
    page = message_from_string((folder / "METADATA").read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", page.get_payload())
    assert len(links) > 20 and all(link.startswith(("https://", "#")) for link in links)
    addresses = dict(address.split(", ") for address in page.get_all("Project-URL"))
    assert {"Source", "Issues", "Documentation", "Changelog"} <= set(addresses)
    paths = [link.partition("#")[0].split("/", 7) for link in [*links, *addresses.values()] if "/HEAD/" in link]
    for *repository, view, _, path in paths:
        assert "/".join(repository) == REPOSITORY and (ROOT / path).is_file(), path
        assert view == ("raw" if Path(path).suffix in (".gif", ".png") else "blob")
    assert any("Python :: 3.11" in classifier for classifier in page.get_all("Classifier"))


def test_a_development_version_is_newer_than_the_last_release():
    """pip installs a wheel only over one of a lower version."""
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    releases = [Version(heading) for heading in headings if heading != "Unreleased"]
    version = Version(translucid.__version__)
    assert version.is_devrelease is (headings[0] == "Unreleased")
    assert version > max(releases) if version.is_devrelease else version == max(releases)


def test_make_wheel_raises_the_number_of_a_development_version():
    (script,) = re.findall(r"sed -i\S* -E '(s/.+?/)'", (ROOT / "Makefile").read_text(encoding="utf-8"))
    script = script.replace("$(COMMITS)", "905")
    changed = subprocess.run(
        ["sed", "-E", script], input='__version__ = "0.2.0.dev0"\n', capture_output=True, text=True, check=True
    )
    assert changed.stdout == '__version__ = "0.2.0.dev905"\n'


@pytest.mark.parametrize(("tag", "notes"), [("v1.2.0", "## 1.2.0 – 2030\nnew\n"), ("v0.1.0", "## 0.1.0\nold\n")])
def test_release_notes_are_the_section_of_the_tag(tag, notes, tmp_path):
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    script = workflow["jobs"]["draft"]["steps"][-1]["run"].partition("gh release")[0]
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n## Unreleased\nnext\n## 1.2.0 – 2030\nnew\n## 0.1.0\nold\n")
    run = {"cwd": tmp_path, "capture_output": True, "text": True}
    environment = {**os.environ, "GITHUB_REF_NAME": tag}
    assert subprocess.run(["bash", "-e", "-c", script], env=environment, **run).returncode == 0
    assert (tmp_path / "notes.md").read_text() == notes
    environment["GITHUB_REF_NAME"] = "v1.2"
    refused = subprocess.run(["bash", "-e", "-c", script], env=environment, **run)
    assert refused.returncode == 1 and "no section '## 1.2'" in refused.stdout


def test_the_table_of_licenses_has_every_package_with_its_license():
    page = (ROOT / "docs/licenses.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = project["dependencies"].copy()
    for extra in set(extras) - {"dev", "docs", "mutation", "all"}:
        named += extras[extra]
    for name in {Requirement(line).name for line in named}:
        (row,) = [line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[2]]
        try:
            license_of_package = metadata.metadata(name).get("License-Expression") or ""
        except metadata.PackageNotFoundError:
            continue
        if re.fullmatch(r"[\w.-]+", license_of_package):
            assert license_of_package in row, name


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze rates the unit")
def test_the_documented_service_is_as_little_exposed_as_the_page_says(tmp_path):
    page = (ROOT / "docs/deployment.md").read_text(encoding="utf-8")
    unit = tmp_path / "translucid.service"
    unit.write_text(re.search(r"```ini\n(.*?)```", page, re.DOTALL)[1])
    command = ["systemd-analyze", "security", "--offline=true", str(unit)]
    rated = subprocess.run(command, capture_output=True, text=True)
    if "Overall exposure" not in rated.stdout:
        pytest.skip("this systemd-analyze rates no file")
    exposure = re.search(r"Overall exposure level.*: ([\d.]+)", rated.stdout)[1]
    assert f"exposure of this unit at {exposure} of 10" in page and float(exposure) < 2
