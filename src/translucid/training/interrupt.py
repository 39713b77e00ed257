"""Interruption of a training by Ctrl-C or SIGTERM, after which a checkpoint is saved."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

from translucid.ground.interruption import Interrupted


class Interrupt:
    """A context in which the first Ctrl-C or SIGTERM only requests the end, and a second one ends at once."""

    def __init__(self) -> None:
        """Create a context without a request."""
        self.asked = 0
        """The number of the signal that asked for the end; 0 if none has."""
        self.before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.before[number] = signal.signal(number, self._ask)
            except ValueError:  # not the main thread, the only one that may set handlers; the caller handles signals
                break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise Interrupted(number)
        self.asked = number
