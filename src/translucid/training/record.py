"""The written record of a training: `metrics.jsonl` and, if it is installed, TensorBoard."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from translucid.ground.errors import remedy
from translucid.runs.run_folder import RunFolder
from translucid.training.display import Status
from translucid.training.validation import Validation

WINDOW = 50
"""The number of updates over which loss, accuracy and speed are averaged for display."""


class Recent:
    """The figures of the last updates."""

    def __init__(self, figures: Iterable[tuple[float, int, int, float]] = (), rewards: Iterable[float] = ()) -> None:
        """Start with the `figures` and `rewards` of `facts`, which come from JSON, with lists instead of tuples."""
        self.window = deque(map(tuple, figures), maxlen=WINDOW)
        self.rewards = deque(rewards, maxlen=WINDOW)
        self.last = time.monotonic()

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
        self.window.append((entropy, correct, tokens, now - self.last))
        self.last = now

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


def board_missing() -> str:
    """Return a note for the user if TensorBoard is not installed, else an empty string."""
    if find_spec("tensorboard"):
        return ""
    return f"without TensorBoard all figures are in metrics.jsonl alone; for its events: {remedy('train')}"


class Record:
    """Writes the figures of a training to its run folder."""

    def __init__(self, run: RunFolder, step: int) -> None:
        """Open the record at `step`; TensorBoard discards later events of an earlier process."""
        self.run = run
        self.board: Any = None
        if not board_missing():
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(run.path), purge_step=step + 1)

    def write_training(self, status: Status) -> None:
        """Write one row about the last updates."""
        row = status._asdict()
        if row["reward"] is None:
            del row["reward"]
        self.run.add_metrics({"kind": "training", **_rounded(row)})
        if self.board:
            for name in row.keys() & {"loss", "accuracy", "tokens_per_second", "learning_rate", "reward"}:
                self.board.add_scalar(f"training/{name}", row[name], status.step)

    def write_validation(self, step: int, seconds: float, validation: Validation) -> None:
        """Write one row about a validation, and its first translations."""
        v = validation
        figures = {"loss": v.loss, "perplexity": v.perplexity, "accuracy": v.accuracy, **v.measures}
        self.run.add_metrics({"kind": "validation", "step": step, **_rounded({"seconds": seconds, **figures})})
        if not self.board:
            return
        for name, value in figures.items():
            self.board.add_scalar(f"validation/{name}", value, step)
        # TensorBoard renders Markdown, in which two spaces end a line.
        samples = [f"{s.source}  \n{s.reference}  \n**{s.hypothesis}**" for s in v.samples[:5]]
        if samples:
            self.board.add_text("validation/samples", "\n\n".join(samples), step)

    def close(self) -> None:
        """Flush TensorBoard's file, if there is one."""
        if self.board:
            self.board.close()


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with six significant digits in each float."""
    floats = {name: value for name, value in row.items() if isinstance(value, float)}
    return row | {name: float(f"{value:.6g}") for name, value in floats.items()}
