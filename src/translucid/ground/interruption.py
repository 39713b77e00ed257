"""Ctrl-C and SIGTERM: both end a command in order, and its exit code says which of them it was."""

from __future__ import annotations

import signal
from contextlib import suppress
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A signal has ended the work; what is to be kept of it is saved."""

    def __init__(self, number: int) -> None:
        """`number`: of the signal."""
        super().__init__(number)
        self.exit_code = 128 + number
        """Of the process, as shells have it: 130 after Ctrl-C, 143 after SIGTERM."""


def raise_on_sigterm() -> None:
    """Let SIGTERM be raised as Ctrl-C is, so that half-written files are removed; for a program of its own."""
    signal.signal(signal.SIGTERM, _raise)


def die_of_sigterm() -> None:
    """Let SIGTERM end the process as it does by default, and its parent see that."""
    with suppress(ValueError):  # not in the main thread, where whoever runs us handles signals
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)
