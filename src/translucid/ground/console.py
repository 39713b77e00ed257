"""The terminal: printing untrusted text, JSON log lines, and the progress of long work."""

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
from typing import Any, ClassVar, Literal

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, OverflowMethod, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.progress import ProgressColumn as Column
from rich.segment import Segment
from rich.status import Status
from rich.table import Table
from rich.text import Text

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, characters that change the direction of text, and lone surrogates.

The last are no valid UTF-8. Tabs and line feeds are harmless.
"""

PROGRESS_INTERVAL = 1.0
"""The shortest time between two JSON lines of progress, in seconds."""
PIPE_INTERVAL = 20.0
"""The time between two lines of progress in a pipe or a file; work that is done before writes none."""

LogFormat = Literal["text", "json", "off"]
"""What is written to standard error: text for people; one JSON object per line; warnings and errors only."""

_LEVELS = {"warning:": "warning", "error:": "error", "internal error:": "error"}
"""The level of a message by its prefix; other messages have the level `info`."""


class Console(RichConsole):
    """Rich's console for any text: it interprets no markup, and writes control characters as escapes.

    Pass styles explicitly, as in `Text("BLEU", "bold")`.
    """

    log_format: ClassVar[LogFormat] = "text"
    """The format of all consoles on standard error."""
    named: ClassVar[Callable[[str], str]] = str
    """The function that names the parameters in messages on standard error; the command line names its flags."""

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        """Open a console on standard output or error; `options` of Rich's are `file`, `width` and `quiet`."""
        if stderr and self.log_format != "text":  # otherwise Rich finds out whether this is a terminal
            options["force_terminal"] = False
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, **options)

    @property
    def format(self) -> LogFormat:
        """The format of this console."""
        return self.log_format if self.stderr else "text"

    def print(self, *objects: Any, figures: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Print as Rich does, but do not crop lines that escapes have made longer than the terminal is wide.

        Args:
            objects: what is printed.
            figures: further fields of a JSON line.
            options: keyword arguments of Rich's `print`.
        """
        if self.stderr:
            objects = tuple(map(_with_names, objects))
        if self.format == "text":
            if len(objects) == 1 and isinstance(objects[0], Text) and objects[0].no_wrap:
                options = {"soft_wrap": True, **options}
            super().print(*objects, **{"crop": False, **options})
            return
        line = _plain_text(objects)
        level = _level(line)
        if self.quiet or (self.format == "off" and level == "info"):
            return
        if self.format == "json":
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            record = {"time": now, "level": level, "message": line}
            for name, figure in (figures or {}).items():
                record[name] = _json_number(figure)
            line = json.dumps(record, ensure_ascii=False)
        print(line, file=sys.stderr, flush=True)

    def on_broken_pipe(self) -> None:
        """Leave it to the caller that the reader of standard output has ended, as `head` does: that is no failure.

        Raises:
            BrokenPipeError: always on standard output; Rich would exit with 1.
        """
        if self.stderr:
            super().on_broken_pipe()
        raise BrokenPipeError

    def status(self, status: RenderableType, *, is_long: bool = False, **options: Any) -> Status:
        """Show what is being done, as Rich does; a pipe or a file gets long work as a line instead."""
        if is_long and not (self.is_terminal or self.is_jupyter):
            self.print(status, soft_wrap=True)
        return super().status(status, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return what is written, segment by segment; Rich calls this for everything that it prints."""
        for segment in super().render(renderable, options):
            if segment.control:  # Rich's own codes, such as those that move the cursor
                yield segment
            else:
                yield segment._replace(text=_UNSAFE.sub(_escape, segment.text))


def _with_names(item: Any) -> Any:
    """Return what is printed, with the names of parameters in it if it is a message."""
    return Console.named(item) if isinstance(item, str) else item


def unbroken(text: str, style: str = "dim") -> Text:
    """Return a text that is printed in one line however wide the terminal is, so that it can be copied."""
    return Text(text, style, no_wrap=True, overflow="ignore")


def table_of(*words: str, figures: Iterable[str] = (), overflow: OverflowMethod = "ellipsis") -> Table:
    """Return an empty table with columns of words and, on their right, columns of figures."""
    table = Table(box=None, pad_edge=False)
    for column in words:
        table.add_column(column, overflow=overflow)
    for column in figures:
        table.add_column(column, justify="right", overflow=overflow)
    return table


@contextmanager
def progress_bar(
    console: Console, label: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar with the rate and the time left; yields a function that advances it.

    In a pipe or a file, a line every `PIPE_INTERVAL` seconds takes its place.
    """
    if console.format == "json" or not (console.is_terminal or hidden or console.format == "off"):
        with _progress_lines(console, label, total) as advance:
            yield advance
        return
    columns = TextColumn(label), BarColumn(bar_width=20), MofNCompleteColumn(), _Rate(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def _progress_lines(console: Console, label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Write the progress as lines, at most one in an interval; as JSON, also one at the end."""
    done, written, started = 0, -1, time.monotonic()
    last_time, is_json = started, console.format == "json"
    interval = PROGRESS_INTERVAL if is_json else PIPE_INTERVAL

    def write() -> None:
        nonlocal written, last_time
        written, last_time = done, time.monotonic()
        line = label if is_json else _progress_line(label, done, total, last_time - started)
        console.print(line, figures={"done": done, "total": total}, soft_wrap=True)

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if time.monotonic() - last_time >= interval:
            write()

    try:
        yield advance
    finally:
        if is_json and written != done:
            write()


def _progress_line(label: str, done: int, total: int | None, seconds: float) -> str:
    """Return a line such as `translating: 1,200 of 5,000 (24 %), 3:10 left`."""
    line = f"{label}: {done:,}"
    if total:
        line += f" of {total:,} ({done / total:.0%})"
    if total and 0 < done < total:
        minutes, rest = divmod(round(seconds * (total - done) / done), 60)
        line += f", {minutes}:{rest:02} left"
    return line


class _Rate(Column):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


def _level(message: str) -> str:
    for prefix, level in _LEVELS.items():
        if message.startswith(prefix):
            return level
    return "info"


def _json_number(figure: Any) -> Any:
    """Return a value for JSON, which has no infinities and no NaN."""
    if isinstance(figure, float) and not math.isfinite(figure):
        return None
    return figure


def _plain_text(objects: Iterable[Any]) -> str:
    """Return what Rich prints without colors on a terminal so wide that it breaks no line."""
    file = StringIO()
    Console(file=file, width=10_000).print(*objects, soft_wrap=True)
    lines = file.getvalue().rstrip("\n").split("\n")
    return "\n".join(map(str.rstrip, lines))  # Rich fills up the cells of a table with spaces


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
