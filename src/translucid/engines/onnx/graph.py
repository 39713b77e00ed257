"""Writing a graph of ONNX operators, node by node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from torch import Tensor, nn

OPSET = 18
"""The version of the standard operators."""
CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operators, such as multi-head attention."""


class Graph:
    """A graph under construction. Values are represented by their names."""

    def __init__(self) -> None:
        """Start without nodes."""
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[Tensor, str] = {}
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return its name. An empty input name stands for a missing input."""
        (name,) = self.add_several(operator, 1, *inputs, domain=domain, **attributes)
        return name

    def add_several(self, operator: str, count: int, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        """Add a node with `count` outputs, and return their names."""
        number = len(self.nodes)
        names = [f"{operator}.{number}.{output}" for output in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names

    def constant(self, values: Tensor | NDArray[Any]) -> str:
        """Add a constant, of float32 if it is a tensor. Weights that layers share are stored once."""
        if isinstance(values, Tensor):
            if values not in self.constants:
                self.constants[values] = self.constant(values.detach().float().cpu().numpy())
            return self.constants[values]
        name = f"constant.{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def numbers(self, *values: int) -> str:
        """Add a constant vector of whole numbers, such as a shape or axes."""
        return self.constant(np.array(values, np.int64))

    def input(self, name: str, *, integer: bool = False) -> str:
        """Declare an input, float32 or int64 (`integer`), of any shape."""
        self.inputs.append(_value(name, integer))
        return name

    def output(self, name: str, value: str, *, integer: bool = False) -> None:
        """Declare an output."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(_value(name, integer))

    def save(self, file: Path) -> None:
        """Write the graph with its constants."""
        graph = helper.make_graph(self.nodes, "translucid", self.inputs, self.outputs, self.initializers)
        operators = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        onnx.save(helper.make_model(graph, opset_imports=operators, ir_version=9), file)

    def linear(self, x: str, *layers: nn.Linear) -> str:
        """Return x W^T + b for x [N, inputs]; the outputs of several layers side by side, from one product."""
        weight: Tensor = layers[0].weight
        bias: Tensor | None = layers[0].bias
        if len(layers) > 1:
            weight = torch.cat([layer.weight for layer in layers])
            bias = torch.cat([layer.bias for layer in layers])
        inputs = [x, self.constant(weight)]
        if bias is not None:
            inputs.append(self.constant(bias))
        return self.add("Gemm", *inputs, transB=1)

    def norm(self, x: str, module: nn.Module) -> str:
        """Layer normalization, or nothing where the model has nothing."""
        if not isinstance(module, nn.LayerNorm):
            return x
        scale, shift = self.constant(module.weight), self.constant(module.bias)
        return self.add("LayerNormalization", x, scale, shift, epsilon=module.eps)

    def shape(self, value: str, count: int, *lengths: int) -> str:
        """Return a shape: the first `count` lengths of a value, followed by `lengths`."""
        return self.add("Concat", self.add("Shape", value, end=count), self.numbers(*lengths), axis=0)

    def zeros(self, shape: str) -> str:
        """Return zeros of a shape."""
        return self.add("Expand", self.constant(np.zeros((), np.float32)), shape)

    def reshape(self, x: str, *shape: int) -> str:
        """Change the shape; -1 is the length that the others leave, 0 that of the input."""
        return self.add("Reshape", x, self.numbers(*shape))


def _value(name: str, integer: bool) -> onnx.ValueInfoProto:
    kind = onnx.TensorProto.INT64 if integer else onnx.TensorProto.FLOAT
    return helper.make_tensor_value_info(name, kind, None)
