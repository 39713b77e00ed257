"""Try bad inputs one after another, each with a time limit, and count the outcomes."""

from __future__ import annotations

import contextlib
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

from translucid.ground.errors import UserError

SHOWN = 1000
"""Characters of a failing input that are kept."""
PATIENCE = 10
"""Seconds of wall-clock time per second of CPU time: other jobs may share the core, and waiting uses no CPU."""


class TooLong(BaseException):
    """The time limit was exceeded; `except Exception` does not catch this."""


@dataclass
class Tally:
    """The outcomes of the inputs of one target."""

    target: str
    tried: int = 0
    refused: int = 0
    """Inputs rejected with one clear line."""
    accepted: int = 0
    """Valid inputs with correct results."""
    failures: list[str] = field(default_factory=list)
    """Errors with the inputs that reproduce them."""

    def attempt(self, case: object, action: Callable[[], object], seconds: float = 20) -> None:
        """Call `action`, which must return or raise a UserError of one line; assertions are failures, too."""
        self.tried += 1
        try:
            with time_limit(seconds):
                action()
            self.accepted += 1
        except UserError as error:
            if str(error).isprintable() and 5 < len(str(error)) < 3000:
                self.refused += 1
            else:
                self.fail(case, f"not one clear line: {str(error)!r}")
        except KeyboardInterrupt:
            raise
        except TooLong:
            self.fail(case, f"took more than {seconds} seconds")
        except BaseException as error:  # a panic in Rust is a BaseException
            self.fail(case, "".join(traceback.format_exception(error, limit=-4)))

    def fail(self, case: object, problem: str) -> None:
        """Record a failure."""
        self.failures.append(f"{repr(case)[:SHOWN]}\n{problem[:3000]}")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        """`corpora: 1,000 tried, 700 refused with a clear line, 300 accepted, 0 failures`."""
        return (
            f"{self.target}: {self.tried:,} tried, {self.refused:,} refused with a clear line, "
            f"{self.accepted:,} accepted, {len(self.failures):,} failures"
        )


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after so many seconds of work, or ten times as many of waiting; for the main thread only."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TooLong

    kinds = ((signal.SIGPROF, signal.ITIMER_PROF, 1), (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE))
    before = [signal.signal(number, over) for number, _, _ in kinds]
    for _, timer, times in kinds:
        signal.setitimer(timer, times * seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(kinds, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
