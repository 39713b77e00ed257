"""Attention as shaded squares: one map, the heads of a layer, all layers."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from translucid.inspection.inspected import Inspected
from translucid.inspection.plots.saving import new_figure
from translucid.inspection.words import WordMap, word_map

COLOURS = "Blues"


def draw_words(words: WordMap, title: str = "") -> Figure:
    """One map between words: target words down, source words across, the darker the more."""
    figure = new_figure(*_size(words, 0.36, 2.0))
    axes = figure.subplots()
    image = _squares(axes, words, 9)
    if title:
        axes.set_title(title, fontsize=10)
    figure.colorbar(image, ax=axes, shrink=0.6, label="attention")
    return figure


def draw_heads(inspected: Inspected, layer: int) -> Figure:
    """The cross-attention of a layer: all its heads as small multiples.

    Raises:
        UserError: there is no such layer.
    """
    heads = _heads(inspected, layer)
    maps = [inspected.words(inspected.cross(layer, head)) for head in range(heads)]
    columns = min(heads, 4 if len(maps[0].source) < 15 else 2)
    rows = -(-heads // columns)
    width, height = _size(maps[0], 0.22, 1.2)
    figure = new_figure(width * columns, height * rows)
    for head, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if head >= heads:
            axes.set_axis_off()
            continue
        _squares(axes, maps[head], 6)
        axes.set_title(f"layer {layer}, head {head}", fontsize=8)
    return figure


def draw_attention(inspected: Inspected, kind: str = "cross") -> Figure:
    """All layers down and all heads across; `kind` is `cross`, `encoder` or `decoder` (the two self-attentions).

    Raises:
        UserError: the model has no attention.
    """
    side, name = ("decoder", "cross") if kind == "cross" else (kind, "self")
    if kind == "cross":
        inspected.cross()  # raises if there is none
    found = {key: weights for key, weights in inspected.maps.items() if key.startswith(side) and key.endswith(name)}
    down = inspected.source if kind == "encoder" else inspected.target
    across = inspected.target if kind == "decoder" else inspected.source
    layers, heads = len(found), max((len(weights) for weights in found.values()), default=1)
    size = 1.1 + 0.09 * max(len(down), len(across))
    figure = new_figure(size * heads, size * max(layers, 1) + 0.4)
    grid = figure.subplots(max(layers, 1), heads, squeeze=False)
    for row, (key, weights) in zip(grid, found.items(), strict=False):
        for head, axes in enumerate(row):
            words = word_map(across, down, weights[head].float())
            axes.imshow(words.weights, cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"{key.removesuffix('.' + name)}, {head}", fontsize=7)
    figure.suptitle(f"{kind} attention: layers down, heads across", fontsize=9)
    return figure


def _heads(inspected: Inspected, layer: int) -> int:
    inspected.cross(layer)  # raises if there is none
    return len(inspected.maps[f"decoder.{layer}.cross"])


def _size(words: WordMap, inches: float, margin: float) -> tuple[float, float]:
    """Room for the squares and for the words beside and above them."""
    beside = 0.09 * max(map(len, words.target))
    above = 0.09 * max(map(len, words.source))
    return margin + beside + inches * len(words.source), margin / 2 + above + inches * len(words.target)


def _squares(axes: Axes, words: WordMap, size: int) -> Any:
    image = axes.imshow(words.weights.float(), cmap=COLOURS, vmin=0, vmax=1)
    axes.set_xticks(range(len(words.source)), words.source, rotation=90, fontsize=size)
    axes.set_yticks(range(len(words.target)), words.target, fontsize=size)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xticks([i - 0.5 for i in range(1, len(words.source))], minor=True)
    axes.set_yticks([i - 0.5 for i in range(1, len(words.target))], minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    return image
