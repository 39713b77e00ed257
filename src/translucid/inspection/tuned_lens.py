"""Training a tuned lens (Belrose et al. 2023, arXiv 2303.08112, section 3)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from translucid.data.batching import padded
from translucid.decoding.pair_scores import paired_batches
from translucid.inspection.lens import TunedLens, decoder_states, lens_log_probs, new_tuned_lens
from translucid.models.protocol import SequenceModel

UPDATES, BATCH = 400, 32
"""The number of updates, and the number of pairs, drawn at random, in each."""
RATE, WARMUP = 0.001, 50
"""Adam's highest learning rate, and the updates of warm-up before it; then it decreases linearly to 0."""
SEED = 1
BATCH_TOKENS = 1024
"""The number of tokens in a batch of the evaluation, padding included."""
Ids = tuple[list[int], list[int]]
"""The ids of a source and of a target, end tokens included."""


def learn_tuned_lens(
    model: SequenceModel,
    pairs: Sequence[Ids],
    device: torch.device | str = "cpu",
    on_update: Callable[[int], None] | None = None,
) -> TunedLens:
    """Train a tuned lens for a model, which does not change.

    The loss of layer l is KL(p_last || p_l), averaged over target tokens.

    Args:
        model: the model, in evaluation mode.
        pairs: the training data.
        device: the device of the model.
        on_update: called with 1 after each of `UPDATES` updates.

    Raises:
        UserError: the model has no layers that a lens applies to.
    """
    lens, rng = new_tuned_lens(model), random.Random(SEED)
    optimizer = torch.optim.Adam(lens.parameters(), RATE)
    schedule = LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / WARMUP) * (1 - done / UPDATES))
    for _ in range(UPDATES):
        sources, targets = zip(*rng.sample(pairs, min(BATCH, len(pairs))), strict=True)
        source, target = padded(sources, model.pad).to(device), padded(targets, model.pad).to(device)
        states, reference = _states(model, source, target)
        for layer, state in enumerate(states):
            parameters = list(lens.maps[layer].parameters())
            loss = _divergence(model, state, layer, lens, reference)
            # `loss.backward()` would also accumulate gradients in the model.
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                parameter.grad = gradient
        optimizer.step()
        schedule.step()
        if on_update:
            on_update(1)
    return lens.eval().requires_grad_(False)


@torch.no_grad()
def divergences(
    model: SequenceModel,
    pairs: Sequence[Ids],
    lens: TunedLens | None = None,
    device: torch.device | str = "cpu",
) -> list[float]:
    """Return the mean of KL(p_last || p_l) over target tokens, in nats, of each layer but the last, the input first.

    Arguments as for `learn_tuned_lens`; the logit lens if there is no `lens`.
    """
    sums: list[float] = []
    tokens = 0
    for _, source, target in paired_batches(pairs, model.pad, device, BATCH_TOKENS):
        states, reference = _states(model, source, target)
        sums = sums or [0.0] * len(states)
        tokens += len(reference)
        for layer, state in enumerate(states):
            sums[layer] += _divergence(model, state, layer, lens, reference).item() * len(reference)
    return [total / tokens for total in sums]


@torch.no_grad()
def _states(model: SequenceModel, source: Tensor, target: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return the states [n, D] of each layer but the last, and log p_last [n, V], for all tokens without padding."""
    real = target != model.pad
    *states, last_state = [state[real] for state in decoder_states(model, source, target)]
    return states, lens_log_probs(model, last_state, len(states))


def _divergence(model: SequenceModel, state: Tensor, layer: int, lens: TunedLens | None, reference: Tensor) -> Tensor:
    """Return the mean of KL(p_last || p_l) over states [n, D] of layer l, given log p_last [n, V]."""
    log_probs = lens_log_probs(model, state, layer, lens)
    return F.kl_div(log_probs, reference, reduction="batchmean", log_target=True)
