"""Attention masks as coloured squares, also those of a batch, by the functions that compute the masks of the models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from translucid.attention.masks import causal_mask, padding_mask, target_mask
from translucid.data.batching import padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.inspection.plots.saving import new_figure

MaskKind = Literal["target", "causal", "padding"]


def draw_padding(mask: Tensor, texts: Sequence[Sequence[str]]) -> Figure:
    """Draw the padding mask [B, 1, 1, S] of a batch: a row for each text, its pieces in the squares.

    Raises:
        ValueError: the numbers of texts and pieces don't match the shape of the mask.
    """
    batch, length = mask.size(0), mask.size(-1)
    if [*map(len, texts)] != [length] * batch:
        raise ValueError(f"a mask {tuple(mask.shape)} for {len(texts)} texts of {sorted(map(len, texts))} pieces")
    longest = max(map(len, chain.from_iterable(texts)))
    figure = new_figure(1.2 + max(0.36, 0.11 * longest) * length, 1.2 + 0.36 * batch)
    axes = figure.subplots()
    flat = mask.reshape(batch, length)
    _squares(axes, flat, [f"text {i}" for i in range(1, batch + 1)], list(map(str, range(1, length + 1))))
    axes.set(xlabel="padding mask: attention to green positions is allowed")
    for row, text in enumerate(texts):
        for column, piece in enumerate(text):
            axes.text(column, row, piece, ha="center", va="center", fontsize=7)
    return figure


def draw_mask(mask: Tensor, rows: Sequence[str], columns: Sequence[str], title: str = "") -> Figure:
    """Draw a mask [.., rows, columns], the first entry of each leading dimension; green = attention is allowed.

    Raises:
        ValueError: the numbers of labels don't match the shape of the mask.
    """
    while mask.dim() > 2:
        mask = mask[0]
    if mask.size(0) == 1:  # a row that holds for all queries
        mask = mask.expand(len(rows), -1)
    figure = new_figure(1.5 + 0.36 * len(columns), 1.2 + 0.36 * len(rows))
    _draw(figure.subplots(), mask, rows, columns)
    figure.suptitle(title, fontsize=10)
    return figure


def draw_masks(mask: Tensor, labels: Sequence[Sequence[str]], title: str = "") -> Figure:
    """Draw the masks [B, 1, T, T] of a batch side by side, with the tokens of each of its texts [B][T].

    Raises:
        ValueError: the numbers of labels don't match the shape of the mask.
    """
    length = mask.size(-1)
    if len(labels) != len(mask):
        raise ValueError(f"masks {tuple(mask.shape)} for {len(labels)} texts")
    figure = new_figure((1.5 + 0.36 * length) * len(labels), 1.4 + 0.36 * length)
    for axes, of_text, tokens in zip(figure.subplots(1, len(labels), squeeze=False)[0], mask, labels, strict=True):
        _draw(axes, of_text[0], tokens, tokens)
    figure.suptitle(title, fontsize=10)
    return figure


def _draw(axes: Axes, mask: Tensor, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Draw a mask [rows, columns]."""
    if tuple(mask.shape) != (len(rows), len(columns)):
        raise ValueError(f"a mask {tuple(mask.shape)} for {len(rows)} rows and {len(columns)} columns")
    _squares(axes, mask, rows, columns)
    axes.set(xlabel="key", ylabel="query")
    axes.xaxis.set_label_position("bottom")
    for row in range(len(rows)):
        for column in range(len(columns)):
            axes.text(column, row, "✓" if mask[row, column] else "·", ha="center", va="center", fontsize=7)


def _squares(axes: Axes, mask: Tensor, rows: Sequence[str], columns: Sequence[str]) -> None:
    axes.imshow(mask.float(), cmap="Greens", vmin=0, vmax=1.4, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8)
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)


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
