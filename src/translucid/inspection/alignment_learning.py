"""How an alignment layer learns from word links."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from translucid.data.batching import padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.alignment_layer import AlignmentLayer
from translucid.decoding.maps import forced_features
from translucid.evaluation.alignment_error import Gold
from translucid.inspection.words import word_spans
from translucid.kernels.devices import own_random_state
from translucid.models.protocol import SequenceModel

UPDATES, TOGETHER = 400, 64
"""Updates, at least, and the pairs of each, drawn at random; there are more updates where there are more pairs."""
RATE, WARMUP = 0.002, 50
"""Adam's rate at its highest, and after how many updates that is; then it falls to 0 in a straight line."""
SEED = 1


class Linked(NamedTuple):
    """A sentence pair whose words are linked."""

    source: list[int]
    """Ids, with the end token."""
    target: list[int]
    shares: Tensor
    """[T, S], how much each target piece belongs to each source piece: all alike, 1 in the sum, 0 where it has none."""


def linked(
    tokenizer: Tokenizer, source: list[int], target: list[int], gold: Gold, words: tuple[int, int]
) -> Linked | None:
    """Return a pair with what its word links say of its pieces; None if the tokenizer has other words.

    Args:
        tokenizer: of the ids.
        source: ids, with the end token.
        target: likewise.
        gold: the links; where a target word has sure ones, those alone count.
        words: how many there are on either side.
    """
    spans = [
        word_spans(pieces, len(opening))[len(opening) : -1]
        for pieces, opening in (
            (tokenizer.source_pieces(source), tokenizer.source_opening),
            (tokenizer.target_pieces(target), tokenizer.target_opening),
        )
    ]
    if tuple(map(len, spans)) != words:
        return None
    sure = {t for _, t in gold.sure}
    shares = torch.zeros(len(target), len(source))
    for s, t in gold.possible:
        if (s, t) in gold.sure or t not in sure:
            shares[slice(*spans[1][t][1:]), slice(*spans[0][s][1:])] = 1
    return Linked(source, target, shares / shares.sum(1, keepdim=True).clamp(min=1))


def learn_alignment(
    model: SequenceModel,
    pairs: Sequence[Linked],
    device: torch.device | str = "cpu",
    on_update: Callable[[int], None] | None = None,
) -> AlignmentLayer:
    """Teach a new alignment layer for a model, which does not change.

    The loss is the cross-entropy between a target piece's shares and the layer's weights (Garg et al. 2019, arXiv
    1909.02074), the mean over the pieces that have some.

    Args:
        model: in evaluation mode.
        pairs: to learn from.
        device: where the model is.
        on_update: called with 1 after each of `updates_for(pairs)` updates.
    """
    draw, count = random.Random(SEED), updates_for(pairs)
    with own_random_state(device), torch.no_grad():
        torch.manual_seed(SEED)
        states = model.encode(torch.tensor([pairs[0].source], device=device)).states
        layer = AlignmentLayer(model.output.in_features, states.size(-1)).to(device)
    optimizer = torch.optim.Adam(layer.parameters(), RATE)
    schedule = LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / WARMUP) * (1 - done / count))
    for _ in range(count):
        batch = draw.sample(pairs, min(TOGETHER, len(pairs)))
        sides = [pair.source for pair in batch], [pair.target for pair in batch]
        source, target = (padded(side, model.pad).to(device) for side in sides)
        with torch.no_grad():
            memory = model.encode(source)
            features = forced_features(model, memory, target)
        weights = layer(features, model.output.weight[target].detach(), memory.states, memory.mask)
        shares = torch.zeros_like(weights)
        for row, pair in enumerate(batch):
            shares[row, : len(pair.target), : len(pair.source)] = pair.shares
        loss = -(shares * weights.clamp(min=1e-9).log()).sum() / shares.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if on_update:
            on_update(1)
    return layer.eval().requires_grad_(False)


def updates_for(pairs: Sequence[Linked]) -> int:
    """Return how many updates are made."""
    return max(UPDATES, -(-len(pairs) // TOGETHER))
