"""The learning rate at each update."""

import math

from translucid.runs.training_options import TrainingOptions

CUT = 0.1
"""The share of a slanted triangle in which the rate rises."""
RATIO = 32
"""The ratio between the peak of a slanted triangle and its ends."""
ESTIMABLE = 0.1
"""The share of a training that is enough to estimate the number of its updates."""


FEWEST_UPDATES = 500
"""The number of updates below which a shorter warm-up would not help."""


def self_critical(options: TrainingOptions, progress: float) -> bool:
    """Whether the next update is self-critical, given the share of the training that is over, from 0 to 1."""
    return bool(options.self_critical) and progress >= 1 - options.self_critical


def learning_rate(options: TrainingOptions, step: int, progress: float) -> float:
    """Return the rate of update `step`, counted from 1.

    Over the last `cooldown` share of the training, the inverse square root is multiplied by a factor that falls to 0
    linearly. The other schedule is a slanted triangle.

    Args:
        options: the schedule, the peak, the warm-up and the cool-down.
        step: the update, from 1.
        progress: the share of the training that is over, from 0 to 1.
    """
    if options.schedule == "slanted":
        return options.learning_rate * slanted(progress)
    rate = options.learning_rate * noam_inverse_square_root(step, options.warmup)
    if options.cooldown and progress > 1 - options.cooldown:
        rate *= max(1 - progress, 0) / options.cooldown
    return rate


def noam_inverse_square_root(step: int, warmup: int) -> float:
    """Return the share of the peak: linear warm-up to 1, then sqrt(warmup / step).

    This is the schedule of the Transformer (arXiv 1706.03762, equation 3), named after Noam Shazeer, except that the
    peak is an option instead of depending on the width.
    """
    return min(step / warmup, math.sqrt(warmup / step))


def slanted(progress: float) -> float:
    """Return (1 + p (ratio - 1)) / ratio, where p rises from 0 to 1 in the first tenth and then falls to 0.

    This is equation 3 of Howard and Ruder 2018 (arXiv 1801.06146).
    """
    p = progress / CUT if progress < CUT else (1 - progress) / (1 - CUT)
    return (1 + p * (RATIO - 1)) / RATIO


def short_warmup(options: TrainingOptions, step: int, progress: float) -> str:
    """Return a warning if the training will end before its warm-up, once that can be estimated; else "".

    Args:
        options: the schedule and the warm-up.
        step: the number of updates so far.
        progress: the share of the training that is over, from 0 to 1.
    """
    if options.schedule == "slanted" or step >= options.warmup or progress < ESTIMABLE:
        return ""
    steps = round(step / progress)
    if steps >= options.warmup:
        return ""
    advice = f"train longer, or set training.warmup={steps // 10}"
    if steps < FEWEST_UPDATES:
        # No schedule teaches a model in so few updates.
        advice = "train longer: raise training.max_steps, max_epochs or max_minutes, or lower training.batch_tokens"
    return (
        f"warning: the training ends after about {steps:,} updates, within the warm-up of {options.warmup:,}, so the "
        f"learning rate does not reach its peak; {advice}"
    )
