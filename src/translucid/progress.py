"""Progress of long work, on standard error and only where somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.progress import ProgressColumn as Column
from rich.text import Text

from translucid.console import Console


@contextmanager
def counting(
    console: Console, what: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show a bar, the rate and the time left; yields the function to call with how many more are done."""
    columns = TextColumn(what), BarColumn(bar_width=20), MofNCompleteColumn(), _Rate(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


class _Rate(Column):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")
