"""Pictures of the masks that a batch of sentences gets, made by the functions that make those of the models."""

from __future__ import annotations

from collections.abc import Sequence
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
        kind: `padding` of the sources; `causal` of the longest target; `target`, both of them together, of each target.
        tokenizer: names the tokens.
        sources: ids, end tokens included.
        targets: ids, end tokens not included.
    """
    if kind == "padding":
        ids = padded(sources, SPECIAL.pad)  # [B, S]
        names = [_named(tokenizer.source_pieces(row)) for row in ids.tolist()]
        return draw_padding(padding_mask(ids, SPECIAL.pad), names)
    fed = padded([[SPECIAL.start, *target] for target in targets], SPECIAL.pad)  # [B, T], what the decoder is fed
    names = [_named(tokenizer.target_pieces(row)) for row in fed.tolist()]
    if kind == "causal":
        longest = max(range(len(targets)), key=lambda i: len(targets[i]))
        return draw_masks(
            causal_mask(fed.size(1))[None, None], [names[longest]], "causal mask: the past and the present"
        )
    return draw_masks(target_mask(fed, SPECIAL.pad), names, "target mask: the past and the present, and no padding")


def _named(pieces: Sequence[str]) -> list[str]:
    return [piece.replace("▁", "") or "▁" for piece in pieces]
