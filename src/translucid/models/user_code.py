"""Attention scores and models in the user's own Python files: `my_scores.py:Cosine`, `my_model.py:MyModel`.

A run stores the names of the file and the class. To use the run, the user names the file again, so that a run folder
from a stranger cannot execute code: `translucid --code my_model.py ...`, the variable TRANSLUCID_CODE, or `allow_code`
in Python.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from translucid.attention.scores import Score
from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    from translucid.models.custom import CustomModel

VARIABLE = "TRANSLUCID_CODE"
"""The environment variable with the files that may be executed, separated like PATH; child processes inherit it."""

Class = TypeVar("Class", bound=type)


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
    if allowed:
        os.environ[VARIABLE] = os.pathsep.join(map(str, allowed.values()))


def allow_named_code(model: str | None, settings: Mapping[str, object]) -> str | None:
    """Allow the files that a user names, as a model or in settings; return the model with the file's bare name.

    Args:
        model: a preset, or the file and the class of a model, as `code/my_model.py:MyModel`.
        settings: values by key.

    Raises:
        UserError: the file of the model does not exist.
    """
    for key in ("model.attention", "model.implementation"):
        file, _, _ = str(settings.get(key, "")).rpartition(":")
        if Path(file).is_file():
            allow_code(file)
    file, colon, class_name = (model or "").rpartition(":")
    if not (colon and file.endswith(".py")):
        return model
    # A bare name may be of a file elsewhere that is allowed already, by --code.
    if Path(file).is_file() or file not in _allowed():
        allow_code(file)
    return f"{Path(file).name}:{class_name}"


def load_score(reference: str, width: int) -> Score:
    """Return an instance of a user's score.

    Args:
        reference: the file and the class, such as `my_scores.py:Cosine`.
        width: D, the width of queries and encoder outputs; the argument of the class.

    Raises:
        UserError: the file is not allowed, can't be executed, or has no such score.
    """
    # Only the base class is abstract, and only the user's class knows its arguments: hence Any.
    score_class: Any = _load_class(reference, Score, "translucid.attention.Score")
    try:
        return score_class(width)
    except TypeError as error:  # the class takes other arguments
        what = f"{score_class.__name__}({width}) fails: {error}"
        fix = "The class takes the width, and has `keys` and `forward`."
        raise UserError(what, file=file_of(reference), fix=fix) from error


def load_model_class(reference: str) -> type[CustomModel]:
    """Return a user's class of a model, such as `my_model.py:MyModel`.

    Raises:
        UserError: the file is not allowed, can't be executed, or has no such model.
    """
    from translucid.models.custom import CustomModel

    return _load_class(reference, CustomModel, "translucid.models.custom.CustomModel")


def options_of(model_class: type[CustomModel], reference: str, values: Mapping[str, object]) -> Any:
    """Return the options of the model that `reference` names, as its own class `Options` checks them.

    Raises:
        UserError: a name or a value is wrong.
    """
    try:
        return model_class.Options.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(["model.options", *map(str, problem["loc"])])
        if problem["type"] == "extra_forbidden":
            option_names = [f"model.options.{name}" for name in model_class.Options.model_fields]
            raise UserError(f"{reference} has no option {key!r}", fix=nearest(key, option_names)) from error
        raise UserError(f"{key}: {problem['msg']}, not {problem['input']!r}") from error


def place_in_user_code(error: BaseException) -> str:
    """Return the line of a user's code that failed, as `my_model.py, line 30:` and a space; else nothing."""
    allowed = set(map(str, _allowed().values()))
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{Path(frame.filename).name}, line {frame.lineno}: " for frame in frames if frame.filename in allowed]
    return lines[-1] if lines else ""


def fingerprint(reference: str) -> str:
    """Return the first digits of the SHA-256 of the file that a model names."""
    return sha256(file_of(reference).read_bytes()).hexdigest()[:16]


def _load_class(reference: str, base: Class, base_name: str) -> Class:
    name, _, class_name = reference.partition(":")
    file = file_of(reference)
    loaded = getattr(_module(file), class_name, None)
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        what = f"has no class {class_name} that is a {base_name}"
        raise UserError(what, file=file, fix=f"Name one that it has, as {name}:CLASS.")
    return loaded  # type: ignore[return-value]  # a subclass of `base`, as has just been checked


def file_of(reference: str) -> Path:
    """Return the path of the file that a model names.

    Raises:
        UserError: the user has not allowed it.
    """
    name = reference.partition(":")[0]
    file = _allowed().get(name)
    if file is None:
        what = f"the model names {reference}, code that is executed only if you name it too"
        raise UserError(what, fix=f"If you trust it, `allow_code({name})`.")
    return file


def _allowed() -> dict[str, Path]:
    """Return the allowed files by name."""
    files = map(Path, filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)))
    return {file.name: file for file in files}


@cache
def _module(file: Path) -> ModuleType:
    """Execute a file as a module, once per process."""
    spec = spec_from_file_location(f"translucid_user_code.{file.stem}", file)
    assert spec and spec.loader
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"can't be executed ({type(error).__name__}: {error})", file=file, fix="Correct it.") from error
    return module
