"""Word alignments, in Pharaoh format: `0-0 1-2`, source word first, counted from 0; and training an alignment layer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from translucid.data.batching import padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import AlignmentLayer, forced_features
from translucid.decoding.pair_scores import BATCH_TOKENS, paired_batches
from translucid.evaluation.alignment_error import (
    AlignmentOptions,
    AlignmentScore,
    Gold,
    Links,
    alignment_score,
)
from translucid.inspection.inspected import Inspected
from translucid.inspection.word_weights import WordWeights
from translucid.inspection.words import span_ranges, word_spans
from translucid.kernels.devices import preserve_random_state
from translucid.layers.variants import Method
from translucid.models.protocol import SequenceModel

UPDATES, MOST_UPDATES, BATCH = 400, 1500, 64
"""The minimum and the maximum number of updates, more if one pass over the pairs needs them; the pairs in each."""
PASSES = 24
"""The number of passes over the pairs, within these limits."""
RATE, WARMUP = 0.002, 50
"""Adam's highest learning rate, and the updates of warm-up before it; then it decreases linearly to 0."""
DROPOUT = 0.4
"""Dropout of what the alignment layer reads while it learns."""
SEED = 1


def read_alignment(inspected: Inspected, options: AlignmentOptions, reverse: Inspected | None = None) -> Links:
    """Return the word alignment that the options derive from the attention, between words as `linked_words` has them.

    `reverse` is the same pair in a model of the opposite direction: the weights of the two are multiplied.
    """
    opposite = None if reverse is None else weights_of(reverse, options)
    return weights_of(inspected, options).links(both=options.both, reverse=opposite)


def weights_of(inspected: Inspected, options: AlignmentOptions) -> WordWeights:
    """Return the weights for alignments: those of the alignment layer if there is one, else by the options' method.

    Where norms and contributions were not computed, as for an ensemble, attention weights replace them.
    """
    if options.learned and inspected.links is not None:
        weights = inspected.links
    else:
        method = options.method
        if options.needs_contributions and inspected.contributions is None:
            method = "weights"
        weights = inspected.cross(options.layer, options.head, shift=options.shift, method=method)
    word_weights = inspected.words(weights).between_words.cpu().float().numpy()
    spans = inspected.source_spans[:-1], inspected.target_spans[:-1]
    return WordWeights(*spans, word_weights, inspected.words_read)


def choose(
    examples: Sequence[Inspected], gold: Sequence[Gold], choices: Sequence[AlignmentOptions] = ()
) -> dict[AlignmentOptions, AlignmentScore]:
    """Score several ways to derive an alignment, the best first.

    By default, the candidates are the alignment layer, if there is one, and the attention of each layer and the average
    of all, on all of the source and on its content only, with and without shift; each from one side and from both. If
    contributions were computed, so are norms and contributions of each layer and of all.

    Args:
        examples: inspections of some pairs.
        gold: the links of each pair, from annotators or from statistics.
        choices: the options to score; by default, all `candidates`.
    """
    scores = {}
    for options in choices or candidates(examples[0]):
        scores[options] = alignment_score([read_alignment(example, options) for example in examples], gold)
    # Sorting is stable: the attention comes before the layer if both have the same error rate.
    return dict(sorted(scores.items(), key=lambda item: item[1].error_rate))


def candidates(example: Inspected) -> list[AlignmentOptions]:
    """Return the options of every way to derive an alignment from an inspection."""
    layers: list[int | None] = [*example.layers]
    if len(layers) > 1:
        layers.insert(0, None)  # the average of all
    choices = []
    methods: tuple[Method, ...] = ("weights", "content") if example.contributions is None else get_args(Method)
    for method, layer, shift, both in product(methods, layers, (False, True), (True, False)):
        choices.append(AlignmentOptions(learned=False, layer=layer, method=method, shift=shift, both=both))
    if example.links is not None:
        choices += [AlignmentOptions(both=True), AlignmentOptions(both=False)]
    return choices


class AlignmentExample(NamedTuple):
    """A sentence pair with links between its pieces: training data for an alignment layer."""

    source: list[int]
    """Ids, with the end token."""
    target: list[int]
    """Ids, with the end token."""
    shares: Tensor
    """[T, S], uniform over the source pieces to which a target piece is linked; a row of zeros without links."""


