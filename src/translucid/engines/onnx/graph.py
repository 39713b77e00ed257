"""Writing a graph of ONNX operators, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import helper, numpy_helper
from torch import Tensor

OPSET = 18
"""The version of the standard operators."""


class Graph:
    """A graph under construction. Values are represented by their names."""

    def __init__(self) -> None:
        """Start without nodes."""
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
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9), file)
