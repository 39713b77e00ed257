"""What a training shows and records: its progress, and the provenance of its weights.

`Display` shows the progress on standard error, as a bar in a terminal and as plain lines elsewhere. `Record` writes
the figures to `metrics.jsonl` and to experiment trackers. `provenance` is the command, the versions, the machine and
the data.
"""

from __future__ import annotations

import math
import platform
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from translucid import __version__
from translucid.ground.console import PROGRESS_INTERVAL, Console
from translucid.kernels.machine import cores, physical_memory, processor
from translucid.runs.run_folder import RunFolder
from translucid.runs.training_options import TrainingOptions
from translucid.training.records.trackers import LAST_SECONDS, Background, is_installed
from translucid.training.validation import ALIGNMENT_LOSS, GENERAL, Validation


@dataclass
class Progress:
    """The progress of a training, which checkpoints contain under these names."""

    step: int = 0
    """The number of updates."""
    epoch: int = 0
    """The number of completed epochs."""
    batch: int = 0
    """The number of batches in the current epoch so far."""
    seconds: float = 0.0
    """The time spent in training and validation."""
    best_score: float | None = None
    """The best score of the validator."""
    best_loss: float | None = None
    """The validation loss of the best weights."""
    best_step: int = 0
    stale: int = 0
    """The number of validations since the best one."""
    skipped: int = 0
    """Updates that were skipped because the loss or a gradient was not a finite number."""
    before: dict[str, float] | None = None
    """The measures, by name, of the initial weights, if fine-tuning compares with them."""
    kept: dict[str, float] | None = None
    """The measures of the best weights."""
    begins_ready: bool = True
    """Whether the initial weights may be the best ones."""

    @property
    def validated_until(self) -> int:
        """The last step whose metrics are valid; -1 if the initial weights may yet be validated, at step 0."""
        return -1 if self.step == 0 and self.before is None else self.step


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
    """The mean reward of sampled outputs, in self-critical training."""
    compile_seconds: float | None = None
    """The seconds spent compiling so far, with `training.compile`."""

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
        if self.compile_seconds:
            figures.append(f"{clock(self.compile_seconds)} compiling")
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
        self.bar = ProgressBar(
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
            # 7 and 11 are arbitrary: each validation should show other samples, and not three neighbors.
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


WINDOW = 50
"""The number of updates over which loss, accuracy and speed are averaged for display."""


class Recent:
    """The figures of the last updates."""

    def __init__(self, figures: Iterable[tuple[float, int, int, float]] = (), rewards: Iterable[float] = ()) -> None:
        """Start with the `figures` and `rewards` of `facts`, which come from JSON, with lists instead of tuples."""
        self.window = deque(map(tuple, figures), maxlen=WINDOW)
        self.rewards = deque(rewards, maxlen=WINDOW)
        self.last_update = time.monotonic()

    def add(self, entropy: float, correct: int, tokens: int, reward: float | None = None) -> None:
        """Add the figures of an update that has just ended.

        Args:
            entropy: the summed cross-entropy.
            correct: the number of tokens that the model ranks first.
            tokens: the number of all tokens.
            reward: the mean reward of a self-critical update.
        """
        now = time.monotonic()
        if reward is not None:
            self.rewards.append(reward)
        self.window.append((entropy, correct, tokens, now - self.last_update))
        self.last_update = now

    def figures(self) -> tuple[float, float, float, float]:
        """Return loss, perplexity, accuracy and tokens per second over these updates."""
        entropy, correct, tokens, seconds = map(sum, zip(*self.window, strict=True))
        loss = entropy / tokens
        return loss, math.exp(min(loss, 700)), correct / tokens, tokens / seconds  # exp(710) overflows

    @property
    def reward(self) -> float | None:
        """The mean reward of self-critical updates, if there have been any."""
        return sum(self.rewards) / len(self.rewards) if self.rewards else None

    def facts(self) -> dict[str, list[Any]]:
        """Return the figures for a checkpoint."""
        return {"recent": [*self.window], "rewards": [*self.rewards]}


class Record:
    """Writes the figures of a training to its run folder and to its trackers."""

    def __init__(self, run: RunFolder, options: TrainingOptions, step: int, warn: Callable[[str], None]) -> None:
        """Open the record of a training that is at `step`; `warn` shows one line for each tracker that fails."""
        self.run, self.warn = run, warn
        self.trackers: list[Background] = []
        for name in dict.fromkeys(options.trackers):
            if is_installed(name):
                self.trackers.append(Background(name, run, step))
        self._warned: set[str] = set()

    def write_training(self, status: Status) -> None:
        """Write one row about the last updates."""
        row = {name: value for name, value in status._asdict().items() if value is not None}
        self.run.add_metrics({"kind": "training", **_rounded(row)})
        del row["step"]
        self._track({f"training/{name}": value for name, value in row.items()}, status.step)

    def write_validation(self, step: int, seconds: float, validation: Validation) -> None:
        """Write one row about a validation; TensorBoard also shows its first translations."""
        v = validation
        figures = {"loss": v.loss, "perplexity": v.perplexity, "accuracy": v.accuracy, **v.measures}
        self.run.add_metrics({"kind": "validation", "step": step, **_rounded({"seconds": seconds, **figures})})
        # TensorBoard renders Markdown, in which two spaces end a line.
        samples = [f"{s.source}  \n{s.reference}  \n**{s.hypothesis}**" for s in v.samples[:5]]
        self._track({f"validation/{name}": value for name, value in figures.items()}, step, "\n\n".join(samples))

    def write_choice(self, step: int, name: str, choice: bool, reason: str) -> None:
        """Write one row about a setting that is chosen by measuring."""
        row = {"kind": "choice", "step": step, "setting": f"training.{name}", "value": choice, "reason": reason}
        self.run.add_metrics(row)

    def _track(self, figures: dict[str, float], step: int, text: str = "") -> None:
        for tracker in self.trackers:
            tracker.log(figures, step, text)
        self._show_warnings()

    def _show_warnings(self) -> None:
        """Show the first warning of each tracker."""
        for tracker in self.trackers:
            if tracker.warning and tracker.name not in self._warned:
                self._warned.add(tracker.name)
                self.warn(f"warning: the tracker {tracker.name} {tracker.warning}; metrics.jsonl has all of them")

    def write_selection(self, progress: Progress, best_step: int, best: Validation, last: Validation) -> None:
        """Write one row about the comparison at the end of a training.

        Args:
            progress: the progress, with the step of the weights that are kept.
            best_step: the step of the weights that were the best so far.
            best: their figures on all validation sentences.
            last: those of the last weights.
        """
        figures: dict[str, float] = {
            "sentences": len(last.samples),
            "kept_step": progress.best_step,
            "best_step": best_step,
        }
        figures |= {"best_score": best.score, "best_loss": best.loss, "last_score": last.score, "last_loss": last.loss}
        row = {"kind": "selection", "step": progress.step, "seconds": progress.seconds, **figures}
        self.run.add_metrics(_rounded(row))
        self._track({f"selection/{name}": value for name, value in figures.items()}, progress.step)

    def close(self) -> None:
        """Wait until the trackers have finished, for a limited time."""
        for tracker in self.trackers:
            tracker.close()
        deadline = time.monotonic() + LAST_SECONDS
        for tracker in self.trackers:
            tracker.wait(deadline - time.monotonic())
        self._show_warnings()


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with six significant digits in each float."""
    floats = {name: value for name, value in row.items() if isinstance(value, float)}
    return row | {name: float(f"{value:.6g}") for name, value in floats.items()}


def provenance(
    files: Mapping[str, str], device: str, step: int, processes: int, command: Sequence[str] | None
) -> dict[str, Any]:
    """Return the provenance of a training that begins or is resumed, without the user, the host or the environment.

    Args:
        files: the SHA-256 of each file of pairs.
        device: the device of the training.
        step: the number of updates before.
        processes: the number of processes that train together.
        command: the arguments of the command `translucid`; None for a call from Python, whose command line may contain
            the name of the user.
    """
    packages = ("torch", "numpy", "sentencepiece", "ctranslate2")
    versions = {
        "python": platform.python_version(),
        **dict(zip(packages, map(metadata.version, packages), strict=True)),
    }
    data = []
    for file, sha256 in files.items():
        data.append({"file": file, "bytes": Path(file).stat().st_size, "sha256": sha256})
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "step": step,
        "command": None if command is None else ["translucid", *command],
        "translucid": __version__,
        "commit": _commit(),
        "versions": versions,
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": processor(),
            "cores": cores(),
            "memory_gib": round(physical_memory() / 2**30, 1),
            "device": device,
            "processes": processes,
        },
        "data": data,
    }


def device_name(device: torch.device) -> str:
    """Return the name of a device, with the model of a CUDA GPU: `cuda:0 (NVIDIA H100)`."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def _commit() -> str | None:
    """Return the commit of this code, with `+changes` if files differ from it; None outside a git checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}+changes" if changes else commit


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
