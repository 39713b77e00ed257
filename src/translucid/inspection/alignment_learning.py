"""Training an alignment layer on word links."""

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
from translucid.inspection.words import span_ranges, word_spans
from translucid.kernels.devices import own_random_state
from translucid.models.protocol import SequenceModel

UPDATES, BATCH = 400, 64
"""The least number of updates, and the number of pairs, drawn at random, in each; see `updates_for`."""
RATE, WARMUP = 0.002, 50
"""Adam's highest learning rate, and the updates of warm-up before it; then it decreases linearly to 0."""
SEED = 1


class Linked(NamedTuple):
    """A sentence pair whose words are linked."""

    source: list[int]
    """Ids, with the end token."""
    target: list[int]
    """Ids, with the end token."""
    shares: Tensor
    """[T, S], uniform over the source pieces to which a target piece is linked; a row of zeros without links."""


def linked(
    tokenizer: Tokenizer, source: list[int], target: list[int], gold: Gold, words: tuple[int, int]
) -> Linked | None:
    """Return a pair with its word links as links between pieces; None if the tokenizer splits it into other words.

    Args:
        tokenizer: the tokenizer of the ids.
        source: ids, with the end token.
        target: ids, with the end token.
        gold: the links; where a target word has sure links, its possible links don't count.
        words: the numbers of source and target words to which the links refer.
    """
    sources = _word_ranges(tokenizer.source_pieces(source), len(tokenizer.source_opening))
    targets = _word_ranges(tokenizer.target_pieces(target), len(tokenizer.target_opening))
    if (len(sources), len(targets)) != words:
        return None
    with_sure = {target_word for _, target_word in gold.sure}
    shares = torch.zeros(len(target), len(source))
    for source_word, target_word in gold.possible:
        if (source_word, target_word) in gold.sure or target_word not in with_sure:
            shares[slice(*targets[target_word]), slice(*sources[source_word])] = 1
    return Linked(source, target, shares / shares.sum(1, keepdim=True).clamp(min=1))


def _word_ranges(pieces: Sequence[str], opening: int) -> list[tuple[int, int]]:
    """Return the pieces of each word, without the opening and the end token."""
    return span_ranges(word_spans(pieces, opening)[opening:-1])


def learn_alignment(
    model: SequenceModel,
    pairs: Sequence[Linked],
    device: torch.device | str = "cpu",
    on_update: Callable[[int], None] | None = None,
) -> AlignmentLayer:
    """Train a new alignment layer for a model, which does not change.

    The loss is the cross-entropy between a target piece's shares and the layer's weights (Garg et al. 2019, arXiv
    1909.02074), averaged over the pieces with links.

    Args:
        model: the model, in evaluation mode.
        pairs: the training data.
        device: the device of the model.
        on_update: called with 1 after each of `updates_for(pairs)` updates.
    """
    draw, count = random.Random(SEED), updates_for(pairs)
    with own_random_state(device), torch.no_grad():  # the seed must not disturb the caller's random numbers
        torch.manual_seed(SEED)
        states = model.encode(torch.tensor([pairs[0].source], device=device)).states
        layer = AlignmentLayer(model.output.in_features, states.size(-1)).to(device)
    optimizer = torch.optim.Adam(layer.parameters(), RATE)
    schedule = LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / WARMUP) * (1 - done / count))
    for _ in range(count):
        batch = draw.sample(pairs, min(BATCH, len(pairs)))
        source = padded([pair.source for pair in batch], model.pad).to(device)  # [B, S]
        target = padded([pair.target for pair in batch], model.pad).to(device)  # [B, T]
        with torch.no_grad():
            memory = model.encode(source)
            features = forced_features(model, memory, target)
        weights = layer(features, model.output.weight[target].detach(), memory.states, memory.mask)
        shares = torch.zeros_like(weights)  # [B, T, S]
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
    """Return the number of updates: `UPDATES`, or more if one pass over the pairs needs more."""
    return max(UPDATES, -(-len(pairs) // BATCH))
