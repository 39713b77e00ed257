"""Forced decoding: attention, probabilities and contributions of given pairs of sources and targets, in batches."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from translucid.data.text_pipeline import EncodedPair
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
    pairs: Sequence[EncodedPair],
    device: torch.device | str = "cpu",
    batch_tokens: int = 4096,
    *,
    with_attention: bool = True,
    layer: AlignmentLayer | None = None,
    run: str = "",
    with_contributions: bool = False,
    with_context: bool = False,
) -> list[Inspected]:
    """Return the inspection of each pair of source and target ids.

    Args:
        model: the model, in evaluation mode.
        tokenizer: the tokenizer of the model.
        pairs: ids of sources and targets, each after its context.
        device: the device of the model.
        batch_tokens: tokens in a batch, padding included; every batch has at least one pair.
        with_attention: whether to return attention besides log-probabilities.
        layer: the alignment layer of the model, if it has one.
        run: the run folder of the model, if it has one.
        with_contributions: whether to compute contributions and norms, in batches of an eighth of the size.
        with_context: whether results include the positions of the context. Without them, rows of attention may sum to
            less than 1.

    Raises:
        UserError: the model has no contributions.
    """
    if with_contributions:
        batch_tokens //= 8  # the values of all heads, layers and positions are in memory at once
    inspected: dict[int, Inspected] = {}
    inputs = [pair.input_ids for pair in pairs]
    for batch, source, target in paired_batches(inputs, model.pad, device, batch_tokens):
        forced, shares = inspecting_pass(model, source, target, with_attention, layer, with_contributions)
        for row, i in enumerate(batch):
            source_ids, target_ids, _, context_ids = pairs[i]
            source_pieces, target_pieces = _pieces(tokenizer, pairs[i])
            positions, context = slice(len(context_ids), len(context_ids) + len(source_ids)), 0
            if with_context:
                positions, context = slice(0, positions.stop), len(context_ids)
                source_ids = [*context_ids, *source_ids]
                source_pieces = [*tokenizer.source_labels(context_ids), *source_pieces]
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


def _pieces(tokenizer: Tokenizer, pair: EncodedPair) -> tuple[list[str], list[str]]:
    """Return the pieces of source and target, with the text of the source in place of placeholders if it is known."""
    source, target, masked, _ = pair
    if masked is None:
        return tokenizer.source_labels(source), tokenizer.target_labels(target)
    source_pieces = masked.unmask_pieces(tokenizer.source_labels(source, masked.text or None))
    return source_pieces, masked.unmask_pieces(tokenizer.target_labels(target))


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
