"""Splits of generated corpora: distinct examples, whose split depends on their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

from translucid.ground.errors import UserError

T = TypeVar("T")

HELD_OUT = 10
"""The percentage of examples in each of valid and test."""
PATIENCE = 30_000
"""The number of consecutive draws without a new example after which they count as exhausted."""


def percentile(content: str) -> int:
    """Return a number from 0 to 99 that depends on the content only."""
    return int.from_bytes(hashlib.blake2b(content.encode(), digest_size=4).digest(), "big") % 100


def split_of(content: str) -> Literal["train", "valid", "test"]:
    """Return the split of an example with this content."""
    percent = percentile(content)
    if percent < HELD_OUT:
        return "test"
    return "valid" if percent < 2 * HELD_OUT else "train"


def distinct(
    count: int, draw: Callable[[], T | None], content: Callable[[T], str], *, what: str, fix: str
) -> Iterator[T]:
    """Yield `count` random examples with distinct contents.

    Args:
        count: the number of examples.
        draw: returns an example, or None to reject the one that was drawn.
        content: returns the content of an example.
        what: the examples, for the message that there are too few.
        fix: the solution in that message.

    Raises:
        UserError: there are too few.
    """
    seen: set[str] = set()
    failures = 0
    while len(seen) < count:
        if failures > PATIENCE:
            raise UserError(f"only {len(seen)} of {count} {what}", fix=fix)
        failures += 1
        example = draw()
        if example is not None and content(example) not in seen:
            seen.add(content(example))
            failures = 0
            yield example
