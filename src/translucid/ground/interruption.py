"""Ctrl-C and SIGTERM: both end a command cleanly, and its exit code tells them apart."""

from __future__ import annotations

import signal
from contextlib import suppress
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A signal has ended the work, whose partial results are saved."""

    def __init__(self, number: int) -> None:
        """Store the exit code for the signal of this number."""
        super().__init__(number)
        self.exit_code = 128 + number
        """The exit code of the process by the convention of shells: 130 after Ctrl-C, 143 after SIGTERM."""


def raise_on_sigterm() -> None:
    """Raise SIGTERM as an exception, as Python does with Ctrl-C, so that half-written files are removed.

    Only a command may do this: a program that uses the package as a library handles its signals itself.
    """
    signal.signal(signal.SIGTERM, _raise)


def die_of_sigterm() -> None:
    """Restore the default action of SIGTERM, which ends the process so that its parent sees the signal."""
    with suppress(ValueError):  # only the main thread may set signals; elsewhere the program that runs us handles them
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(signal_number: int, frame: FrameType | None) -> None:
    raise Interrupted(signal_number)
