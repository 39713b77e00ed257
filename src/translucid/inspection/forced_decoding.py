"""Watch a model write given targets for given sources, in batches (forced decoding)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

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
    """Return what is to be seen of each pair of source and target ids, end tokens included.

    Args:
        model: in evaluation mode.
        tokenizer: its own.
        pairs: ids of sources and targets.
        device: where the model is.
        batch_tokens: in a batch, padding included; at least one pair is in every batch.
        look: whether attention is wanted, besides log-probabilities.
        layer: that of the model, if it has one.
        run: the model's run folder, if it has one.
        masked: the sources, so that placeholders, and characters that the model does not know, are shown as they are;
            if none are given, the pieces are shown that the model reads.
    """
    found: dict[int, Inspected] = {}
    for batch, source, target in paired_batches(pairs, model.pad, device, batch_tokens):
        forced = forced_pass(model, source, target, look=look, layer=layer)
        for row, i in enumerate(batch):
            source_ids, target_ids = pairs[i]
            size = len(target_ids), len(source_ids)
            pieces = tokenizer.source_pieces(source_ids, masked[i].text or None if masked else None)
            written = tokenizer.target_pieces(target_ids)
            found[i] = Inspected(
                masked[i].unmask_pieces(pieces) if masked else pieces,
                masked[i].unmask_pieces(written) if masked else written,
                _cut({name: weights[row] for name, weights in forced.maps.items()}, *reversed(size)),
                forced.log_probs[row, : size[0]].tolist(),
                (len(tokenizer.source_opening), len(tokenizer.target_opening)),
                None if forced.links is None else forced.links[row, : size[0], : size[1]].cpu(),
                run,
                tuple(place for place, token in enumerate(source_ids) if token == SPECIAL.unknown),
            )
    return [found[i] for i in range(len(pairs))]


def _cut(maps: Maps, source: int, target: int) -> Maps:
    """Leave out the padding of [H, T, S] maps."""

    def cut(name: str, weights: Tensor) -> Tensor:
        side, _, kind = name.split(".")
        rows = source if side == "encoder" else target
        columns = target if side == "decoder" and kind == "self" else source
        return weights[:, :rows, :columns].cpu()

    return {name: cut(name, weights) for name, weights in maps.items()}
