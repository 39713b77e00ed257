"""The learning rate at each update."""

import math

from translucid.runs.training_options import TrainingOptions

CUT = 0.1
"""Share of a slanted triangle in which the rate rises."""
TELLS = 0.1
"""Share of a training whose speed tells how many updates the whole will have."""
RATIO = 32
"""How much smaller its ends are than its peak."""


def self_critical(options: TrainingOptions, progress: float) -> bool:
    """Return whether the next update learns from captions that the model draws itself; `progress` as below."""
    return bool(options.self_critical) and progress >= 1 - options.self_critical


def learning_rate(options: TrainingOptions, step: int, progress: float) -> float:
    """Return the rate of update `step`, counted from 1.

    Linear warm-up to the peak, then peak * sqrt(warmup / step): the paper's schedule (arXiv 1706.03762, equation 3)
    with its peak named instead of derived from the width. Over the last `cooldown` share of the training, it is
    also multiplied by a factor that falls linearly to 0. Or a slanted triangle, see `slanted`.

    Args:
        options: the peak, the warm-up and the cool-down.
        step: the update, from 1.
        progress: how much of the whole training is over, from 0 to 1.
    """
    if options.schedule == "slanted":
        return options.learning_rate * slanted(progress)
    rate = options.learning_rate * min(step / options.warmup, math.sqrt(options.warmup / step))
    if options.cooldown and progress > 1 - options.cooldown:
        rate *= max(1 - progress, 0) / options.cooldown
    return rate


def slanted(progress: float) -> float:
    """Return (1 + p (ratio - 1)) / ratio, p rising from 0 to 1 in the first tenth, then falling to 0.

    Howard and Ruder 2018 (arXiv 1801.06146), equation 3.
    """
    p = progress / CUT if progress < CUT else (1 - progress) / (1 - CUT)
    return (1 + p * (RATIO - 1)) / RATIO


def short_warmup(options: TrainingOptions, step: int, progress: float) -> str:
    """Return a warning if the training will be over before its warm-up, as soon as that is known; "" otherwise.

    Args:
        options: the schedule and the warm-up.
        step: updates made.
        progress: see `learning_rate`.
    """
    if options.schedule == "slanted" or step >= options.warmup or progress < TELLS:
        return ""
    steps = round(step / progress)
    if steps >= options.warmup:
        return ""
    return (
        f"warning: the training ends after about {steps:,} updates, within the warm-up of {options.warmup:,}, so the "
        f"learning rate does not reach its peak; train longer, or set training.warmup={max(1, steps // 10)}"
    )
