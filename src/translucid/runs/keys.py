"""Every setting there is, with what it does and its default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel

from translucid.runs.configuration import Configuration


class Key(NamedTuple):
    """One that `--set` or a YAML file may give."""

    name: str
    """`training.batch_tokens`."""
    default: Any
    description: str
    choice: str = ""
    """Where several groups have this name: which of them has the key, as `model.kind=recurrent`; else empty."""


def keys() -> Iterator[Key]:
    """Return all keys, in the order of the classes that they are the fields of."""
    return _walk(Configuration, "", "")


def _walk(options: type[BaseModel], prefix: str, choice: str) -> Iterator[Key]:
    for name, field in options.model_fields.items():
        groups = [kind for kind in (field.annotation, *get_args(field.annotation)) if _is_group(kind)]
        for group in groups:
            one_of = f"{prefix}{name}.kind={group.model_fields['kind'].default}" if len(groups) > 1 else choice
            yield from _walk(group, f"{prefix}{name}.", one_of)
        if prefix and not groups and name != "kind":
            default = field.get_default(call_default_factory=True)
            yield Key(f"{prefix}{name}", default, field.description or "", choice)


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
