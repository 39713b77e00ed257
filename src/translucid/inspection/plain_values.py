"""Numbers and tensors as rounded plain values, for JSON that stays small."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor


def rounded(values: Iterable[float], digits: int) -> list[float]:
    """Round numbers to this many decimals."""
    return [round(value, digits) for value in values]


def rounded_probability(log_prob: float) -> float:
    """Return the probability of a log-probability, rounded to six decimals."""
    return round(min(1.0, math.exp(log_prob)), 6)  # a rounding error may make a log-probability positive


def plain(tensor: Tensor, digits: int = 4) -> Any:
    """Round a tensor of any shape to this many decimals, as nested lists."""
    # In float64, because JSON would write a float32 such as 0.12345 with all the digits of 0.12345000356435776.
    return (tensor.cpu().double() * 10**digits).round().div(10**digits).tolist()
