"""The scripts of interactive views: several JavaScript modules as one script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

WEB = Path(str(files("translucid.inspection") / "web"))
"""The JavaScript modules and style sheets of the interactive views."""
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) ([\w$]+)", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*//.*\n", re.MULTILINE)
_OTHER_FORM = re.compile(r"^[ \t]*(?:import|export)\b.*|\bimport\s*\(.*", re.MULTILINE)


def bundle(entry: str, folders: Sequence[Path], epilogue: str = "") -> str:
    """Return the module `entry` and all modules that it imports as one script.

    Each module becomes a function, so that its names stay its own. Two forms are supported: an import of names,
    `import { a, b as c } from "./d.js";`, and an export before a function, a constant or a class. Lines that are
    comments are left out.

    Args:
        entry: the file name of the module.
        folders: the folders with modules, searched in this order.
        epilogue: code that runs after the modules, in which `modules["a.js"]` holds the exports of a module.

    Raises:
        ValueError: a module has another form of import or export, imports what no module exports, or needs itself.
    """
    bundled: dict[str, str] = {}
    _add((entry,), folders, bundled)
    modules = ""
    for name, text in bundled.items():
        modules += f"modules[{name!r}] = (() => {{\n{text}}})();\n"
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{modules}{epilogue}}})();\n'


def _add(path: tuple[str, ...], folders: Sequence[Path], bundled: dict[str, str]) -> set[str]:
    """Add a module, the last of a path of importing modules, after those that it imports; return what it exports."""
    *importers, name = path
    file = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if file is None or name in importers:
        raise ValueError(f"{' > '.join(path)}: {'needs itself' if name in importers else 'no such module'}")
    text = file.read_text(encoding="utf-8")
    exports = [exported for _, exported in _EXPORT.findall(text)]
    if name in bundled:
        return set(exports)
    for names, imported in _IMPORT.findall(text):
        available = _add((*path, imported), folders, bundled)
        missing = set(re.findall(r"([\w$]+)(?: as [\w$]+)?\s*(?:,|$)", names)) - available
        if missing:
            raise ValueError(f"{name}: {imported} exports no {', '.join(sorted(missing))}")
    text = _EXPORT.sub(r"\1 \2", _IMPORT.sub(_as_constants, _COMMENT.sub("", text)))
    other = _OTHER_FORM.search(text)
    if other:
        raise ValueError(f"{name}: the bundler does not support {other[0].strip()}")
    bundled[name] = f"{text}return {{ {', '.join(exports)} }};\n"
    return set(exports)


def _as_constants(match: re.Match[str]) -> str:
    """Return a declaration in place of an import; renaming, `a as b` there, is `a: b` here."""
    return f'const {{{match[1].replace(" as ", ": ")}}} = modules["{match[2]}"];'
