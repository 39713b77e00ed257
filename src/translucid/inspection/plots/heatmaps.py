"""Heatmaps of attention: one map, the heads of a layer, all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from translucid.decoding.maps import chosen_maps
from translucid.inspection.inspected import Inspected
from translucid.inspection.plots.saving import new_figure
from translucid.inspection.words import WordMap

COLOURS = "Blues"


def draw_words(words: WordMap, title: str = "") -> Figure:
    """Draw one map between words: target words down, source words across; the darker, the greater the weight."""
    figure = new_figure(*_size(words, 0.36, 2.0))
    axes = figure.subplots()
    image = _squares(axes, words, 9)
    if title:
        axes.set_title(title, fontsize=10)
    figure.colorbar(image, ax=axes, shrink=0.6, label="attention")
    return figure


def draw_heads(inspected: Inspected, layer: int, kind: str = "cross") -> Figure:
    """Draw the heads of a layer as small multiples; `kind` is `cross`, `encoder` or `decoder` (self-attention).

    Raises:
        UserError: there is no such attention, or no such layer.
    """
    (name,) = chosen_maps(inspected.heads, kind, layer)
    maps = inspected.word_maps(name)
    most = 4 if len(maps[0].source) < 15 else 2  # wide maps stay readable
    columns = min(len(maps), most)
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
    first = next(iter(layers.values()))[0]
    width, height = _size(first, 0.13, 0.5)
    figure = new_figure(width * heads, height * len(layers) + 0.4)
    grid = figure.subplots(len(layers), heads, squeeze=False)
    for row, (name, maps) in zip(grid, layers.items(), strict=True):
        for head, axes in enumerate(row):
            _draw_head(axes, name, maps, head, 5, 6)
    figure.suptitle(f"{kind} attention: layers down, heads across", fontsize=9)
    return figure


def _draw_head(axes: Axes, name: str, maps: Sequence[WordMap], head: int, font: int, title_font: int) -> None:
    """Draw a head in its place of a grid, which may have more places than the layer has heads."""
    if head >= len(maps):
        axes.set_axis_off()
        return
    _squares(axes, maps[head], font)
    axes.set_title(f"{name}, head {head}", fontsize=title_font)


def _size(words: WordMap, inches: float, margin: float) -> tuple[float, float]:
    """Return the width and height of a map with squares of this size, in inches, with room for the words around it."""
    beside = 0.09 * max(map(len, words.target))
    above = 0.09 * max(map(len, words.source))
    return margin + beside + inches * len(words.source), margin / 2 + above + inches * len(words.target)


def _squares(axes: Axes, words: WordMap, size: int) -> Any:
    image = axes.imshow(words.weights.float(), cmap=COLOURS, vmin=0, vmax=1)
    axes.set_xticks(range(len(words.source)), words.source, rotation=90, fontsize=size)
    axes.set_yticks(range(len(words.target)), words.target, fontsize=size)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    # White lines between the squares: a grid at minor ticks, halfway between the words.
    axes.set_xticks(np.arange(1, len(words.source)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(words.target)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    return image
