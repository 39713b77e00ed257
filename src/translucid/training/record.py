"""The written record of a training: `metrics.jsonl` and, where it is installed, TensorBoard."""

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
"""Updates over which loss, accuracy and speed are averaged for display."""


class Recent:
    """The figures of the last updates."""

    def __init__(self, figures: Iterable[tuple[float, int, int, float]] = (), rewards: Iterable[float] = ()) -> None:
        """`figures` and `rewards`: what `facts` gave before."""
        self.window = deque((tuple(row) for row in figures), maxlen=WINDOW)
        self.rewards = deque(rewards, maxlen=WINDOW)
        self.last = time.monotonic()

    def add(self, entropy: float, correct: int, tokens: int, reward: float | None = None) -> None:
        """Take the summed cross-entropy, the tokens ranked first and all tokens of an update that has just ended.

        `reward`: of a self-critical one the mean.
        """
        now = time.monotonic()
        if reward is not None:
            self.rewards.append(reward)
        self.window.append((entropy, correct, tokens, now - self.last))
        self.last = now

    def figures(self) -> tuple[float, float, float, float]:
        """Return loss, perplexity, accuracy and tokens/s over these updates."""
        entropy, correct, tokens, seconds = (sum(column) for column in zip(*self.window, strict=True))
        loss = entropy / tokens
        return loss, math.exp(min(loss, 700)), correct / tokens, tokens / seconds

    @property
    def reward(self) -> float | None:
        """The mean reward of self-critical updates, if there have been any."""
        return sum(self.rewards) / len(self.rewards) if self.rewards else None

    def facts(self) -> dict[str, list[Any]]:
        """Return what is saved."""
        return {"recent": [*self.window], "rewards": [*self.rewards]}


def board_missing() -> str:
    """Return what is to be said, in one line, where TensorBoard is not installed; nothing where it is."""
    if find_spec("tensorboard"):
        return ""
    return f"without TensorBoard all figures are in metrics.jsonl alone; for its events: {remedy('train')}"


class Record:
    """Writes the figures down."""

    def __init__(self, run: RunFolder, step: int) -> None:
        """`step`: where the training starts; TensorBoard forgets what an earlier process wrote after it."""
        self.run = run
        self.board: Any = None
        if not board_missing():
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(run.path), purge_step=step + 1)

    def write_training(self, status: Status) -> None:
        """Write one row about the last updates."""
        row = {name: value for name, value in status._asdict().items() if value is not None}
        self.run.add_metrics({"kind": "training", **_rounded(row)})
        if self.board:
            for name in row.keys() & {"loss", "accuracy", "tokens_per_second", "learning_rate", "reward"}:
                self.board.add_scalar(f"training/{name}", row[name], status.step)

    def write_validation(self, step: int, seconds: float, found: Validation) -> None:
        """Write one row about a validation, and its first translations."""
        figures = {"loss": found.loss, "perplexity": found.perplexity, "accuracy": found.accuracy, **found.measures}
        self.run.add_metrics({"kind": "validation", "step": step, **_rounded({"seconds": seconds, **figures})})
        if not self.board:
            return
        for name, value in figures.items():
            self.board.add_scalar(f"validation/{name}", value, step)
        if not found.samples:
            return
        text = "\n\n".join(f"{s.source}  \n{s.reference}  \n**{s.hypothesis}**" for s in found.samples[:5])
        self.board.add_text("validation/samples", text, step)

    def close(self) -> None:
        """Flush TensorBoard's file, if there is one."""
        if self.board:
            self.board.close()


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}
