"""Modules of JavaScript as one script, which also runs where a page is a file and no module may be fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

WEB = Path(str(files("translucid.inspection") / "web"))
"""Modules, styles and colours of what is to be seen."""
_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)


def bundle(entry: str, folders: Sequence[Path], then: str = "") -> str:
    """Return the module `entry` and all that it imports as one script.

    Each module becomes a function with names of its own. An import is one line, `import { a, b } from "./c.js";`, an
    export stands before a function, a constant or a class.

    Args:
        entry: the name of the module that is run.
        folders: where modules are looked for, the first first.
        then: what is run after it; `modules["a.js"]` has what a module exports.
    """
    done: dict[str, str] = {}
    _take(entry, folders, done)
    modules = "".join(f"modules[{name!r}] = (() => {{\n{text}}})();\n" for name, text in done.items())
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{modules}{then}}})();\n'


def _take(name: str, folders: Sequence[Path], done: dict[str, str]) -> None:
    """Add a module to those that are done, after what it imports."""
    if name in done:
        return
    text = next(folder / name for folder in folders if (folder / name).is_file()).read_text(encoding="utf-8")
    for _, needed in _IMPORT.findall(text):
        _take(needed, folders, done)
    names = [exported for _, exported in _EXPORT.findall(text)]
    text = _IMPORT.sub(lambda found: f'const {{ {found[1].replace(" as ", ": ")} }} = modules["{found[2]}"];', text)
    done[name] = _EXPORT.sub(r"\1 \2", text) + f"return {{ {', '.join(names)} }};\n"
