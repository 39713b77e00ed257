"""The terminal: texts that others have written, and the progress of long work."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO
from typing import IO, Any, ClassVar, Literal

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.progress import ProgressColumn as Column
from rich.segment import Segment
from rich.text import Text

_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that command a terminal, break a line or turn its direction round, and what no terminal can be sent."""


EVERY = 1.0
"""Seconds between two JSON lines of progress, at least."""

LogFormat = Literal["text", "json", "off"]
"""What is written on standard error: for people; a JSON object a line; warnings and errors only."""

_LEVELS = {"warning:": "warning", "error:": "error", "internal error:": "error"}
"""Of messages, by what they begin with; of all others it is `info`."""


class Console(RichConsole):
    """Rich's console for any text: nothing in it is markup, and control characters are written as escapes.

    Style is given as style, as in `Text("BLEU", "bold")`.
    """

    log_format: ClassVar[LogFormat] = "text"
    """Of all consoles on standard error."""

    def __init__(
        self, *, stderr: bool = False, file: IO[str] | None = None, width: int | None = None, quiet: bool = False
    ) -> None:
        """`stderr`: on standard error instead of standard output; `quiet`: nowhere."""
        plain = stderr and self.log_format != "text"
        super().__init__(
            stderr=stderr,
            file=file,
            width=width,
            quiet=quiet,
            markup=False,
            emoji=False,
            highlight=False,
            force_terminal=False if plain else None,
        )

    @property
    def format(self) -> LogFormat:
        """How this console writes."""
        return self.log_format if self.stderr else "text"

    def print(self, *objects: Any, figures: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Print as Rich does, but cut no line short that escapes have made longer than the terminal is wide.

        Args:
            objects: to print.
            figures: what stands beside the message in a JSON line.
            more: of Rich.
        """
        if self.format == "text":
            super().print(*objects, **{"crop": False, **more})
            return
        message = _plain(objects)
        level = next((level for word, level in _LEVELS.items() if message.startswith(word)), "info")
        if self.quiet or (self.format == "off" and level == "info"):
            return
        if self.format == "off":
            line = message
        else:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            finite = {name: None if _no_number(figure) else figure for name, figure in (figures or {}).items()}
            line = json.dumps({"time": now, "level": level, "message": message, **finite}, ensure_ascii=False)
        print(line, file=sys.stderr, flush=True)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return what is written, piece by piece; Rich calls this for all that it prints."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=_harmless(segment.text))


@contextmanager
def counting(
    console: Console, what: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show a bar, the rate and the time left, where somebody watches; yields what to tell how many more are done."""
    if console.format == "json":
        with _counting_in_lines(console, what, total) as advance:
            yield advance
        return
    columns = TextColumn(what), BarColumn(bar_width=20), MofNCompleteColumn(), _Rate(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def _counting_in_lines(console: Console, what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Write how many are done, at most once in `EVERY` seconds, and in the end."""
    done, told, last = 0, -1, time.monotonic()

    def tell() -> None:
        nonlocal told, last
        told, last = done, time.monotonic()
        console.print(what, figures={"done": done, "total": total})

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if time.monotonic() - last >= EVERY:
            tell()

    try:
        yield advance
    finally:
        if told != done:
            tell()


class _Rate(Column):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


def _no_number(figure: Any) -> bool:
    """Infinities are none in JSON."""
    return isinstance(figure, float) and not math.isfinite(figure)


def _plain(objects: Iterable[Any]) -> str:
    """Return what Rich would print, of a terminal so wide that it breaks no line, without colours."""
    file = StringIO()
    Console(file=file, width=10_000).print(*objects, soft_wrap=True)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def _harmless(text: str) -> str:
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
