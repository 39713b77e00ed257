"""Ctrl-C that saves."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

from translucid.ground.interruption import Interrupted


class Interrupt:
    """Within it, a first Ctrl-C or SIGTERM only asks for the end; a second one ends at once."""

    def __init__(self) -> None:
        """Not asked yet."""
        self.asked = 0
        """The number of the signal that asked for the end; 0 if none has."""
        self.before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.before[number] = signal.signal(number, self._ask)
            except ValueError:  # not in the main thread: whoever runs us there handles signals
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
