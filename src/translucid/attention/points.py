"""Named points of a model, at which the quantities that it computes can be read and replaced while it runs.

A point is an identity. Within `handling`, it passes its tensor to a function, and the model continues with what that
returns. `recording` uses this to keep the tensors. Both work for teacher-forced decoding and for every search.

    encoder.input           the embedded source [B, S, D]
    encoder.0.self.*        the terms of an attention, below
    encoder.0.after_self    the states after the self-attention, its residual connection included [B, S, D]
    encoder.0.feed_forward_input
                            the input of the feed-forward sublayer, after the norm of a pre-norm model [B, S, D]
    encoder.0.feed_forward  its output [B, S, D]
    encoder.0.output        the states after the layer [B, S, D]
    encoder.output          the states that the decoder reads, after the final norm of a pre-norm model [B, S, D]
    decoder.input, decoder.0.self.*, decoder.0.after_self, decoder.0.cross.*, decoder.0.after_cross,
    decoder.0.feed_forward_input, decoder.0.feed_forward, decoder.0.output
                            the same for the target; T is its length [N, T, D]
    decoder.output          the features, from which the output projection computes the logits [N, T, D]

The terms of an attention with H heads:

    .queries  [N, H, T, d]      .keys  [N, H, S, d]      .values  [N, H, S, d]
    .weights  [N, H, T, S]      .heads [N, H, T, d], the output of each head before W^O
    .output   [N, T, D], the output of the sublayer

An SSRU in place of a decoder's self-attention (`layers/ssru.py`), [N, T, D] each; replacements of cells are not kept
for the next position:

    decoder.0.ssru.forget       decoder.0.ssru.values, W x      decoder.0.ssru.cells      decoder.0.ssru.output

`decoder.0.cross.head.3` stands for head 3 of `decoder.0.cross.heads`. A model has those points that apply to it:
recurrent models have one decoder layer, whose cross-attention has one head, and `decoder.0.output` is its hidden state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.ground.errors import UserError, nearest

Handler: TypeAlias = Callable[[Tensor, int], Tensor]
"""A function from the tensor at a point, and the position of its first row, to the tensor that replaces it.

A search computes one position at a time, and a recurrent decoder calls its points once for each position.
"""

# A context variable, not an attribute of the point: threads share a model, and each may handle other points.
_handlers: ContextVar[Mapping[Point, Handler] | None] = ContextVar("handlers", default=None)
# The number of active calls of `handling` in all threads. While it is 0, a point costs no more than a function call.
_active = 0
_active_lock = Lock()


class Point(nn.Module):
    """The identity, unless a function handles the point. A compiled graph has no points."""

    def __init__(self, name: str) -> None:
        """`name`: see above; each point of a model has its own."""
        super().__init__()
        self.name = name

    def __call__(self, x: Tensor, first: int = 0) -> Tensor:
        """Return x [.., T, D], or what replaces it; `first` is the position of its first row.

        This is not `forward`, because the hooks that PyTorch looks for would cost more than the point itself.
        """
        if not _active:
            return x
        handler = self.handler
        return x if handler is None else handler(x, first)

    @property
    def handler(self) -> Handler | None:
        """The function that handles the point in this thread, if there is one."""
        if not _active or torch.compiler.is_compiling():
            return None
        handlers = _handlers.get()
        return None if handlers is None else handlers.get(self)

    def extra_repr(self) -> str:
        """Show the name in the model's representation."""
        return self.name

    def replacement(self, first: int, *, single_head: bool = False) -> Callable[[Tensor], Tensor] | None:
        """Return the handler as an argument of `attend`, where it replaces weights; None if there is none.

        Args:
            first: the position of the first query.
            single_head: whether the weights have no dimension for heads [N, T, S].
        """
        handler = self.handler
        if handler is None:
            return None
        if single_head:
            return lambda weights: handler(weights[:, None], first)[:, 0]
        return lambda weights: handler(weights, first)


class FixedPoint(Point):
    """A point at which a function changes the tensor in every thread, before it is handled in this one.

    It stays in a compiled graph.
    """

    def __init__(self, name: str, fixed: Handler) -> None:
        """`name` is that of the point which this one replaces, `fixed` the function."""
        super().__init__(name)
        self.fixed = fixed

    def __call__(self, x: Tensor, first: int = 0) -> Tensor:
        """Return what replaces x [.., T, D]."""
        return self.handler(x, first)

    @property
    def handler(self) -> Handler:
        """The function, followed by the one that handles the point in this thread, if there is one."""
        handler = super().handler
        return self.fixed if handler is None else _chained(self.fixed, handler)


def points_of(model: nn.Module) -> dict[str, Point]:
    """Return the points of a model by name, in the order of its modules; of an ensemble, those of the first model."""
    points: dict[str, Point] = {}
    for module in model.modules():
        if isinstance(module, Point):
            points.setdefault(module.name, module)
    return points


def any_handler() -> bool:
    """Whether any point is handled in this thread."""
    return bool(_active) and not torch.compiler.is_compiling() and _handlers.get() is not None


