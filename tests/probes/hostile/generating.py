"""Values from Hypothesis without shrinking, as all values are tried and failures are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

Value = TypeVar("Value")

AT_ONCE = 2000
"""The number of values from one seed; Hypothesis records them, which gets slow."""


def each(strategy: SearchStrategy[Value], count: int, seed: int, act: Callable[[Value], None]) -> None:
    """Call `act` with `count` values, the same ones for the same seed. It must not raise."""
    count_done = 0
    while count_done < count:

        @hypothesis.seed(seed * 1_000_003 + count_done)
        @settings(
            max_examples=min(AT_ONCE, count - count_done),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def run_example(value: Value) -> None:
            nonlocal count_done
            if count_done < count:
                count_done += 1
                act(value)

        run_example()
