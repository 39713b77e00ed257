"""Checks that CPU time grows in proportion to the size of an input, and not with its square."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

TIMES = 3
"""The factor above proportional growth that may be noise of the machine."""
TRIES = 3
"""The number of measurements after which excessive growth is no longer taken for noise."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector, as its time depends on what other tests have left behind."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def assert_linear(work: Callable[[int], Callable[[], object]], few: int, many: int) -> None:
    """Check that the CPU time for `many` parts is at most in proportion to that for `few`, up to the factor `TIMES`.

    Args:
        work: called with the number of parts; it builds the input and returns the function to be measured.
        few: parts of the small input.
        many: parts of the large input.
    """

    def seconds(count: int) -> float:
        measured_work = work(count)
        start = process_time()
        measured_work()
        return process_time() - start

    assert_linear_seconds(seconds, few, many)


def assert_linear_seconds(seconds: Callable[[int], float], few: int, many: int, negligible: float = 0.05) -> None:
    """Check that the seconds for `many` parts are at most in proportion to those for `few`, up to the factor `TIMES`.

    Args:
        seconds: returns the seconds for a number of parts.
        few: parts of the small input.
        many: parts of the large input, at least eight times as many, so that a square is far above the bound.
        negligible: seconds that the large input may always take.
    """
    assert many >= 8 * few
    measured = []
    with no_garbage_collection():
        for _ in range(TRIES):
            small, large = seconds(few), seconds(many)
            if large < TIMES * many / few * small + negligible:
                return
            measured.append((round(small, 4), round(large, 4)))
    raise AssertionError(f"seconds of {few:,} and {many:,} parts: {measured}")
