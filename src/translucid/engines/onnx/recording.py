"""Writing what a model computes as a graph: each operation of PyTorch becomes operators of ONNX.

The model computes two examples of different lengths, and PyTorch's operations are logged. Both logs have the same
operations. Numbers that differ between them are lengths, which the graph computes from its inputs; all others are
constants. So the graph has the equations of the model's own code, edited ones too, and takes inputs of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import onnx
import torch
from onnx import helper, numpy_helper
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from translucid.ground.errors import UserError

Example: TypeAlias = Mapping[str, Tensor]
"""The inputs of a graph by name."""
_FIX = 'Use `engine="torch"`.'
_DIFFERS = "the model has a number that depends on a length, which can't be computed in an ONNX graph"


class Value(NamedTuple):
    """A tensor that depends on the inputs."""

    name: str
    """Its name in the graph."""
    first: Tensor
    """The tensor of the first example."""
    second: Tensor
    """The tensor of the second example."""

    @property
    def shape(self) -> list[int | Length]:
        """The lengths of its axes."""
        return _merged([*self.first.shape], [*self.second.shape], {})


class Length(NamedTuple):
    """A whole number that depends on the lengths of the inputs, in both examples."""

    first: int
    second: int


Handler: TypeAlias = Callable[..., str | list[str]]
"""Adds the operators of one of PyTorch's operations, and returns the names of its results.

Arguments: the recorder, the results without names, and the arguments of the operation, in which values take the place
of tensors that depend on the inputs, and lengths that of numbers.
"""


def record(
    graph: Graph,
    function: Callable[..., Sequence[Tensor]],
    first: Example,
    second: Example,
    operations: Mapping[str, Handler],
) -> list[Value]:
    """Add what a function computes from the inputs of a graph, and return its results.

    Args:
        graph: the graph, which has these inputs.
        function: takes the inputs by name. Other tensors that it uses become constants.
        first: an example.
        second: another example, in which each length that may vary is different.
        operations: what adds each operation, by the name of the operation.

    Raises:
        UserError: the function uses an operation that is not among them, or other operations for other lengths.
    """
    logs, operations_of_logs, results = [], [], []
    with torch.inference_mode(False), torch.no_grad():
        for example in (first, second):
            with _Log() as log:
                token = _current.set(log)
                try:
                    results.append(function(**example))
                finally:
                    _current.reset(token)
            logs.append(log.entries)
            operations_of_logs.append([entry.operation for entry in log.entries])
    if operations_of_logs[0] != operations_of_logs[1]:
        raise UserError("the model computes other operations for other lengths, which no ONNX graph can do", fix=_FIX)
    recorder = Recorder(graph, operations)
    for name, tensor in first.items():
        recorder.add_value(name, tensor, second[name])
    for entries in zip(*logs, strict=True):
        recorder.add_operation(*entries)
    values = []
    for tensor, other in zip(*results, strict=True):
        values.append(Value(recorder.name(recorder.values.get(id(tensor), tensor)), tensor, other))
    return values


class _Entry(NamedTuple):
    """One operation of a log."""

    operation: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    results: Any


class _Log(TorchDispatchMode):
    """Logs the operations that PyTorch executes; their tensors are kept, so that each has an identity of its own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: list[_Entry] = []
        self.paused = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # skipping would import PyTorch's compiler, which takes seconds

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = operation(*args, **(kwargs or {}))
        if not self.paused:
            self.entries.append(_Entry(operation, args, kwargs or {}, results))
        return results


_current: ContextVar[_Log | None] = ContextVar("log", default=None)


def as_one_operation(function: Callable[..., list[Tensor]], handler: Handler, *arguments: Any) -> list[Tensor]:
    """Call a function. In a log, it is one operation, which a handler adds to a graph."""
    log = _current.get()
    if log is None:
        return function(*arguments)
    log.paused = True
    results = function(*arguments)
    log.paused = False
    log.entries.append(_Entry(handler, arguments, {}, results))
    return results


