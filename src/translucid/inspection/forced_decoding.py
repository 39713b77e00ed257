"""Forced decoding: attention, probabilities and contributions of given pairs of sources and targets, in batches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from translucid.data.placeholders import Masked
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import AlignmentLayer, ForcedPass, forced_pass
from translucid.decoding.pair_scores import paired_batches
from translucid.ground.special import SPECIAL
from translucid.inspection.contributions import Contributions, contributions, recording_terms
from translucid.inspection.inspected import Inspected
from translucid.models.protocol import Maps, SequenceModel


def forced_decoding(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str = "cpu",
    batch_tokens: int = 4096,
    *,
    with_attention: bool = True,
    layer: AlignmentLayer | None = None,
    run: str = "",
    masked: Sequence[Masked] = (),
    with_contributions: bool = False,
    before: Sequence[list[int]] = (),
    with_context: bool = False,
) -> list[Inspected]:
    """Return the inspection of each pair of source and target ids, end tokens included.

    Args:
        model: the model, in evaluation mode.
        tokenizer: the tokenizer of the model.
        pairs: ids of sources and targets.
        device: the device of the model.
        batch_tokens: tokens in a batch, padding included; every batch has at least one pair.
        with_attention: whether to return attention besides log-probabilities.
        layer: the alignment layer of the model, if it has one.
        run: the run folder of the model, if it has one.
        masked: the sources, to show their text in place of placeholders and unknown pieces; without them, the pieces
            are shown as the model reads them.
        with_contributions: whether to compute contributions and norms, in batches of an eighth of the size.
        before: the ids that the model reads before each source: the sentences before it (`TextPipeline.context_ids`).
        with_context: whether results include these positions. Without them, rows of attention may sum to less than 1.

    Raises:
        UserError: the model has no contributions.
    """
    if with_contributions:
        batch_tokens //= 8  # the values of all heads, layers and positions are in memory at once
    inspected: dict[int, Inspected] = {}
    contexts = before or [[]] * len(pairs)
    inputs = [([*context, *source], target) for context, (source, target) in zip(contexts, pairs, strict=True)]
    for batch, source, target in paired_batches(inputs, model.pad, device, batch_tokens):
        forced, shares = inspecting_pass(model, source, target, with_attention, layer, with_contributions)
        for row, i in enumerate(batch):
            source_ids, target_ids = pairs[i]
            source_pieces, target_pieces = _pieces(tokenizer, pairs[i], masked[i] if masked else None)
            positions, context = slice(len(contexts[i]), len(contexts[i]) + len(source_ids)), 0
            if with_context:
                positions, context = slice(0, positions.stop), len(contexts[i])
                source_ids = [*contexts[i], *source_ids]
                source_pieces = [*tokenizer.source_pieces(contexts[i]), *source_pieces]
            links = None
            if forced.links is not None:
                links = forced.links[row, : len(target_ids), positions].cpu()
            inspected[i] = Inspected(
                source_pieces,
                target_pieces,
                _unpadded(forced.maps, row, positions, len(target_ids)),
                forced.log_probs[row, : len(target_ids)].tolist(),
                (len(tokenizer.source_opening), len(tokenizer.target_opening)),
                links,
                run,
                tuple(position for position, token in enumerate(source_ids) if token == SPECIAL.unknown),
                shares.of_sentence(row, positions, len(target_ids)) if shares else None,
                context,
            )
    return [inspected[i] for i in range(len(pairs))]  # batches are sorted by length


def _pieces(
    tokenizer: Tokenizer, pair: tuple[list[int], list[int]], masked: Masked | None
) -> tuple[list[str], list[str]]:
    """Return the pieces of source and target, with the text of the source in place of placeholders if it is known."""
    source, target = pair
    if masked is None:
        return tokenizer.source_pieces(source), tokenizer.target_pieces(target)
    source_pieces = masked.unmask_pieces(tokenizer.source_pieces(source, masked.text or None))
    return source_pieces, masked.unmask_pieces(tokenizer.target_pieces(target))


@torch.inference_mode()
def inspecting_pass(
    model: SequenceModel,
    source: Tensor,
    target: Tensor,
    with_attention: bool = True,
    layer: AlignmentLayer | None = None,
    with_contributions: bool = False,
) -> tuple[ForcedPass, Contributions | None]:
    """Return the result of `forced_pass` for a batch and, if requested, the contributions.

    Raises:
        UserError: the model has no contributions.
    """
    if not with_contributions:
        return forced_pass(model, source, target, with_attention=with_attention, layer=layer), None
    with recording_terms(model) as record:
        forced = forced_pass(model, source, target, with_attention=with_attention, layer=layer)
    return forced, contributions(model, record)


def _unpadded(maps: Maps, row: int, source: slice, target: int) -> Maps:
    """Return the maps [H, T, S] of one pair in a batch [B, H, T, S], at these source positions, without padding."""
    pair_maps = {}
    for name, weights in maps.items():
        side, _, kind = name.split(".")
        queries = source if side == "encoder" else slice(target)
        keys = slice(target) if side == "decoder" and kind == "self" else source
        pair_maps[name] = weights[row, :, queries, keys].cpu()
    return pair_maps
