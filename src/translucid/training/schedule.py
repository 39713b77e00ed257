"""The learning rate at each update."""

import math

from translucid.runs.training_options import TrainingOptions


def learning_rate(options: TrainingOptions, step: int, progress: float) -> float:
    """Return the rate of update `step`, counted from 1.

    Linear warm-up to the peak, then peak * sqrt(warmup / step): the paper's schedule (arXiv 1706.03762, equation 3)
    with its peak named instead of derived from the width. Over the last `cooldown` share of the training, it is
    also multiplied by a factor that falls linearly to 0.

    Args:
        options: the peak, the warm-up and the cool-down.
        step: the update, from 1.
        progress: how much of the whole training is over, from 0 to 1.
    """
    rate = options.learning_rate * min(step / options.warmup, math.sqrt(options.warmup / step))
    if options.cooldown and progress > 1 - options.cooldown:
        rate *= max(1 - progress, 0) / options.cooldown
    return rate
