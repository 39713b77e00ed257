"""What a person sees of a training, on standard error: a progress bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from translucid.ground.console import EVERY, Console
from translucid.training.validation import GENERAL, Validation

QUIET_SECONDS = 20.0
"""Between two plain lines where there is no terminal."""


class Status(NamedTuple):
    """Where the training stands."""

    step: int
    epoch: int
    done: float
    """Share of the whole training, 0 to 1."""
    seconds: float
    """Spent so far, earlier runs included."""
    loss: float
    perplexity: float
    accuracy: float
    tokens_per_second: float
    """Target tokens."""
    learning_rate: float
    skipped: int
    """Updates that were not made because the loss was not a finite number."""
    reward: float | None = None
    """Of a self-critical training, the mean of what its own captions are worth."""

    @property
    def seconds_left(self) -> float | None:
        """An estimate, once there is something to go by."""
        return self.seconds * (1 - self.done) / self.done if self.done > 0.001 else None

    def figures(self) -> dict[str, float | None]:
        """All of it by name; None is what is not known."""
        return {**self._asdict(), "total": 1.0, "seconds_left": self.seconds_left}

    def line(self) -> str:
        """All of it in one line."""
        left = "" if self.seconds_left is None else f"  {clock(self.seconds_left)} left"
        left += f"  {self.skipped:,} skipped" if self.skipped else ""
        reward = "" if self.reward is None else f"  reward {self.reward:.3f}"
        return (
            f"step {self.step:,}  epoch {self.epoch + 1}  loss {self.loss:.3f}  ppl {self.perplexity:.2f}  "
            f"acc {self.accuracy:.1%}{reward}  {self.tokens_per_second:,.0f} tokens/s{left}"
        )


class Display:
    """The progress bar and the lines above it."""

    def __init__(self, console: Console) -> None:
        """`console`: on standard error."""
        self.console = console
        self.bar = Progress(
            TextColumn("[bold]training"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f}%"),
            _StatusColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=1.0, line="")
        self.last_line = time.monotonic()

    def __enter__(self) -> Display:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def status(self, status: Status) -> None:
        """Show where the training stands."""
        if self.console.is_terminal:
            self.bar.update(self.task, completed=status.done, line=status.line())
        elif time.monotonic() - self.last_line > (EVERY if self.console.format == "json" else QUIET_SECONDS):
            self.last_line = time.monotonic()
            self.note(status.line(), figures=status.figures())

    def validation(self, step: int, found: Validation, told: str, best: bool) -> None:
        """Show the figures, the score in words, and three samples, others at each validation."""
        self.note(
            ("validation", "bold"),
            f" at step {step:,}: loss {found.loss:.3f}  ppl {found.perplexity:.2f}  acc {found.accuracy:.1%}  ",
            (told, "bold"),
            f"  ({found.measures['bleu']:.1f}, on the rest {found.measures[GENERAL]:.1f})"
            if GENERAL in found.measures
            else "",
            "  (best so far)" if best else "",
            figures={"step": step, "loss": found.loss, "best": best, **found.measures},
        )
        for i in range(3 if found.samples else 0):
            sample = found.samples[(step // 7 + i * 11) % len(found.samples)]
            self.note(("    source     ", "dim"), sample.source)
            self.note(("    reference  ", "dim"), sample.reference)
            self.note(("    hypothesis ", "dim"), sample.hypothesis)

    def note(self, *parts: str | tuple[str, str], figures: Mapping[str, Any] | None = None) -> None:
        """Print one line above the bar, of parts with or without a style; `figures` for who reads JSON lines."""
        self.console.print(Text.assemble(*parts), soft_wrap=True, figures=figures)


class _StatusColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(task.fields["line"])


def clock(seconds: float) -> str:
    """75 -> `1:15`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
