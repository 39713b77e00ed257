"""Tensors as rounded plain values, for JSON that stays small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor


def rounded(values: Iterable[float], digits: int) -> list[float]:
    """Round numbers to this many decimals."""
    return [round(value, digits) for value in values]


def rounded_rows(matrix: Tensor, digits: int) -> list[list[float]]:
    """Round a matrix to this many decimals, as a list of rows."""
    return [rounded(row, digits) for row in matrix.tolist()]


def rounded_weights(weights: Tensor) -> Any:
    """Round a tensor of any shape to five decimals, as nested lists."""
    # In float64, because JSON would write a float32 such as 0.12345 with all the digits of 0.12345000356435776.
    return (weights.cpu().double() * 1e5).round().div(1e5).tolist()
