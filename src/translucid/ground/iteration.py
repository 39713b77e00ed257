"""Iteration over items in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield `size` items at a time, at last fewer, as `itertools.batched` does from Python 3.12 on."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
