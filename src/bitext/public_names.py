"""The public names of a package, imported when they are first used: PyTorch takes seconds, and `--help` needs none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def public_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package (PEP 562).

    The public names are those of the package's stub `__init__.pyi`, which type checkers read: each line is
    `from MODULE import NAME as NAME`.
    """

    @cache
    def modules() -> dict[str, str]:
        """Return the module of each name."""
        import re
        from importlib.resources import files

        stub = files(package).joinpath("__init__.pyi").read_text(encoding="utf-8")
        lines = re.findall(r"^from (\S+) import (\w+) as \w+$", stub, flags=re.MULTILINE)
        return {name: module for module, name in lines}

    def get(name: str) -> Any:
        """Import a public name."""
        if name == "__all__":
            return sorted(modules())
        # Python asks for its own names, such as `__path__`, of every module.
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules()[name]), name)

    return get, lambda: sorted(modules())
