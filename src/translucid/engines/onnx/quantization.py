"""Products with weights of 8 bits in graphs for ONNX Runtime.

x W^T has a row of x for each hypothesis or source token. R = round(W / t) has a scale t for each output, q = round(x /
s) a scale s for each row, and x W^T ≈ s (q R^T) t. Nothing else enters a row, so a translation does not depend on the
others of its batch. ONNX Runtime's `quantize_dynamic` has a single s for all rows: it is faster, and a batch changes
translations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper, numpy_helper

from translucid.engines.onnx.recording import Graph

WEIGHTS, ROWS, MIDDLE = 63, 127, 128
"""The largest numbers of R and of q, and the uint8 that stands for a zero of q.

R has half of the range of int8: processors without VNNI add up pairs of products in 16 bits, which the whole range
would overflow.
"""
SMALLEST = 1e-30
"""The smallest scale, which a row or a column of zeros has."""


def quantize_products(graph: Graph) -> None:
    """Replace the products with constant weights W [outputs, inputs] that a graph has."""
    matrices = {constant.name: constant for constant in graph.initializers if len(constant.dims) == 2}
    writer = _Writer(graph)
    nodes, graph.nodes = graph.nodes, writer.nodes
    for node in nodes:
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        if node.op_type == "Gemm" and transposed and node.input[1] in matrices:
            rows, weights, *bias = node.input
            weights_int8, scale = writer.weights(weights, numpy_helper.to_array(matrices[weights]))
            writer.product(rows, weights_int8, scale, bias, node.output[0])
        else:
            writer.nodes.append(node)


class _Writer:
    """Adds nodes and constants to a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[NodeProto] = []
        self.known_rows: dict[str, tuple[str, str]] = {}
        self.known_weights: dict[str, tuple[str, str]] = {}
        self.unit = self.constant("int8.unit", np.float32(1 / ROWS))
        self.smallest = self.constant("int8.smallest", np.float32(SMALLEST))
        self.middle = self.constant("int8.middle", np.uint8(MIDDLE))
        self.one = self.constant("int8.one", np.float32(1))
        self.last_axis = self.constant("int8.last_axis", np.array([-1]))

    def constant(self, name: str, values: np.generic | NDArray[Any]) -> str:
        self.graph.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, name: str, operator: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def weights(self, name: str, weights: NDArray[np.float32]) -> tuple[str, str]:
        """Return the names of R^T [inputs, outputs] and of t [outputs]."""
        if name not in self.known_weights:
            scale = np.maximum(np.abs(weights).max(1) / WEIGHTS, SMALLEST).astype(np.float32)
            rounded = np.rint(weights / scale[:, None]).astype(np.int8)
            constants = self.constant(f"{name}.int8", rounded.T.copy()), self.constant(f"{name}.scale", scale)
            self.known_weights[name] = constants
        return self.known_weights[name]

    def rows(self, name: str) -> tuple[str, str]:
        """Return the names of q [N, inputs] and of s [N, 1], for rows [N, inputs]."""
        if name not in self.known_rows:
            largest = self.add(f"{name}.largest", "ReduceMax", self.add(f"{name}.abs", "Abs", name), self.last_axis)
            column = self.add(f"{name}.column", "Max", self.add(f"{name}.s", "Mul", largest, self.unit), self.smallest)
            scale = self.add(f"{name}.scale", "Squeeze", column, self.last_axis)
            count = self.add(f"{name}.count", "Shape", scale)
            zeros = self.add(f"{name}.zeros", "Expand", self.middle, count)
            self.known_rows[name] = self.add(f"{name}.q", "QuantizeLinear", name, scale, zeros, axis=0), column
        return self.known_rows[name]

    def product(self, rows: str, weights: str, scale: str, bias: list[str], output: str) -> None:
        """Add s (q R^T) t, and the bias if there is one."""
        q, column = self.rows(rows)
        inputs = q, weights, self.one, scale, self.middle
        product = self.add(f"{output}.product", "MatMulIntegerToFloat", *inputs, domain="com.microsoft")
        if bias:
            self.add(output, "Add", self.add(f"{output}.scaled", "Mul", product, column), *bias)
        else:
            self.add(output, "Mul", product, column)
