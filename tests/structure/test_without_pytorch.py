"""An installation without PyTorch imports no module that imports PyTorch at its top."""

import ast
from functools import cache
from pathlib import Path

import pytest

import translucid

SOURCE = Path(translucid.__file__).parent
ROOTS = ["cli.main", "cli.serve", "api.translator", "api.pivot_translator", "api.segment_translator", "serving.app"]
ROOTS += ["serving.catalog", "jobs.cluster", "jobs.documents", "lessons.beside", "memory.opening"]
"""What the runtime installation imports; the commands import the rest when they need it."""


def module_file(name: str) -> Path | None:
    """Return the file of a module of ours, if there is one of that name."""
    path = SOURCE.joinpath(*name.split(".")[1:])
    files = [path.with_suffix(".py"), path / "__init__.py"]
    return next((file for file in files if file.is_file()), None) if name.startswith("translucid.") else None


@cache
def imported(name: str) -> frozenset[str]:
    """Return the modules that a module imports at its top, not only for type checkers."""
    names = set()
    for node in ast.parse(module_file(name).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    parents = {name.rpartition(".")[0] for name in names}  # the `__init__.py` of a package runs first
    return frozenset(names | parents)


def import_path_to_pytorch(root: str) -> list[str]:
    """Return the chain of imports from a module to PyTorch; none if there is none."""
    waiting, visited = [[root]], {root}
    while waiting:
        chain = waiting.pop()
        for name in imported(chain[-1]):
            if name.split(".")[0] == "torch":
                return [*chain, name]
            if name not in visited and module_file(name):
                visited.add(name)
                waiting.append([*chain, name])
    return []


@pytest.mark.parametrize("root", ROOTS)
def test_the_runtime_does_not_import_pytorch(root):
    assert import_path_to_pytorch(f"translucid.{root}") == []


def test_modules_that_import_pytorch_are_recognized():
    assert import_path_to_pytorch("translucid.models.transformer")[-1].startswith("torch")
    assert import_path_to_pytorch("translucid.training.train")
