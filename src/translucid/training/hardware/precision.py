"""The precision of large products in training: chosen once, the same in all processes, and kept by a resumed run."""

from __future__ import annotations

from typing import NamedTuple

import torch

from translucid.kernels.rounding import gain_of_rounding
from translucid.runs.training_options import TrainingOptions
from translucid.training.hardware.ddp import Workers

DECISIVE_RATIO = 4.0
"""The ratio of two speeds from which even a resumed run changes its precision. Noise does not reach it, but another
machine may."""


class Precision(NamedTuple):
    """The choice and its reason."""

    bfloat16: bool
    """Whether factors of large products are rounded to bfloat16."""
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"

    @property
    def name(self) -> str:
        """The type of the factors, as `training.precision` names it."""
        return "bfloat16" if self.bfloat16 else "float32"


def choose_precision(
    options: TrainingOptions, device: torch.device, workers: Workers | None = None, previous: str | None = None
) -> Precision:
    """Return the precision that `training.precision` names; for `auto`, the faster one on this device.

    Args:
        options: the options of the training.
        device: the device of this process.
        workers: the processes that train together. All of them must call this function, and the slowest decides.
        previous: the name of the precision in the checkpoint of a resumed run. It stays unless the other is far faster,
            so that a resumed run continues with the same numbers.
    """
    if options.precision != "auto":
        return Precision(options.precision == "bfloat16", "as training.precision says")
    gain = gain_of_rounding(device)
    if workers:
        gain = min(workers.gather(gain))
    if device.type == "cpu":
        reason = f"measured here: bfloat16 multiplies {gain:.2f} times as fast as float32"
    else:
        reason = "the GPU has instructions for bfloat16" if gain else "the device has no instructions for bfloat16"
    if previous == "bfloat16":
        min_gain = 1 / DECISIVE_RATIO
    elif previous == "float32":
        min_gain = DECISIVE_RATIO
    else:
        min_gain = 1.0
    bfloat16 = gain > min_gain
    if bfloat16 != (gain > 1):
        reason = f"as before; {reason}"
    return Precision(bfloat16, reason)
