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


def seconds_of(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    with no_garbage_collection():
        started = process_time()
        work()
        return process_time() - started


def assert_linear(work: Callable[[int], object], few: int, many: int, negligible: float = 0.05) -> None:
    """Check that an input of `many` parts takes at most so many times the CPU time of one of `few`.

    Args:
        work: called with the number of parts; it builds the input and returns what is to be measured.
        few: parts of the small input.
        many: parts of the large input, at least eight times as many, so that a square is far above the bound.
        negligible: seconds that the large input may always take.
    """
    assert many >= 8 * few
    measured = []
    for _ in range(TRIES):
        small, large = (seconds_of(work(count)) for count in (few, many))
        if large < TIMES * many / few * small + negligible:
            return
        measured.append((round(small, 4), round(large, 4)))
    raise AssertionError(f"seconds of {few:,} and {many:,} parts: {measured}")
