"""The written record of a training: `metrics.jsonl`, and the same figures in experiment trackers."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from translucid.runs.run_folder import RunFolder
from translucid.runs.training_options import TrainingOptions
from translucid.training.display import Status
from translucid.training.progress import Progress
from translucid.training.trackers import LAST_SECONDS, Background, is_installed
from translucid.training.validation import Validation

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
        row = status._asdict()
        if row["reward"] is None:
            del row["reward"]
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
