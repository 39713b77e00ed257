"""The terminal: texts that others have written, and the progress of long work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.progress import ProgressColumn as Column
from rich.segment import Segment
from rich.text import Text

_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that command a terminal, break a line or turn its direction round, and what no terminal can be sent."""


class Console(RichConsole):
    """Rich's console for any text: nothing in it is markup, and control characters are written as escapes.

    Style is given as style, as in `Text("BLEU", "bold")`.
    """

    def __init__(
        self, *, stderr: bool = False, file: IO[str] | None = None, width: int | None = None, quiet: bool = False
    ) -> None:
        """`stderr`: on standard error instead of standard output; `quiet`: nowhere."""
        super().__init__(stderr=stderr, file=file, width=width, quiet=quiet, markup=False, emoji=False, highlight=False)

    def print(self, *objects: Any, **more: Any) -> None:
        """Print as Rich does, but cut no line short that escapes have made longer than the terminal is wide."""
        super().print(*objects, **{"crop": False, **more})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return what is written, piece by piece; Rich calls this for all that it prints."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=_harmless(segment.text))


@contextmanager
def counting(
    console: Console, what: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show a bar, the rate and the time left, where somebody watches; yields what to tell how many more are done."""
    columns = TextColumn(what), BarColumn(bar_width=20), MofNCompleteColumn(), _Rate(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


class _Rate(Column):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


def _harmless(text: str) -> str:
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
