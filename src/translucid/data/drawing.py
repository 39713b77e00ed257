"""A sample of a stream of any length."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def draw(stream: Iterable[Item], most: int, seed: int) -> list[Item]:
    """Return all of a stream, or `most` of it drawn uniformly (reservoir sampling, Vitter 1985)."""
    drawn: list[Item] = []
    generator = random.Random(seed)
    for seen, item in enumerate(stream):
        if seen < most:
            drawn.append(item)
        elif (place := generator.randrange(seen + 1)) < most:
            drawn[place] = item
    return drawn
