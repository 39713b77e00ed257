"""Heatmaps: attention between words, attention masks, lenses, patching, importance of heads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from translucid.attention.masks import causal_mask, padding_mask, target_mask
from translucid.data.batching import padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import chosen_maps
from translucid.ground.special import SPECIAL
from translucid.inspection.head_importance import HeadImportance, HeadReport
from translucid.inspection.inspected import Inspected
from translucid.inspection.lens import Lens
from translucid.inspection.patching import Patching, column_names, percents, summary
from translucid.inspection.plots.saving import new_figure
from translucid.inspection.words import WordMap

COLORS = "Blues"
CONTEXT_COLOR = "#56606d"
"""The color of the words of previous sentences."""
MaskKind = Literal["target", "causal", "padding"]


def draw_words(words: WordMap, title: str = "", label: str = "attention") -> Figure:
    """Draw one map between words: target words down, source words across; the darker, the greater the weight."""
    figure = new_figure(*_size(words, 0.36, 2.0))
    axes = figure.subplots()
    squares = _squares(axes, words, 9)
    if title:
        axes.set_title(title, fontsize=10)
    figure.colorbar(squares, ax=axes, shrink=0.6, label=label)
    return figure


def draw_heads(inspected: Inspected, layer: int, kind: str = "cross") -> Figure:
    """Draw the heads of a layer as small multiples; `kind` is `cross`, `encoder` or `decoder` (self-attention).

    Raises:
        UserError: there is no such attention, or no such layer.
    """
    (name,) = chosen_maps(inspected.heads, kind, layer)
    maps = inspected.word_maps(name)
    max_columns = 4 if len(maps[0].source) < 15 else 2  # wide maps stay readable
    columns = min(len(maps), max_columns)
    rows = -(-len(maps) // columns)
    width, height = _size(maps[0], 0.22, 1.2)
    figure = new_figure(width * columns, height * rows)
    for head, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        _draw_head(axes, name, maps, head, 6, 8)
    return figure


def draw_attention(inspected: Inspected, kind: str = "cross") -> Figure:
    """Draw all layers down and all heads across; `kind` is `cross`, `encoder` or `decoder` (self-attention).

    Raises:
        UserError: the model has no such attention.
    """
    layers = {name: inspected.word_maps(name) for name in chosen_maps(inspected.heads, kind)}
    heads = max(map(len, layers.values()))
    first_map = next(iter(layers.values()))[0]
    width, height = _size(first_map, 0.13, 0.5)
    figure = new_figure(width * heads, height * len(layers) + 0.4)
    grid = figure.subplots(len(layers), heads, squeeze=False)
    for row, (name, maps) in zip(grid, layers.items(), strict=True):
        for head, axes in enumerate(row):
            _draw_head(axes, name, maps, head, 5, 6)
    figure.suptitle(f"{kind} attention: layers down, heads across", fontsize=9)
    return figure


def _draw_head(axes: Axes, name: str, maps: Sequence[WordMap], head: int, font: int, title_font: int) -> None:
    """Draw a head in its cell of a grid, which may have more cells than the layer has heads."""
    if head >= len(maps):
        axes.set_axis_off()
        return
    _squares(axes, maps[head], font)
    axes.set_title(f"{name}, head {head}", fontsize=title_font)


def _size(words: WordMap, inches: float, margin: float) -> tuple[float, float]:
    """Return the width and height of a map with squares of this size, in inches, with room for the words around it."""
    label_width = 0.09 * max(map(len, words.target))
    label_height = 0.09 * max(map(len, words.source))
    return margin + label_width + inches * len(words.source), margin / 2 + label_height + inches * len(words.target)


def _squares(axes: Axes, words: WordMap, size: int) -> Any:
    squares = axes.imshow(words.weights.float(), cmap=COLORS, vmin=0, vmax=1)
    _label(axes, words.target, words.source, size)
    # White lines between the squares: a grid at minor ticks, halfway between the words.
    axes.set_xticks(np.arange(1, len(words.source)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(words.target)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    _gray_context(axes, words)
    return squares


def _gray_context(axes: Axes, words: WordMap) -> None:
    """Write the words of previous sentences in gray italics, and draw a line after them."""
    for label in axes.get_xticklabels()[: words.context]:
        label.set(color=CONTEXT_COLOR, style="italic")
    if words.context:
        axes.axvline(words.context - 0.5, color=CONTEXT_COLOR, linewidth=1)


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
    _mask_squares(axes, flat, [f"text {i}" for i in range(1, batch + 1)], list(map(str, range(1, length + 1))))
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
    if mask.size(0) == 1:  # one row that applies to all queries
        mask = mask.expand(len(rows), -1)
    figure = new_figure(1.5 + 0.36 * len(columns), 1.2 + 0.36 * len(rows))
    _draw_mask(figure.subplots(), mask, rows, columns)
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
    for axes, text_mask, tokens in zip(figure.subplots(1, len(labels), squeeze=False)[0], mask, labels, strict=True):
        _draw_mask(axes, text_mask[0], tokens, tokens)
    figure.suptitle(title, fontsize=10)
    return figure


def _draw_mask(axes: Axes, mask: Tensor, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Draw a mask [rows, columns]."""
    if tuple(mask.shape) != (len(rows), len(columns)):
        raise ValueError(f"a mask {tuple(mask.shape)} for {len(rows)} rows and {len(columns)} columns")
    _mask_squares(axes, mask, rows, columns)
    axes.set(xlabel="key", ylabel="query")
    axes.xaxis.set_label_position("bottom")
    for row in range(len(rows)):
        for column in range(len(columns)):
            axes.text(column, row, "✓" if mask[row, column] else "·", ha="center", va="center", fontsize=7)


