"""The display of a training on standard error: a progress bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from translucid.ground.console import PROGRESS_INTERVAL, Console
from translucid.training.validation import ALIGNMENT_LOSS, GENERAL, Validation

QUIET_SECONDS = 20.0
"""The time between two plain lines without a terminal."""


class Status(NamedTuple):
    """The progress and the recent figures of a training."""

    step: int
    epoch: int
    done: float
    """The share of the whole training, 0 to 1."""
    seconds: float
    """The time spent so far, earlier runs included."""
    loss: float
    perplexity: float
    accuracy: float
    tokens_per_second: float
    """Target tokens."""
    learning_rate: float
    skipped: int
    """Updates that were skipped because the loss was not a finite number."""
    reward: float | None = None
    """The mean reward of sampled captions, in self-critical training."""

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the remaining time; None in the first thousandth of the training."""
        return self.seconds * (1 - self.done) / self.done if self.done > 0.001 else None

    def figures(self) -> dict[str, float | None]:
        """Return all figures by name; those that are not known are None."""
        return {**self._asdict(), "total": 1.0, "seconds_left": self.seconds_left}

    def line(self) -> str:
        """Return the figures in one line, without those that are not known."""
        figures = [
            f"step {self.step:,}  epoch {self.epoch + 1}  loss {self.loss:.3f}  ppl {self.perplexity:.2f}",
            f"acc {self.accuracy:.1%}",
        ]
        if self.reward is not None:
            figures.append(f"reward {self.reward:.3f}")
        figures.append(f"{self.tokens_per_second:,.0f} tokens/s")
        if self.seconds_left is not None:
            figures.append(f"{clock(self.seconds_left)} left")
        if self.skipped:
            figures.append(f"{self.skipped:,} skipped")
        return "  ".join(figures)


class Display:
    """The progress bar and the lines above it."""

    def __init__(self, console: Console) -> None:
        """Show the training on a console, which writes to standard error."""
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

    def status(self, status: Status) -> None:
        """Show the progress, now and then if there is no terminal."""
        if self.console.is_terminal:
            self.bar.update(self.task, completed=status.done, line=status.line())
            return
        interval = PROGRESS_INTERVAL if self.console.format == "json" else QUIET_SECONDS
        if time.monotonic() - self.last_line > interval:
            self.last_line = time.monotonic()
            self.note(status.line(), figures=status.figures())

    def validation(self, step: int, validation: Validation, score: str, best: bool) -> None:
        """Show the figures of a validation, its score in words, and three samples."""
        v = validation
        figures = f" at step {step:,}: loss {v.loss:.3f}  ppl {v.perplexity:.2f}  acc {v.accuracy:.1%}  "
        if ALIGNMENT_LOSS in v.measures:
            figures += f"alignment {v.measures[ALIGNMENT_LOSS]:.3f}  "
        end = "  (best so far)" if best else ""
        if GENERAL in v.measures:
            end = f"  ({v.measures['bleu']:.1f}, on the rest {v.measures[GENERAL]:.1f}){end}"
        by_name = {"step": step, "loss": v.loss, "best": best, **v.measures}
        self.note(("validation", "bold"), figures, (score, "bold"), end, figures=by_name)
        metric = "chrF" if "chrf" in v.measures else "BLEU"
        for name, direction in v.directions.items():
            losses = f"loss {direction.loss:.3f}  ppl {direction.perplexity:.2f}  acc {direction.accuracy:.1%}"
            self.note(f"    {name:<7} {losses}  {metric} {direction.score:.1f}")
        for i in range(3 if v.samples else 0):
            # 7 and 11 are arbitrary: each validation should show other samples, and not three neighbours.
            sample = v.samples[(step // 7 + i * 11) % len(v.samples)]
            self.note(("    source     ", "dim"), sample.source)
            self.note(("    reference  ", "dim"), sample.reference)
            self.note(("    hypothesis ", "dim"), sample.hypothesis)

    def note(self, *parts: str | tuple[str, str], figures: Mapping[str, Any] | None = None) -> None:
        """Print one line above the bar, from parts with or without a style; `figures` are for JSON lines."""
        self.console.print(Text.assemble(*parts), soft_wrap=True, figures=figures)


class _StatusColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(task.fields["line"])


def clock(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds, such as `1:15` for 75."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
