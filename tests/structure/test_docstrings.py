"""The examples in docstrings give the results that they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"


def modules_with_examples() -> list[str]:
    """Return the names of the modules whose docstrings have examples."""
    names = []
    for file in sorted(SOURCE.rglob("*.py")):
        if ">>> " in file.read_text(encoding="utf-8"):
            names.append(".".join(file.relative_to(SOURCE).with_suffix("").parts))
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_are_correct(name):
    results = doctest.testmod(import_module(name.removesuffix(".__init__")))
    assert results.attempted and not results.failed