class Recorder:
    """Adds operations to a graph, one by one."""

    def __init__(self, graph: Graph, operations: Mapping[str, Handler]) -> None:
        self.graph, self.operations = graph, operations
        self.values: dict[int, Value] = {}
        """The tensors of the first example that depend on the inputs, by their identity."""
        self.axes: dict[Length, tuple[str, int]] = {}
        """A value and one of its axes, by the length of the axis."""
        self.lengths: dict[Length, str] = {}
        """Names of vectors [1] with lengths."""
        self.dtype = torch.float32
        """The type of the results of the current operation."""

    def add_value(self, name: str, first: Tensor, second: Tensor) -> None:
        """Take a value and its lengths into account."""
        value = self.values[id(first)] = Value(name, first, second)
        for axis, length in enumerate(value.shape):
            if isinstance(length, Length):
                self.axes.setdefault(length, (name, axis))

    def add_operation(self, first: _Entry, second: _Entry) -> None:
        """Add an operation as it is in both logs.

        Raises:
            UserError: it can't be a part of a graph.
        """
        arguments = _merged(first.arguments, second.arguments, self.values)
        keywords = _merged(first.keywords, second.keywords, self.values)
        if not _depends_on_inputs([arguments, keywords]):
            return
        handler, name = first.operation, ""
        if isinstance(handler, OpOverload):
            name = handler.overloadpacket.__name__
            handler = self.operations.get(name)
            if handler is None and not first.results._is_view():  # a view would change other values
                handler = self.operations.get(name.removesuffix("_"))  # in place
        if handler is None:
            raise UserError(f"the model's operation {name} can't become a part of an ONNX graph", fix=_FIX)
        tensors, others = first.results, second.results
        if not isinstance(tensors, tuple | list):
            tensors, others = [tensors], [others]
        results = [Value("", *pair) for pair in zip(tensors, others, strict=True)]
        self.dtype = getattr(tensors[0], "dtype", torch.float32)
        names = handler(self, results, *arguments, **keywords)
        for result, name in zip(results, [names] if isinstance(names, str) else names, strict=False):
            self.add_value(name, result.first, result.second)

    def node(self, operator: str, *operands: Any, **attributes: Any) -> str:
        """Add an operator with one result, and return its name."""
        return self.graph.add(operator, *map(self.name, operands), **attributes)

    def name(self, x: Any) -> str:
        """Return the name of a value, a length, or a constant tensor or number, of the type of the results."""
        if isinstance(x, str):
            return x
        if isinstance(x, Value):
            return x.name
        if isinstance(x, Length):
            return self.cast(self.length(x), self.dtype)
        return self.graph.constant(x if isinstance(x, Tensor) else torch.tensor(x, dtype=self.dtype))

    def cast(self, x: Any, dtype: torch.dtype) -> str:
        """Return the name of something in another type; ONNX does not convert the operands of an operator."""
        tensor = x.first if isinstance(x, Value) else x
        if isinstance(tensor, Tensor) and tensor.dtype == dtype:
            return self.name(x)
        if not isinstance(x, Value | Tensor | str | Length):
            return self.graph.constant(torch.tensor(x, dtype=dtype))
        name = self.length(x) if isinstance(x, Length) else self.name(x)
        return self.graph.add("Cast", name, to=Graph.type_of(dtype))

    def length(self, x: int | Length) -> str:
        """Return the name of a vector with one whole number.

        Raises:
            UserError: it is neither a length of a value, nor a multiple of one, nor larger than one by a constant.
        """
        if not isinstance(x, Length):
            return self.graph.numbers(x)
        if x not in self.lengths:
            self.lengths[x] = self._length(x)
        return self.lengths[x]

    def _length(self, x: Length) -> str:
        if x in self.axes:
            name, axis = self.axes[x]
            return self.graph.add("Shape", name, start=axis, end=axis + 1)
        for known in self.axes:
            if x.first * known.second == x.second * known.first and x.first % known.first == 0:
                return self.graph.add("Mul", self.length(known), self.graph.numbers(x.first // known.first))
        for known in self.axes:
            if x.first - x.second == known.first - known.second:
                return self.graph.add("Add", self.length(known), self.graph.numbers(x.first - known.first))
        raise UserError("the model has a length that can't be computed in an ONNX graph", fix=_FIX)

    def shape(self, lengths: Sequence[int | Length]) -> str:
        """Return the name of a shape."""
        constants = [length for length in lengths if not isinstance(length, Length)]
        if len(constants) == len(lengths):
            return self.graph.numbers(*constants)
        return self.graph.add("Concat", *map(self.length, lengths), axis=0)


def _merged(first: Any, second: Any, values: Mapping[int, Value]) -> Any:
    """Return arguments of an operation, with values in place of tensors and lengths in place of different numbers.

    Raises:
        UserError: something else differs, as a factor that was computed from a length.
    """
    if isinstance(first, Tensor):
        if id(first) not in values and first is not second and not _are_equal(first, second):
            raise UserError(_DIFFERS, fix=_FIX)
        return values.get(id(first), first)
    if isinstance(first, list | tuple):
        return [_merged(*pair, values) for pair in zip(first, second, strict=True)]
    if isinstance(first, dict):
        return {name: _merged(argument, second[name], values) for name, argument in first.items()}
    if first == second:
        return first
    if type(first) is not int:
        raise UserError(_DIFFERS, fix=_FIX)
    return Length(first, second)


def _are_equal(first: Tensor, second: Tensor) -> bool:
    """Return whether constants are equal; NaN equals itself."""
    if first.shape != second.shape:
        return False
    both_nan = first.isnan() & second.isnan()
    return bool((both_nan | (first == second)).all())


def _depends_on_inputs(x: Any) -> bool:
    if isinstance(x, dict):
        x = [*x.values()]
    return isinstance(x, Value | Length) or (isinstance(x, list) and any(map(_depends_on_inputs, x)))


OPSET = 18
"""The version of the standard operators."""


class Graph:
    """A graph under construction. Values are represented by their names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.results: dict[Any, list[str]] = {}
        self.constants: dict[Any, tuple[str, Tensor]] = {}
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output, and return its name. An empty input name stands for a missing input."""
        (name,) = self.add_several(operator, 1, *inputs, **attributes)
        return name

    def add_several(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with `count` outputs, unless there is the same one, and return their names."""
        key = operator, count, inputs, repr(attributes)
        if key not in self.results:
            names = self.results[key] = [f"{operator}.{len(self.nodes)}.{output}" for output in range(count)]
            self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return self.results[key]

    def constant(self, values: Tensor) -> str:
        """Add a constant, float32 in place of other floating-point types. Weights that layers share are stored once."""
        array = (values.detach().float() if values.is_floating_point() else values).contiguous().numpy()
        key = values.data_ptr(), values.dtype, values.shape, values.stride()
        if key not in self.constants:
            name = f"constant.{len(self.constants)}"
            self.constants[key] = name, values  # which keeps its memory, so that no other constant gets its address
            self.initializers.append(numpy_helper.from_array(array, name))
        return self.constants[key][0]

    def numbers(self, *values: int) -> str:
        """Add a constant vector of whole numbers, such as a shape or axes."""
        return self.constant(torch.tensor(values, dtype=torch.long))

    @staticmethod
    def type_of(dtype: torch.dtype) -> int:
        """Return ONNX's number of a type of tensors."""
        types = onnx.TensorProto
        return {torch.bool: types.BOOL, torch.long: types.INT64, torch.int32: types.INT32}.get(dtype, types.FLOAT)

    def input(
        self, name: str, dtype: torch.dtype, axes: Mapping[int, str], shape: Sequence[int | None] = (None, None)
    ) -> str:
        """Declare an input; `axes`: the names of the axes whose lengths vary, `shape`: the lengths of the others."""
        lengths: list[Any] = [*shape]
        for axis, length in axes.items():
            lengths[axis] = length
        if None in lengths:
            lengths = [*axes.values()]
        self.inputs.append(helper.make_tensor_value_info(name, self.type_of(dtype), lengths))
        return name

    def output(self, name: str, value: str, dtype: torch.dtype = torch.float32) -> None:
        """Declare an output."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, self.type_of(dtype), None))

    def save(self, file: Path) -> None:
        """Write the nodes that the outputs need, with their constants."""
        needed, nodes = {output.name for output in self.outputs}, []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                nodes.append(node)
        constants = [constant for constant in self.initializers if constant.name in needed]
        graph = helper.make_graph(nodes[::-1], "translucid", self.inputs, self.outputs, constants)
        versions = {"": OPSET} | {node.domain: 1 for node in nodes if node.domain}
        operators = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
        onnx.save(helper.make_model(graph, opset_imports=operators, ir_version=9), file)
