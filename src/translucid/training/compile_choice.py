"""The choice of `training.compile=auto`: measured before the first update, and kept by a resumed training.

Compiled kernels add in another order, so weights depend on the choice. If the first updates were measured, it would
come in the middle of them, and no second training would repeat it. So the first batches are computed once more, without
an update, and the random state is restored. The training is then exactly that of `training.compile=true` or `false`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from translucid.data.batching import Batch
from translucid.ground.errors import UserError
from translucid.kernels.devices import preserve_random_state
from translucid.kernels.rounding import mixed_precision
from translucid.models.protocol import Model
from translucid.runs.training_options import NOT_COMPILED, TrainingOptions
from translucid.training.objective import LossFunction, batch_loss
from translucid.training.weights import CompiledLoss, Weights

SECONDS = 60.0
"""The time after which no other batch is compiled or measured."""
BATCHES, ROUNDS = 4, 3
WORTHWHILE = 1.1
"""The smallest gain for which the kernels are compiled: other lengths are compiled later, which takes time."""


class CompileChoice(NamedTuple):
    """Whether to compile, and why."""

    compiled: bool
    reason: str

    def __str__(self) -> str:
        return f"training.compile=auto chooses {str(self.compiled).lower()} ({self.reason})"


def reason_against_compiling(options: TrainingOptions, model: Model) -> str:
    """Return why the training can't be compiled: a setting or the kind of model; empty if it can."""
    if not model.options.compiles or getattr(model.options, "elmo", None):
        return "is for Transformers that translate or write captions"
    return next((f"does not go with training.{name}" for name in NOT_COMPILED if getattr(options, name)), "")


def choose_compilation(
    weights: Weights,
    loss: CompiledLoss,
    batches: Iterable[Batch],
    options: TrainingOptions,
    *,
    bfloat16: bool,
) -> CompileChoice:
    """Measure the forward and the backward pass of some batches, compiled and not, and return which to take.

    All processes must call this together; the smallest gain decides.

    Args:
        weights: the model in training; its gradients are cleared.
        loss: its loss.
        batches: the first batches of the training.
        options: the options of the training.
        bfloat16: whether large products are in bfloat16.
    """
    losses: list[LossFunction] = [partial(batch_loss, loss.model), loss.compiled]

    def seconds(loss_of: LossFunction, batch: Batch) -> float:
        started = time.perf_counter()
        with mixed_precision(weights.device, enabled=bfloat16):
            smoothed = loss_of(batch, options.label_smoothing).smoothed
        smoothed.backward()
        smoothed.item()  # waits for a GPU
        for parameter in weights.parameters:
            parameter.grad = None
        return time.perf_counter() - started

    reason = "another process can't compile them"
    with preserve_random_state(weights.device):
        try:
            gain = _gain(losses, batches, seconds)
        except UserError as error:
            gain, reason = 0.0, str(error).splitlines()[0].removeprefix("error: ")
    gain = min(weights.workers.gather(gain))
    if gain:
        reason = f"compiled updates are {gain:.2f} times as fast here"
    return CompileChoice(gain >= WORTHWHILE, reason)


def _gain(
    losses: list[LossFunction], batches: Iterable[Batch], seconds: Callable[[LossFunction, Batch], float]
) -> float:
    """Return how many times as fast as the first of two losses the second one is."""
    started = time.perf_counter()
    measured: list[Batch] = []
    for batch in batches:
        for loss_of in losses:  # compiles, and sets the libraries up
            seconds(loss_of, batch)
        measured.append(batch)
        if time.perf_counter() - started > SECONDS:
            break
    totals = [0.0, 0.0]
    for batch in measured:
        fastest = [float("inf")] * len(losses)
        for attempt in range(ROUNDS):
            if attempt and time.perf_counter() - started > SECONDS:
                break
            for index, loss_of in enumerate(losses):
                fastest[index] = min(fastest[index], seconds(loss_of, batch))
        totals = [total + best for total, best in zip(totals, fastest, strict=True)]
    return totals[0] / totals[1] if measured else 1.0
