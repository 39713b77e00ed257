"""Attention scores of users, in Python files of their own: `model.attention=my_scores.py:Cosine`.

A run names the file and the class. Whoever uses the run names the file again, so that no run folder of a stranger
executes anything: `translucid --code my_scores.py ...`, the variable TRANSLUCID_CODE, or `allow_code` in Python.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from translucid.attention.scores import Score
from translucid.ground.errors import UserError

VARIABLE = "TRANSLUCID_CODE"
"""Files that may be executed, as PATH is written; processes that are started inherit it."""


def allow_code(*files: str | Path) -> None:
    """Allow these Python files to be executed by models that name them.

    Raises:
        UserError: there is no such file.
    """
    allowed = _allowed()
    for file in map(Path, files):
        if not file.is_file():
            raise UserError("there is no such file", file=file, fix="Give the Python file that the run names.")
        allowed[file.name] = file.resolve()
    os.environ[VARIABLE] = os.pathsep.join(map(str, allowed.values()))


def load_score(reference: str, width: int) -> Score:
    """Return a score of a user's class.

    Args:
        reference: the file and the class, such as `my_scores.py:Cosine`.
        width: D of queries and of encoder outputs; the class is called with it.

    Raises:
        UserError: the file is not allowed, can't be executed, or has no such score.
    """
    name, _, class_name = reference.partition(":")
    file = _file(reference)
    found = getattr(_module(file), class_name, None)
    if not (isinstance(found, type) and issubclass(found, Score)):
        what = f"has no class {class_name} that is a translucid.attention.Score"
        raise UserError(what, file=file, fix=f"Set model.attention={name}:CLASS to one that it has.")
    try:
        return found(width)
    except TypeError as error:
        what = f"{class_name}({width}) fails: {error}"
        raise UserError(what, file=file, fix="The class takes the width, and has `keys` and `forward`.") from error


def fingerprint(reference: str) -> str:
    """Return the first digits of the SHA-256 of the file that a model names."""
    return sha256(_file(reference).read_bytes()).hexdigest()[:16]


def _file(reference: str) -> Path:
    name = reference.partition(":")[0]
    file = _allowed().get(name)
    if file is None:
        what = f"model.attention={reference} is code, which is executed only if you name it"
        raise UserError(what, fix=f"If you trust it, write translucid --code {name} before the command.")
    return file


def _allowed() -> dict[str, Path]:
    """Return the allowed files by name."""
    files = [Path(file) for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file]
    return {file.name: file for file in files}


@cache
def _module(file: Path) -> ModuleType:
    spec = spec_from_file_location(f"translucid_user_code.{file.stem}", file)
    assert spec and spec.loader
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"can't be executed ({type(error).__name__}: {error})", file=file, fix="Mend it.") from error
    return module
