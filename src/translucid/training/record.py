"""The written record of a training: `metrics.jsonl` and TensorBoard."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

from translucid.training.display import Status
from translucid.training.run_folder import RunFolder
from translucid.training.validation import Validation

WINDOW = 50
"""Updates over which loss, accuracy and speed are averaged for display."""


class Record:
    """Collects figures of updates and writes them down."""

    def __init__(self, run: RunFolder, step: int) -> None:
        """`step`: where the training starts; TensorBoard forgets what an earlier process wrote after it."""
        from torch.utils.tensorboard import SummaryWriter

        self.run = run
        self.board: Any = SummaryWriter(str(run.path), purge_step=step + 1)
        self.window: deque[tuple[float, int, int, float]] = deque(maxlen=WINDOW)
        self.last = time.monotonic()

    def update(self, figures: tuple[float, int, int]) -> None:
        """Take the summed cross-entropy, the right tokens and all tokens of an update."""
        now = time.monotonic()
        self.window.append((*figures, now - self.last))
        self.last = now

    def recent(self) -> tuple[float, float, float, float]:
        """Loss, perplexity, accuracy and tokens/s over the last updates."""
        entropy, correct, tokens, seconds = (sum(column) for column in zip(*self.window, strict=True))
        loss = entropy / tokens
        return loss, math.exp(min(loss, 700)), correct / tokens, tokens / seconds

    def write_training(self, status: Status) -> None:
        """Write one row about the last updates."""
        row = status._asdict()
        self.run.add_metrics({"kind": "training", **_rounded(row)})
        for name in ("loss", "accuracy", "tokens_per_second", "learning_rate"):
            self.board.add_scalar(f"training/{name}", row[name], status.step)

    def write_validation(self, step: int, seconds: float, found: Validation) -> None:
        """Write one row about a validation, and its first translations."""
        figures = {name: value for name, value in found._asdict().items() if name != "samples"}
        self.run.add_metrics({"kind": "validation", "step": step, **_rounded({"seconds": seconds, **figures})})
        for name, value in figures.items():
            self.board.add_scalar(f"validation/{name}", value, step)
        text = "\n\n".join(f"{s.source}  \n{s.reference}  \n**{s.hypothesis}**" for s in found.samples[:5])
        self.board.add_text("validation/samples", text, step)
        self.last = time.monotonic()

    def close(self) -> None:
        """Flush TensorBoard's file."""
        self.board.close()


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}
