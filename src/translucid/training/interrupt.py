"""Interruption of a training by Ctrl-C or SIGTERM, after which a checkpoint is saved."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

from translucid.ground.interruption import Interrupted


class Interrupt:
    """A context in which the first Ctrl-C or SIGTERM only requests the end, and a second one ends at once."""

    def __init__(self) -> None:
        """Create a context without a request."""
        self.signal_number = 0
        """The number of the signal that asked for the end; 0 if none has."""
        self.previous_handlers: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.previous_handlers[number] = signal.signal(number, self._request_end)
            except ValueError:  # not the main thread, the only one that may set handlers; the caller handles signals
                break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.previous_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _request_end(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number:
            raise Interrupted(number)
        self.signal_number = number
