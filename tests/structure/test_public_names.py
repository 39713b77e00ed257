"""Public packages: the names that they export, and the examples, which import only these."""

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUBS = sorted((ROOT / "src").rglob("__init__.pyi"))
PACKAGES = [".".join(stub.parent.relative_to(ROOT / "src").parts) for stub in STUBS]
IMPORT = re.compile(r"^from (\S+) import (\w+) as (\w+)$")
FROM = re.compile(r"\bfrom ((?:translucid|bitext)[.\w]*) import ([\w, ]+)")
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
SCRIPTS = (ROOT / "src").rglob("*.js")  # the Python code that the page shows


def test_the_packages_that_the_documentation_names_have_public_names():
    names = "models data decoding training evaluation inspection"
    assert {"bitext", "translucid", *(f"translucid.{name}" for name in names.split())} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_those_of_the_stub(package):
    stub = STUBS[PACKAGES.index(package)]
    lines = [line for line in stub.read_text(encoding="utf-8").splitlines() if line.startswith("from ")]
    module = importlib.import_module(package)
    for inner in pkgutil.iter_modules(module.__path__):
        if inner.name != "__main__":
            importlib.import_module(f"{package}.{inner.name}")
    listed = []
    for line in lines:
        source, name, alias = IMPORT.fullmatch(line).groups()
        value = getattr(module, name)
        assert name == alias and source.startswith(f"{package}.")
        # A module of that name would hide the public one as soon as it is imported.
        assert value is getattr(importlib.import_module(source), name) and not isinstance(value, ModuleType), line
        listed.append(name)
    assert sorted(listed) == module.__all__ and set(listed) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_public_packages_import_nothing_until_a_name_is_used():
    code = f"import sys, {', '.join(PACKAGES)}; print([m for m in ('torch', 'numpy', 'typer') if m in sys.modules])"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "[]\n"


def code_of(file):
    """Return the text of a file that may import; that of a notebook is its cells."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def private_imports(text):
    """Return the imports of a text that are not of public names of packages."""
    text = re.sub(r"\$\{.*?\}", "", text)  # what a script fills in
    private = []
    for match in FROM.finditer(text):
        module = importlib.import_module(match[1])
        names = [name.split(" as ")[0].strip() for name in match[2].split(",")]
        public = getattr(module, "__all__", ())
        private += [f"{match[1]}: {name}" for name in names if name and name not in public]
    private += re.findall(r"\bimport (?:translucid|bitext)\.[.\w]+", text)
    return private


@pytest.mark.parametrize("file", sorted([*PAGES, *SCRIPTS]), ids=lambda file: file.name)
def test_examples_import_only_public_names(file):
    assert not private_imports(code_of(file))


def test_private_imports_are_detected():
    for line in (
        "from translucid.models.transformer import Transformer",
        "from translucid.models import EncoderBlock",
        "from translucid import models",
        "from bitext import Pair, words",
        "import translucid.models",
    ):
        assert private_imports(f"x = 1\n{line}\n"), line
    assert not private_imports("from bitext import Pair\nfrom translucid.models import ${more}Transformer, build_model")


def test_functions_that_pages_name_with_their_module_exist():
    folders = "|".join(folder.name for folder in (ROOT / "src" / "translucid").iterdir() if folder.is_dir())
    calls = re.compile(rf"`(?:translucid\.)?((?:{folders})(?:\.\w+)*)\.(\w+)\(")
    names = {match for page in PAGES for match in calls.findall(code_of(page))}
    for module, name in names:
        assert hasattr(importlib.import_module(f"translucid.{module}"), name), f"{module}.{name}"
    assert len(names) > 2
