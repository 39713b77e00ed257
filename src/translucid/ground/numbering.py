"""Numbers of the items of a list."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)


def numbers_of(items: Iterable[Item]) -> dict[Item, int]:
    """Return the number of each item, from 0; that of the last one of several equal items."""
    return {item: number for number, item in enumerate(items)}
