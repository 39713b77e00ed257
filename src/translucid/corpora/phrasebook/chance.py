"""Random choices."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def pick(rng: Random, choices: Sequence[T]) -> T:
    """Choose an item; faster than `Random.choice`, and as reproducible as `Random.random` in all Python versions."""
    return choices[int(rng.random() * len(choices))]


def weighted(rng: Random, choices: Sequence[tuple[float, T]]) -> T:
    """Choose an item by weight; the weights add up to 1."""
    remaining = rng.random()
    for weight, choice in choices:
        remaining -= weight
        if remaining < 0:
            return choice
    return choices[-1][1]


def sometimes(rng: Random, probability: float, choices: Sequence[T]) -> T | None:
    """Choose an item with this probability; otherwise, or if there are no choices, return None."""
    if choices and rng.random() < probability:
        return pick(rng, choices)
    return None