@contextmanager
def handling(model: nn.Module, handlers: Mapping[str, Handler]) -> Iterator[None]:
    """Handle points of a model by functions, in this thread. Nested calls apply from the outermost to the innermost.

    Args:
        model: a model, in training or evaluation mode.
        handlers: functions by the names of points or heads (`decoder.0.cross.head.3`, [N, T, d]).

    Raises:
        UserError: the model has no such point or head.
    """
    with handling_points(by_point(model, handlers)):
        yield


@contextmanager
def handling_points(handlers: Mapping[Point, Handler]) -> Iterator[None]:
    """Do the same as `handling` for points that have been found; a search that does so at each step saves time."""
    merged = dict(_handlers.get() or {})
    for point, handler in handlers.items():
        merged[point] = _chained(merged.get(point), handler)
    token = _handlers.set(merged)
    _change_active(1)
    try:
        yield
    finally:
        _change_active(-1)
        _handlers.reset(token)


def by_point(model: nn.Module, handlers: Mapping[str, Handler]) -> dict[Point, Handler]:
    """Return the functions by the points that they handle; arguments and errors are those of `handling`."""
    points = points_of(model)
    point_handlers: dict[Point, Handler] = {}
    for name, handler in handlers.items():
        point_name, head = split_head(name)
        if point_name not in points:
            raise UserError(f"the model has no point {name!r}", fix=nearest(name, points))
        point = points[point_name]
        if head is not None:
            handler = _head_handler(name, head, handler)
        point_handlers[point] = _chained(point_handlers.get(point), handler)
    return point_handlers


def _change_active(change: int) -> None:
    global _active
    with _active_lock:
        _active += change


def split_head(name: str) -> tuple[str, int | None]:
    """Split the name of a head into that of the point with all heads and its number; None for other names."""
    attention, separator, number = name.rpartition(".head.")
    if separator and number.isdecimal():
        return f"{attention}.heads", int(number)
    return name, None


def _head_handler(name: str, head: int, handler: Handler) -> Handler:
    """Return a handler of all heads [N, H, T, d] that changes one of them."""

    def handle(x: Tensor, first: int) -> Tensor:
        if head >= x.size(1):
            raise UserError(f"the model has no head {name!r}", fix=f"Choose one of 0 to {x.size(1) - 1}.")
        heads = list(x.unbind(1))
        heads[head] = handler(heads[head], first)
        return torch.stack(heads, 1)

    return handle


def _chained(outer: Handler | None, inner: Handler) -> Handler:
    if outer is None:
        return inner
    return lambda x, first: inner(outer(x, first), first)


def at_positions(positions: Sequence[int], handler: Handler) -> Handler:
    """Return a handler that applies another one to the rows [.., n, D] at some positions only.

    The other handler's second argument is the position of the first of these rows. It is not called without such rows.
    """

    def handle(x: Tensor, first: int) -> Tensor:
        rows = [position - first for position in positions if first <= position < first + x.size(-2)]
        if not rows:
            return x
        index = torch.tensor(rows, device=x.device)
        return x.index_copy(-2, index, handler(x.index_select(-2, index), first + rows[0]))

    return handle


class Record(Mapping[str, Tensor]):
    """What a model computed at some points since it last began, by name, with gradients if the model computes them."""

    def __init__(self) -> None:
        """Start empty."""
        self._parts: dict[str, list[Tensor]] = {}

    def handler(self, name: str) -> Handler:
        """Return a handler that keeps the tensor under a name and doesn't change it."""

        def keep(x: Tensor, first: int) -> Tensor:
            if first == 0 or name not in self._parts:
                self._parts[name] = []
            self._parts[name].append(x)
            return x

        return keep

    def __getitem__(self, name: str) -> Tensor:
        """Return the tensor of a point, [.., T, D]."""
        parts = self._parts[name]
        if len(parts) > 1:
            width = parts[-1].size(-1)
            if parts[0].size(-1) < width:  # step by step, weights over earlier positions [.., 1, t] grow longer
                parts[:] = [F.pad(chunk, (0, width - chunk.size(-1))) for chunk in parts]
            parts[:] = [torch.cat(parts, -2)]
        return parts[0]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the points that the model has reached."""
        return iter(self._parts)

    def __len__(self) -> int:
        """Return the number of points that the model has reached."""
        return len(self._parts)


@contextmanager
def recording(model: nn.Module, names: Sequence[str]) -> Iterator[Record]:
    """Record what a model computes at points with these names.

    Rows are those of the model's batch. In beam search they are hypotheses, which are reordered and dropped from step
    to step; decode the best one by teacher forcing instead.

    Raises:
        UserError: the model has no such point.
    """
    record = Record()
    with handling(model, {name: record.handler(name) for name in names}):
        yield record


WEIGHTS = ".weights"


@contextmanager
def recording_weights(model: nn.Module) -> Iterator[Record]:
    """Record all attention weights of a model, under the names of the attentions, such as `encoder.0.self`."""
    record = Record()
    handlers = {}
    for name in points_of(model):
        if name.endswith(WEIGHTS):
            handlers[name] = record.handler(name.removesuffix(WEIGHTS))
    with handling(model, handlers):
        yield record