def _mask_squares(axes: Axes, mask: Tensor, rows: Sequence[str], columns: Sequence[str]) -> None:
    axes.imshow(mask.float(), cmap="Greens", vmin=0, vmax=1.4, aspect="auto")
    _label(axes, rows, columns, 8)


def _label(axes: Axes, rows: Sequence[str], columns: Sequence[str], size: int) -> None:
    """Name the rows and, above them, the columns of squares."""
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=size)
    axes.set_yticks(range(len(rows)), rows, fontsize=size)
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


def draw_lens(lens: Lens) -> Figure:
    """Draw the most probable piece of each layer: words down, layers across; a frame where a word is decided."""
    words = lens.words
    widest = 3
    for word in words:
        widest = max(widest, *map(len, word.top))
    label_width = 0.09 * max(len(word.word) for word in words)
    cell_width = 0.35 + 0.075 * widest
    figure = new_figure(1.6 + label_width + cell_width * len(lens.layers), 0.8 + 0.36 * len(words))
    axes = figure.subplots()
    probabilities = [word.top_probabilities for word in words]
    squares = axes.imshow(probabilities, cmap=COLORS, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(lens.layers)), lens.layers, fontsize=9)
    axes.set_yticks(range(len(words)), [word.word for word in words], fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for row, word in enumerate(words):
        for column, (top, probability) in enumerate(zip(word.top, word.top_probabilities, strict=True)):
            color = "white" if probability > 0.6 else "black"
            axes.text(column, row, top, ha="center", va="center", fontsize=8, color=color)
        if word.decided is not None:
            frame = Rectangle(
                (word.decided - 0.47, row - 0.45), 0.94, 0.9, fill=False, edgecolor="#d97706", linewidth=2
            )
            axes.add_patch(frame)
    kind = "tuned" if lens.tuned else "logit"
    axes.set_title(f"{kind} lens: predictions of each layer", fontsize=10)
    figure.colorbar(squares, ax=axes, shrink=0.6, label="probability")
    return figure


def draw_patching(patching: Patching) -> Figure:
    """Draw the share that each place carries in per cent: layers down, words across; the first layer is at the top.

    A place is blue if it makes the run like that on CLEAN (1), red if it does the opposite.
    """
    columns = max(len(part.words) for part in patching.parts)
    heights = [1.3 + 0.35 * len(part.points) for part in patching.parts]
    figure = new_figure(2.2 + 0.75 * columns, 0.5 + sum(heights))
    grid = figure.subplots(len(patching.parts), 1, squeeze=False, height_ratios=heights)
    for axes, part in zip(grid[:, 0], patching.parts, strict=True):
        axes.imshow(part.carried.numpy(), cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        axes.set_xticks(range(len(part.words)), column_names(part), rotation=30, ha="left", fontsize=8)
        axes.set_yticks(range(len(part.points)), part.layers, fontsize=8)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.set_xlim(-0.5, columns - 0.5)  # all parts have squares of the same width
        axes.set_frame_on(False)
        axes.set_title(f"{part.kind}: % of the difference carried", fontsize=8, loc="left")
        for row, texts in enumerate(percents(part)):
            for column, text in enumerate(texts):
                dark = abs(part.carried[row, column]) > 0.6
                axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    figure.suptitle(summary(patching), fontsize=9)
    return figure


def draw_head_report(report: HeadReport) -> Figure:
    """Draw the importance of each head by both measures, layers down and heads across, and the score over the rest."""
    attentions: dict[str, list[HeadImportance]] = {}
    for head in report.heads:
        attentions.setdefault(head.name.rpartition(".head.")[0], []).append(head)
    figure = new_figure(13, max(3.5, 0.35 * len(attentions) + 1.5))
    gradient, ablation, curve = figure.subplots(1, 3, width_ratios=[1, 1, 1.4])
    by_gradient, by_ablation = [], []
    for heads in attentions.values():
        by_gradient.append([head.gradient for head in heads])
        by_ablation.append([head.ablation for head in heads])
    _draw_importance(gradient, by_gradient, list(attentions), "by gradient: mean |dL/dg|")
    _draw_importance(ablation, by_ablation, list(attentions), "by ablation: increase of L")
    for order, points in report.curves.items():
        remaining = [len(report.heads) - point.off for point in points]
        curve.plot(remaining, [point.score for point in points], marker="o", markersize=4, label=f"by {order}")
    curve.set(xlabel="heads left", ylabel=report.metric, title="without the least important heads", ylim=0)
    curve.invert_xaxis()
    curve.grid(alpha=0.3)
    curve.legend(fontsize=8)
    return figure


def _draw_importance(axes: Axes, rows: Sequence[Sequence[float]], attentions: Sequence[str], title: str) -> None:
    """Draw a cell for each head; attentions with fewer heads than others end earlier."""
    table = np.full((len(rows), max(map(len, rows))), np.nan)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    squares = axes.imshow(table, cmap="Blues", vmin=min(0.0, np.nanmin(table)), aspect="auto")
    axes.set_title(f"{title} (nats per sentence)", fontsize=9)
    axes.set_xticks(range(table.shape[1]))
    axes.set_yticks(range(len(rows)), attentions, fontsize=8)
    axes.set_xlabel("head")
    axes.figure.colorbar(squares, ax=axes)