def link_pieces(
    tokenizer: Tokenizer, source: list[int], target: list[int], gold: Gold, words: tuple[int, int]
) -> AlignmentExample | None:
    """Return a pair with its word links as links between pieces; None if the tokenizer splits it into other words.

    Args:
        tokenizer: the tokenizer of the ids.
        source: ids, with the end token.
        target: ids, with the end token.
        gold: the links; where a target word has sure links, its possible links don't count.
        words: the numbers of source and target words to which the links refer.
    """
    sources = _word_ranges(tokenizer.source_labels(source), len(tokenizer.source_opening))
    targets = _word_ranges(tokenizer.target_labels(target), len(tokenizer.target_opening))
    if (len(sources), len(targets)) != words:
        return None
    shares = torch.zeros(len(target), len(source))
    for source_word, target_word in gold.to_learn():
        shares[slice(*targets[target_word]), slice(*sources[source_word])] = 1
    return AlignmentExample(source, target, shares / shares.sum(1, keepdim=True).clamp(min=1))


def _word_ranges(pieces: Sequence[str], opening: int) -> list[tuple[int, int]]:
    """Return the pieces of each word, without the opening and the end token."""
    return span_ranges(word_spans(pieces, opening)[opening:-1])


def learn_alignment(
    model: SequenceModel,
    pairs: Sequence[AlignmentExample],
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
    rng, count = random.Random(SEED), updates_for(pairs)
    inputs = _layer_inputs(model, pairs, device)
    with preserve_random_state(device):  # neither the seed nor dropout must disturb the caller's random numbers
        torch.manual_seed(SEED)
        layer = AlignmentLayer(model.output.in_features, inputs[0].states.size(-1)).to(device)
        optimizer = torch.optim.Adam(layer.parameters(), RATE)
        schedule = LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / WARMUP) * (1 - done / count))
        for _ in range(count):
            indices = rng.sample(range(len(pairs)), min(BATCH, len(pairs)))
            batch = [pairs[i] for i in indices]
            loss = _loss(layer, model, batch, [inputs[i] for i in indices])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if on_update:
                on_update(1)
    return layer.eval().requires_grad_(False)


def _loss(
    layer: AlignmentLayer, model: SequenceModel, pairs: Sequence[AlignmentExample], inputs: Sequence[_LayerInput]
) -> Tensor:
    """Return the cross-entropy of the layer's weights, with dropout of what it reads."""
    embeddings = model.output.weight.detach()
    # Without dropout, the layer is worse on text of another domain: an error rate of 0.33 instead of 0.28 on Hansards.
    features = F.dropout(_padded([pair.features for pair in inputs]), DROPOUT)  # [B, T, D]
    states = F.dropout(_padded([pair.states for pair in inputs]), DROPOUT)  # [B, S, M]
    target = padded([pair.target for pair in pairs], model.pad).to(features.device)  # [B, T]
    mask = model.source_mask(padded([pair.source for pair in pairs], model.pad).to(features.device))  # [B, S]
    weights = layer(features, F.dropout(embeddings[target], DROPOUT), states, mask)
    shares = torch.zeros_like(weights)  # [B, T, S]
    for row, pair in enumerate(pairs):
        shares[row, : len(pair.target), : len(pair.source)] = pair.shares
    return -(shares * weights.clamp(min=1e-9).log()).sum() / shares.sum()


def _padded(rows: Sequence[Tensor]) -> Tensor:
    """Return rows [length, D] of different lengths as one float32 tensor, padded with zeros."""
    width = rows[0].size(1)
    batch = rows[0].new_zeros((len(rows), max(map(len, rows)), width), dtype=torch.float32)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
    return batch


class _LayerInput(NamedTuple):
    """The model's states for a pair, which the alignment layer reads and no update changes, in bfloat16."""

    features: Tensor
    """[T, D], the features from which each target piece is predicted."""
    states: Tensor
    """[S, M], the states of the memory."""


@torch.no_grad()
def _layer_inputs(
    model: SequenceModel, pairs: Sequence[AlignmentExample], device: torch.device | str
) -> list[_LayerInput]:
    """Compute the inputs of the alignment layer once for all updates, because the model takes longer than the layer."""
    inputs: dict[int, _LayerInput] = {}
    pair_ids = [(pair.source, pair.target) for pair in pairs]
    for batch, source, target in paired_batches(pair_ids, model.pad, device, BATCH_TOKENS):
        memory = model.encode(source)
        features = forced_features(model, memory, target).bfloat16()
        states = memory.states.bfloat16()
        for row, i in enumerate(batch):
            # A copy, because a view would keep the padded batch in memory.
            inputs[i] = _LayerInput(
                features[row, : len(pairs[i].target)].clone(), states[row, : len(pairs[i].source)].clone()
            )
    return [inputs[i] for i in range(len(pairs))]


def updates_for(pairs: Sequence[AlignmentExample]) -> int:
    """Return the number of updates for training on some pairs."""
    one_pass = -(-len(pairs) // BATCH)
    return max(UPDATES, min(MOST_UPDATES, PASSES * one_pass), one_pass)
