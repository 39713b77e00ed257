"""Values from Hypothesis without its hunt for the smallest: what fails is counted, and the rest is tried as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

Value = TypeVar("Value")

AT_ONCE = 2000
"""Values from one seed; Hypothesis remembers what it has drawn, which gets slow."""


def each(strategy: SearchStrategy[Value], count: int, seed: int, act: Callable[[Value], None]) -> None:
    """Call `act` with `count` values, the same ones for the same seed. It must not raise."""
    done = 0
    while done < count:

        @hypothesis.seed(seed * 1_000_003 + done)
        @settings(
            max_examples=min(AT_ONCE, count - done),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def one(value: Value) -> None:
            nonlocal done
            if done < count:
                done += 1
                act(value)

        one()
