"""Copies of a model that share its weights."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import nn

    from translucid.attention.points import Handler

AnyModel = TypeVar("AnyModel", bound="nn.Module")


def shared_copy(model: AnyModel, unshared: Iterable[str] = ()) -> AnyModel:
    """Return a copy of a model that shares all its weights with it, except those with these names."""
    # `deepcopy` does not copy what its memo lists as copied.
    shared: dict[int, object] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    for name in unshared:
        shared.pop(id(model.get_parameter(name)), None)
    return copy.deepcopy(model, shared)


def with_handlers(model: AnyModel, handlers: Mapping[str, Handler]) -> AnyModel:
    """Return a copy of a model in which functions always handle points, in every thread; it shares all weights.

    Arguments and errors are those of `attention.points.handling`.
    """
    from translucid.attention.points import FixedPoint, Point, by_point

    model_copy = shared_copy(model)
    fixed = by_point(model_copy, handlers)
    for path, module in list(model_copy.named_modules()):
        if isinstance(module, Point) and module in fixed:
            model_copy.set_submodule(path, FixedPoint(module.name, fixed[module]))
    return model_copy
