"""All settings, with their descriptions, defaults and possible values."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from translucid.models.kinds import options_of_kind
from translucid.models.model_shape import OfKind
from translucid.runs.configuration import Configuration
from translucid.runs.presets import all_presets


class Key(NamedTuple):
    """A setting that `--set` or a YAML file may give."""

    name: str
    """The dotted name, such as `training.batch_tokens`."""
    default: Any
    description: str
    choice: str = ""
    """The kind of group that has the key, such as `model.kind=recurrent`; empty if there is only one kind."""
    allowed: str = ""
    """The possible values, such as `a whole number from 1 to 64` or `adam | muon`."""


_KINDS = {bool: "true | false", int: "a whole number", float: "a number", str: "text"}
_LOWER_BOUNDS = {"ge": "from", "gt": "above"}
_UPPER_BOUNDS = {"le": "to", "lt": "below"}


def keys() -> Iterator[Key]:
    """Yield all keys, in the order of the classes and their fields."""
    preset = Configuration.model_fields["preset"]
    yield Key("preset", preset.default, descriptions(Configuration)["preset"], allowed=" | ".join(all_presets()))
    yield from _walk(Configuration, "", "")


@cache
def descriptions(options: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a group.

    With `use_attribute_docstrings`, pydantic reads the same texts at each import, 0.15 s of each start.
    """
    texts = {}
    for group in reversed(options.__mro__):
        if not issubclass(group, BaseModel) or group is BaseModel:
            continue
        definition = ast.parse(textwrap.dedent(inspect.getsource(group))).body[0]
        assert isinstance(definition, ast.ClassDef)
        for field, statement in pairwise(definition.body):
            match field, statement:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    texts[name] = inspect.cleandoc(text)
    return texts


def _walk(options: type[BaseModel], prefix: str, choice: str) -> Iterator[Key]:
    texts = descriptions(options)
    for name, field in options.model_fields.items():
        kinds = [mark.kinds() for mark in field.metadata if isinstance(mark, OfKind)]
        if kinds and len(kinds[0]) > 1:
            default = field.get_default(call_default_factory=True).kind
            yield Key(f"{prefix}{name}.kind", default, f"The kind of {name}.", choice, " | ".join(kinds[0]))
            for kind in kinds[0]:
                yield from _walk(_options_of(kind), f"{prefix}{name}.", f"{prefix}{name}.kind={kind}")
        elif kinds:
            yield from _walk(_options_of(kinds[0][0]), f"{prefix}{name}.", choice)
        elif _is_group(field.annotation):
            yield from _walk(field.annotation, f"{prefix}{name}.", choice)
        elif prefix and name != "kind":
            # A custom model has no default implementation.
            default = "" if field.is_required() else field.get_default(call_default_factory=True)
            values = _values(field.annotation, field.metadata)
            yield Key(f"{prefix}{name}", default, texts[name], choice, values)


def _options_of(kind: str) -> type[BaseModel]:
    options = options_of_kind(kind)
    assert options is not None
    return options


def _is_group(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _values(annotation: Any, metadata: list[Any]) -> str:
    """Describe the values of a type and its bounds."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is NoneType:
        return "null"
    if origin is Annotated:
        bounds = []
        for annotated in arguments[1:]:  # bounds, or a `Field` with bounds
            bounds += annotated.metadata if isinstance(annotated, FieldInfo) else [annotated]
        return _values(arguments[0], bounds)
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin is list:
        return f"a list of: {_values(arguments[0], [])}"
    if origin is dict:
        return f"a mapping to: {_values(arguments[1], [])}"
    if arguments:  # a union of types
        return " | ".join(_values(member, metadata) for member in arguments)
    return " ".join([_KINDS.get(annotation, ""), *_bounds(metadata)]).strip()


def _bounds(metadata: list[Any]) -> Iterator[str]:
    """Describe bounds of numbers, the lower one first."""
    for words in (_LOWER_BOUNDS, _UPPER_BOUNDS):
        for bound in metadata:
            for name, word in words.items():
                if (value := getattr(bound, name, None)) is not None:
                    yield f"{word} {value:,}"
