"""PyTorch's operations as operators of ONNX: those of our models, and others that an attention score may use.

All layers of an LSTM or a GRU together are one operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from translucid.engines.onnx.recording import Handler, Length, Recorder, Value, as_one_operation
from translucid.ground.errors import UserError
from translucid.layers.recurrent import Cells, Recurrence

Results = Sequence[Value]
_LAST = (1 << 63) - 1
"""The end of a slice without an end."""

_SAME = {"clone", "alias", "detach", "lift_fresh", "contiguous"}
_FUNCTIONS = {
    "neg": "Neg",
    "abs": "Abs",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "erf": "Erf",
    "sin": "Sin",
    "cos": "Cos",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "relu": "Relu",
    "softplus": "Softplus",
    "reciprocal": "Reciprocal",
    "floor": "Floor",
    "ceil": "Ceil",
    "round": "Round",
    "sign": "Sign",
    "bitwise_not": "Not",
    "logical_not": "Not",
}
"""Functions of one tensor."""
_OPERATORS = {
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "maximum": "Max",
    "minimum": "Min",
    "bitwise_and": "And",
    "bitwise_or": "Or",
    "logical_and": "And",
    "logical_or": "Or",
    "clamp_min": "Max",
    "clamp_max": "Min",
}
"""Functions of two operands."""
_COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
_REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin"}
_QUANTIFIERS = {"any": "ReduceMax", "all": "ReduceMin"}


def _function(operator: str) -> Handler:
    return lambda recorder, results, x, *_: recorder.node(operator, x)


def _operator(operator: str) -> Handler:
    def add(recorder: Recorder, results: Results, x: Any, y: Any) -> str:
        return recorder.node(operator, recorder.cast(x, recorder.dtype), recorder.cast(y, recorder.dtype))

    return add


def _add(recorder: Recorder, results: Results, x: Any, y: Any, alpha: float = 1) -> str:
    if alpha != 1:
        y = recorder.node("Mul", recorder.cast(y, recorder.dtype), alpha)
    return _operator("Add")(recorder, results, x, y)  # type: ignore[return-value]


def _comparison(operator: str) -> Handler:
    def add(recorder: Recorder, results: Results, x: Value, y: Any) -> str:
        dtype = x.first.dtype
        return recorder.node(operator, recorder.cast(x, dtype), recorder.cast(y, dtype))

    return add


def _differ(recorder: Recorder, results: Results, x: Any, y: Any) -> str:
    return recorder.node("Not", _comparison("Equal")(recorder, results, x, y))


def _reduction(operator: str) -> Handler:
    def add(
        recorder: Recorder, results: Results, x: Value, axes: Any = None, keep: bool = False, dtype: Any = None
    ) -> str:
        if axes is None:
            return recorder.node(operator, recorder.cast(x, recorder.dtype), keepdims=0)
        axes = recorder.graph.numbers(*(axes if isinstance(axes, list) else [axes]))
        return recorder.node(operator, recorder.cast(x, recorder.dtype), axes, keepdims=int(keep))

    return add


def _quantifier(operator: str) -> Handler:
    reduce = _reduction(operator)

    def add(recorder: Recorder, results: Results, x: Value, *arguments: Any) -> str:
        recorder.dtype = torch.int32  # there is no reduction of booleans
        return recorder.cast(reduce(recorder, results, x, *arguments), torch.bool)

    return add


def _norm(recorder: Recorder, results: Results, x: Value, order: float, axes: Any, keep: bool = False) -> str:
    operator = "ReduceL1" if order == 1 else "ReduceL2"
    if order not in (1, 2) or axes is None:
        raise UserError(f"a norm of the order {order} can't become a part of an ONNX graph")
    return recorder.node(operator, x, recorder.graph.numbers(*axes), keepdims=int(keep))


def _gelu(recorder: Recorder, results: Results, x: Value) -> str:
    error = recorder.node("Erf", recorder.node("Div", x, math.sqrt(2)))
    return recorder.node("Mul", recorder.node("Mul", x, recorder.node("Add", error, 1)), 0.5)


def _lerp(recorder: Recorder, results: Results, start: Any, end: Any, weight: Any) -> str:
    difference = recorder.node("Sub", end, start)
    return recorder.node("Add", start, recorder.node("Mul", weight, difference))


def _masked_fill(recorder: Recorder, results: Results, x: Any, mask: Any, value: Any) -> str:
    return recorder.node("Where", mask, recorder.cast(value, recorder.dtype), x)


def _where(recorder: Recorder, results: Results, mask: Any, x: Any, y: Any) -> str:
    return recorder.node("Where", mask, recorder.cast(x, recorder.dtype), recorder.cast(y, recorder.dtype))


def _clamp(recorder: Recorder, results: Results, x: Value, low: Any = None, high: Any = None) -> str:
    name = x.name if low is None else recorder.node("Max", x, low)
    return name if high is None else recorder.node("Min", name, high)


def _layer_norm(
    recorder: Recorder, results: Results, x: Value, shape: Sequence[int], scale: Tensor, shift: Tensor, epsilon: float
) -> str:
    return recorder.node("LayerNormalization", x, scale, shift, axis=-len(shape), epsilon=epsilon)


def _index(recorder: Recorder, results: Results, x: Any, indices: Sequence[Any]) -> str:
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    if len(axes) > 1:
        raise UserError("an index of several tensors can't become a part of an ONNX graph")
    return recorder.node("Gather", x, indices[axes[0]], axis=axes[0])


def _select(recorder: Recorder, results: Results, x: Value, axis: int, index: int | Length) -> str:
    scalar = recorder.node("Squeeze", recorder.length(index)) if isinstance(index, Length) else torch.tensor(index)
    return recorder.node("Gather", x, scalar, axis=axis)


def _slice(
    recorder: Recorder, results: Results, x: Any, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> str:
    if not start and end in (None, _LAST) and step == 1:
        return recorder.name(x)
    first = recorder.length(start or 0)
    last = recorder.length(_LAST if end is None else end)
    return recorder.node("Slice", x, first, last, recorder.graph.numbers(axis), recorder.graph.numbers(step))


def _concatenate(recorder: Recorder, results: Results, parts: Sequence[Any], axis: int = 0) -> str:
    return recorder.node("Concat", *parts, axis=axis)


def _stack(recorder: Recorder, results: Results, parts: Sequence[Any], axis: int = 0) -> str:
    axis %= results[0].first.dim()
    return recorder.node("Concat", *(_unsqueeze(recorder, results, part, axis) for part in parts), axis=axis)


def _split(recorder: Recorder, results: Results, x: Value, sizes: Any, axis: int = 0) -> list[str]:
    lengths = recorder.graph.numbers(*(part.first.size(axis) for part in results))
    return recorder.graph.add_several("Split", len(results), x.name, lengths, axis=axis)


def _unbind(recorder: Recorder, results: Results, x: Value, axis: int = 0) -> list[str]:
    parts = [x.name]
    if len(results) > 1:
        parts = recorder.graph.add_several("Split", len(results), x.name, axis=axis, num_outputs=len(results))
    return [recorder.node("Squeeze", part, recorder.graph.numbers(axis)) for part in parts]


def _unsqueeze(recorder: Recorder, results: Results, x: Any, axis: int) -> str:
    return recorder.node("Unsqueeze", x, recorder.graph.numbers(axis % results[0].first.dim()))


def _squeeze(recorder: Recorder, results: Results, x: Value, axes: Any) -> str:
    return recorder.node("Squeeze", x, recorder.graph.numbers(*(axes if isinstance(axes, list) else [axes])))


def _permute(recorder: Recorder, results: Results, x: Value, axes: Sequence[int]) -> str:
    return recorder.node("Transpose", x, perm=[axis % x.first.dim() for axis in axes])


def _transpose(recorder: Recorder, results: Results, x: Value, first: int = 0, second: int = 1) -> str:
    axes = [*range(x.first.dim())]
    axes[first], axes[second] = axes[second], axes[first]
    return recorder.node("Transpose", x, perm=axes)


def _view(recorder: Recorder, results: Results, x: Value, *_: Any) -> str:
    lengths = results[0].shape
    varying = [length for length in lengths if isinstance(length, Length)]
    if varying:
        # -1 stands for the length that no other value has, or for any if all are known.
        inferred = next((length for length in varying if length not in recorder.axes), varying[0])
        lengths[lengths.index(inferred)] = -1
    return recorder.node("Reshape", x, recorder.shape(lengths))


def _expand(recorder: Recorder, results: Results, x: Any, *_: Any, implicit: bool = False) -> str:
    if isinstance(x, Value) and x.shape == results[0].shape:
        return x.name
    return recorder.node("Expand", x, recorder.shape(results[0].shape))


def _filled(recorder: Recorder, results: Results, *_: Any, **__: Any) -> str:
    value = results[0].first.flatten()[:1].reshape(())
    return recorder.node("Expand", value, recorder.shape(results[0].shape))


def _product(recorder: Recorder, results: Results, x: Any, y: Any) -> str:
    if isinstance(y, Tensor) and y.dim() == 2:  # a matrix of weights, which is stored once, as outputs times inputs
        return recorder.node("Gemm", x, y.t(), transB=1)
    return recorder.node("MatMul", x, y)


def _affine(recorder: Recorder, results: Results, bias: Any, x: Any, y: Any) -> str:
    if isinstance(y, Tensor):
        return recorder.node("Gemm", x, y.t(), bias, transB=1)
    return recorder.node("Gemm", x, y, bias)


def _range(recorder: Recorder, results: Results, *bounds: Any, **_: Any) -> str:
    start, end = bounds if len(bounds) > 1 else (0, *bounds)
    scalars = [recorder.node("Squeeze", recorder.length(bound)) for bound in (start, end)]
    return recorder.node("Range", *scalars, torch.tensor(1))


def _branch(*_: Any) -> list[str]:
    """Add nothing for a number that the model reads: both examples have led to the same operations."""
    return []


OPERATIONS: dict[str, Handler] = {
    **dict.fromkeys(_SAME, lambda recorder, results, x, **_: recorder.name(x)),
    **{name: _function(operator) for name, operator in _FUNCTIONS.items()},
    **{name: _operator(operator) for name, operator in _OPERATORS.items()},
    **{name: _comparison(operator) for name, operator in _COMPARISONS.items()},
    **{name: _reduction(operator) for name, operator in _REDUCTIONS.items()},
    **{name: _quantifier(operator) for name, operator in _QUANTIFIERS.items()},
    **dict.fromkeys(["zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros"], _filled),
    **dict.fromkeys(["split", "split_with_sizes", "unsafe_split"], _split),
    **dict.fromkeys(["view", "_unsafe_view", "reshape"], _view),
    **dict.fromkeys(["mm", "bmm", "mv", "dot"], _product),
    **dict.fromkeys(["transpose", "t"], _transpose),
    "_local_scalar_dense": _branch,
    "_log_softmax": lambda recorder, results, x, axis, _: recorder.node("LogSoftmax", x, axis=axis),
    "_softmax": lambda recorder, results, x, axis, _: recorder.node("Softmax", x, axis=axis),
    "_to_copy": lambda recorder, results, x, **_: recorder.cast(x, recorder.dtype),
    "add": _add,
    "addmm": _affine,
    "arange": _range,
    "cat": _concatenate,
    "clamp": _clamp,
    "embedding": lambda recorder, results, table, ids, *_: recorder.node("Gather", table, ids),
    "expand": _expand,
    "gelu": _gelu,
    "index": _index,
    "index_select": lambda recorder, results, x, axis, rows: recorder.node("Gather", x, rows, axis=axis),
    "lerp": _lerp,
    "linalg_vector_norm": _norm,
    "masked_fill": _masked_fill,
    "native_layer_norm": _layer_norm,
    "ne": _differ,
    "permute": _permute,
    "rsqrt": lambda recorder, results, x: recorder.node("Reciprocal", recorder.node("Sqrt", x)),
    "rsub": lambda recorder, results, x, y: _operator("Sub")(recorder, results, y, x),
    "select": _select,
    "silu": lambda recorder, results, x: recorder.node("Mul", x, recorder.node("Sigmoid", x)),
    "slice": _slice,
    "squeeze": _squeeze,
    "stack": _stack,
    "unbind": _unbind,
    "unsqueeze": _unsqueeze,
    "where": _where,
}
"""What adds each operation, by its name."""


_WEIGHTS = "weight_ih", "weight_hh", "bias_ih", "bias_hh"


class RecordableRecurrence(nn.Module):
    """A `Recurrence`, of which whole layers are recorded; PyTorch computes one position after another."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        self.recurrence, self.step = recurrence, recurrence.step

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Cells]:
        """Do the same as `Recurrence.read`."""

        def read(x: Tensor, lengths: Tensor) -> list[Tensor]:
            outputs, last = self.recurrence.read(x, lengths)
            return [outputs, *last]

        outputs, *last = as_one_operation(read, self._add, x, lengths)
        return outputs, tuple(last)

    def forward(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """Do the same as `Recurrence.forward`."""

        def run(x: Tensor, lengths: None, *cells: Tensor) -> list[Tensor]:
            outputs, after = self.recurrence(x, cells)
            return [outputs, *after]

        outputs, *after = as_one_operation(run, self._add, x, None, *cells)
        return outputs, tuple(after)

    def _add(self, recorder: Recorder, results: Results, x: Value, lengths: Value | None, *cells: Value) -> list[str]:
        """Add the operators of all layers; see `Handler`."""
        rnn, graph = self.recurrence.rnn, recorder.graph
        operator = "LSTM" if isinstance(rnn, nn.LSTM) else "GRU"
        options: dict[str, Any] = {"hidden_size": rnn.hidden_size}
        if rnn.bidirectional:
            options["direction"] = "bidirectional"
        if operator == "GRU":
            options["linear_before_reset"] = 1  # as in PyTorch: n = tanh(W x + r * (U h + b))
        count = "" if lengths is None else recorder.cast(lengths, torch.int32)
        size = rnn.num_layers
        # [L, B, D] -> [1, B, D] for each layer
        before = [graph.add_several("Split", size, cell.name, num_outputs=size) for cell in cells]
        width = rnn.hidden_size * (1 + rnn.bidirectional)
        outputs, after = recorder.node("Transpose", x, perm=[1, 0, 2]), []  # [T, B, inputs]
        for layer in range(size):
            inputs, hidden, *biases = [_gates(rnn, layer, kind) for kind in _WEIGHTS]
            operands = [graph.constant(weights) for weights in (inputs, hidden, torch.cat(biases, 1))]
            operands += [count, *(states[layer] for states in before)]
            outputs, *last = graph.add_several(operator, len(results), outputs, *operands, **options)
            # [T, directions, B, H] -> [T, B, D], [directions, B, H] -> [1, B, D]
            outputs = recorder.node("Transpose", outputs, perm=[0, 2, 1, 3])
            outputs = recorder.node("Reshape", outputs, graph.numbers(0, 0, -1))
            last = [recorder.node("Transpose", state, perm=[1, 0, 2]) for state in last]
            after.append([recorder.node("Reshape", state, graph.numbers(1, -1, width)) for state in last])
        stacked = [recorder.node("Concat", *states, axis=0) for states in zip(*after, strict=True)]
        return [recorder.node("Transpose", outputs, perm=[1, 0, 2]), *stacked]


def _gates(rnn: nn.RNNBase, layer: int, kind: str) -> Tensor:
    """Return weights of a layer [directions, gates * H, ..] in ONNX's order of the gates."""
    # From PyTorch's i, f, g, o to i, o, f, c for an LSTM, and from r, z, n to z, r, h for a GRU.
    order = (0, 3, 1, 2) if isinstance(rnn, nn.LSTM) else (1, 0, 2)
    sides = []
    for direction in ("", "_reverse")[: 1 + rnn.bidirectional]:
        gates = getattr(rnn, f"{kind}_l{layer}{direction}").detach().chunk(len(order))
        sides.append(torch.cat([gates[gate] for gate in order]))
    return torch.stack(sides)
