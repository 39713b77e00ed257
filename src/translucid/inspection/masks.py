"""Figures of the attention masks of a batch, computed by the functions that compute the masks of the models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.figure import Figure

from translucid.attention.masks import causal_mask, padding_mask, target_mask
from translucid.data.batching import padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.inspection.plots import draw_masks, draw_padding

MaskKind = Literal["target", "causal", "padding"]


def draw_batch_mask(
    kind: MaskKind, tokenizer: Tokenizer, sources: Sequence[list[int]], targets: Sequence[list[int]]
) -> Figure:
    """Draw the mask of a batch.

    Args:
        kind: `padding` of the sources; `causal` of the longest target; `target`, the two combined, of each target.
        tokenizer: the tokenizer of the ids.
        sources: ids, end tokens included.
        targets: ids, end tokens not included.
    """
    if kind == "padding":
        ids = padded(sources, SPECIAL.pad)  # [B, S]
        return draw_padding(padding_mask(ids, SPECIAL.pad), _labels(map(tokenizer.source_pieces, ids.tolist())))
    inputs = padded([[SPECIAL.start, *target] for target in targets], SPECIAL.pad)  # [B, T], input of the decoder
    labels = _labels(map(tokenizer.target_pieces, inputs.tolist()))
    if kind == "causal":
        longest = max(range(len(targets)), key=lambda i: len(targets[i]))
        mask = causal_mask(inputs.size(1))[None, None]
        return draw_masks(mask, [labels[longest]], "causal mask: the past and the present")
    return draw_masks(target_mask(inputs, SPECIAL.pad), labels, "target mask: the past and the present, and no padding")


def _labels(texts: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return the pieces of each text without the mark of a word's beginning, unless a piece is nothing else."""
    labels = []
    for pieces in texts:
        labels.append([piece.replace("▁", "") or "▁" for piece in pieces])
    return labels
