"""Forced decoding: a model's attention and probabilities for given pairs of sources and targets, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from translucid.data.placeholders import Masked
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import forced_pass
from translucid.decoding.pair_scores import paired_batches
from translucid.ground.special import SPECIAL
from translucid.inspection.inspected import Inspected
from translucid.models.protocol import Maps, SequenceModel

if TYPE_CHECKING:
    from translucid.decoding.alignment_layer import AlignmentLayer


def forced_decoding(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str = "cpu",
    batch_tokens: int = 4096,
    *,
    look: bool = True,
    layer: AlignmentLayer | None = None,
    run: str = "",
    masked: Sequence[Masked] = (),
) -> list[Inspected]:
    """Return what can be inspected of each pair of source and target ids, end tokens included.

    Args:
        model: the model, in evaluation mode.
        tokenizer: the tokenizer of the model.
        pairs: ids of sources and targets.
        device: the device of the model.
        batch_tokens: tokens in a batch, padding included; every batch has at least one pair.
        look: whether to return attention besides log-probabilities.
        layer: the alignment layer of the model, if it has one.
        run: the run folder of the model, if it has one.
        masked: the sources, to show their text in place of placeholders and unknown pieces; without them, the pieces
            are shown as the model reads them.
    """
    inspected: dict[int, Inspected] = {}
    for batch, source, target in paired_batches(pairs, model.pad, device, batch_tokens):
        forced = forced_pass(model, source, target, look=look, layer=layer)
        for row, i in enumerate(batch):
            source_ids, target_ids = pairs[i]
            if masked:
                source_pieces = masked[i].unmask_pieces(tokenizer.source_pieces(source_ids, masked[i].text or None))
                target_pieces = masked[i].unmask_pieces(tokenizer.target_pieces(target_ids))
            else:
                source_pieces, target_pieces = tokenizer.source_pieces(source_ids), tokenizer.target_pieces(target_ids)
            links = None
            if forced.links is not None:
                links = forced.links[row, : len(target_ids), : len(source_ids)].cpu()
            inspected[i] = Inspected(
                source_pieces,
                target_pieces,
                _unpadded(forced.maps, row, len(source_ids), len(target_ids)),
                forced.log_probs[row, : len(target_ids)].tolist(),
                (len(tokenizer.source_opening), len(tokenizer.target_opening)),
                links,
                run,
                tuple(place for place, token in enumerate(source_ids) if token == SPECIAL.unknown),
            )
    return [inspected[i] for i in range(len(pairs))]  # batches are sorted by length


def _unpadded(maps: Maps, row: int, source: int, target: int) -> Maps:
    """Return the maps [H, T, S] of one pair in a batch [B, H, T, S], without its padding."""
    cut = {}
    for name, weights in maps.items():
        side, _, kind = name.split(".")
        queries = source if side == "encoder" else target
        keys = target if side == "decoder" and kind == "self" else source
        cut[name] = weights[row, :, :queries, :keys].cpu()
    return cut
