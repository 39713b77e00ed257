"""CPU time that grows with the size of an input, and not with its square."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

TIMES = 3
"""How much more than in proportion is put down to the machine."""
TRIES = 3
"""How often is measured before the machine is not to blame."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Do without the garbage collector: its time depends on what other tests have left behind."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def assert_linear(work: Callable[[int], Callable[[], object]], few: int, many: int) -> None:
    """Check that an input of `many` parts takes at most so many times the CPU time of one of `few`.

    Args:
        work: called with the number of parts; it builds the input and returns what is to be measured.
        few: parts of the small input.
        many: parts of the large input.
    """

    def seconds(count: int) -> float:
        measured = work(count)
        started = process_time()
        measured()
        return process_time() - started

    assert_linear_seconds(seconds, few, many)


def assert_linear_seconds(seconds: Callable[[int], float], few: int, many: int, negligible: float = 0.05) -> None:
    """Check the seconds that inputs of `few` and of `many` parts take.

    Args:
        seconds: of a number of parts.
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
