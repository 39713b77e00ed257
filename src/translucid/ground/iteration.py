"""Iteration over items in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` items, the last one perhaps shorter, as `itertools.batched` does since Python 3.12."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
