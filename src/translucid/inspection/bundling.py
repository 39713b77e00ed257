"""The scripts of interactive views: several JavaScript modules as one script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

WEB = Path(str(files("translucid.inspection") / "web"))
"""The JavaScript modules and style sheets of the interactive views."""
_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)


def bundle(entry: str, folders: Sequence[Path], epilogue: str = "") -> str:
    """Return the module `entry` and all modules that it imports as one script.

    Each module becomes a function, so that its names stay its own. Only two forms are supported: an import on one line,
    `import { a, b } from "./c.js";`, and an export before a function, a constant or a class.

    Args:
        entry: the file name of the module.
        folders: the folders with modules, searched in this order.
        epilogue: code that runs after the modules, in which `modules["a.js"]` holds the exports of a module.
    """
    bundled: dict[str, str] = {}
    _add(entry, folders, bundled)
    modules = ""
    for name, text in bundled.items():
        modules += f"modules[{name!r}] = (() => {{\n{text}}})();\n"
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{modules}{epilogue}}})();\n'


def _add(name: str, folders: Sequence[Path], bundled: dict[str, str]) -> None:
    """Add a module to the bundle, after the modules that it imports, which must run first."""
    if name in bundled:
        return
    file = next(folder / name for folder in folders if (folder / name).is_file())
    text = file.read_text(encoding="utf-8")
    for _, imported in _IMPORT.findall(text):
        _add(imported, folders, bundled)
    exported = ", ".join(name for _, name in _EXPORT.findall(text))
    text = _IMPORT.sub(_as_constants, text)
    bundled[name] = _EXPORT.sub(r"\1 \2", text) + f"return {{ {exported} }};\n"


def _as_constants(match: re.Match[str]) -> str:
    """Return a declaration in place of an import; renaming, `a as b` there, is `a: b` here."""
    return f'const {{ {match[1].replace(" as ", ": ")} }} = modules["{match[2]}"];'
