"""Figures by Matplotlib, drawn without a screen, with the installed fonts.

Heat maps show attention between words, masks, lenses, patching and the importance of heads; ribbons show attention
between two lines of words. Other figures are curves of training, positional encodings, the reliability of
probabilities, the tree of a beam search, and simple SVGs, such as that of an attribution graph.
"""

from __future__ import annotations

import io
import logging
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.text import Text
from torch import Tensor

from translucid.attention.masks import causal_mask, padding_mask, target_mask
from translucid.data.batching import padded
from translucid.data.tokenizing.pieces import without_space
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.hypothesis import percent
from translucid.decoding.maps import chosen_maps
from translucid.decoding.trace import BeamTrace
from translucid.evaluation.confidence import Bin
from translucid.ground.atomic import write_output
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.head_importance import HeadImportance, HeadReport
from translucid.inspection.inspected import Inspected
from translucid.inspection.lens import Lens
from translucid.inspection.patching import Patching, column_names, percents, summary
from translucid.inspection.rendering.captions import current_caption, described
from translucid.inspection.words import WordMap, is_right_to_left

__all__ = [
    "draw_attention",
    "draw_beam",
    "draw_curves",
    "draw_head_report",
    "draw_heads",
    "draw_lens",
    "draw_mask",
    "draw_masks",
    "draw_padding",
    "draw_patching",
    "draw_positions",
    "draw_reliability",
    "draw_ribbons",
    "draw_svg",
    "draw_words",
    "save_figure",
]

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
    if is_right_to_left(words.source):
        axes.invert_xaxis()
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
        labels.append([without_space(piece) for piece in pieces])
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
        if is_right_to_left(part.words):
            axes.invert_xaxis()
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


# Matplotlib warns of each glyph that no font has, each time that it draws it; `save_figure` says it once.
warnings.filterwarnings("ignore", message="Glyph .* missing from font")

_SCRIPTS = ("CJK", "Arabic", "Hebrew", "Devanagari", "Thai", "Bengali", "Tamil", "Georgian", "Armenian", "Ethiopic")
"""Parts of the names of fonts for other scripts."""


SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The colors of lines, which people with any color vision can tell apart (Okabe and Ito 2008)."""


class ShownFigure(Figure):
    """A figure that shows itself in a notebook, whatever backend Matplotlib has there."""

    def add_subplot(self, *args: Any, **kwargs: Any) -> Axes:
        """Add axes whose lines have our colors."""
        axes: Axes = super().add_subplot(*args, **kwargs)
        axes.set_prop_cycle(color=SERIES)
        return axes

    def _repr_png_(self) -> bytes:
        return rendered(self, "png", dpi=90)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches; nothing is drawn on a screen."""
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # registers itself as the figure's canvas
    return figure


def save_figure(figure: Figure, file: Path, dpi: int = 144, caption: str | None = None) -> None:
    """Write a figure as .png, .svg or .pdf.

    Args:
        figure: the figure.
        file: the file.
        dpi: the resolution of a .png.
        caption: a text that the file carries as metadata; by default the run and the command that saves the figure.

    Raises:
        UserError: the file has another ending.
    """
    kind = file.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise UserError("is no kind of picture that can be drawn", file=file, fix="End it in .png, .svg or .pdf.")
    if kind != "svg" and (characters := _without_font(figure)):
        what = f"no installed font has {characters}, which {file.name} shows as boxes"
        Console(stderr=True).print(f"{what}: install one, such as fonts-noto-cjk, or save .svg", soft_wrap=True)
    write_output(file, rendered(figure, kind, dpi, current_caption() if caption is None else caption))


def _without_font(figure: Figure) -> str:
    """Return the characters of a figure that no installed font has."""
    fonts = [font_manager.get_font(font_manager.findfont(name)) for name in _fonts()]
    characters = {*"".join(text.get_text() for text in figure.findobj(Text))}
    missing = []
    for character in sorted(filter(str.isprintable, characters)):
        if not any(font.get_char_index(ord(character)) for font in fonts):
            missing.append(character)
    return "".join(missing)


def _widen_for_titles(figure: Figure) -> bool:
    """Widen a figure whose titles are cut off, because the layout fits heights only; return whether any were.

    Titles that words across push out at the top, after the layout, need only another layout.
    """
    figure.draw_without_rendering()  # determines the positions of titles
    titles = list(figure.texts)
    for axes in figure.axes:
        titles += [axes.title, axes.xaxis.label]
    excess, is_too_high = 0.0, False
    for title in titles:
        if title.get_text():
            box = title.get_window_extent()
            excess = max(excess, -box.x0, box.x1 - figure.bbox.width)
            is_too_high |= box.y1 > figure.bbox.height
    if excess > 0:
        # Titles are centered, so that both sides need the same room; 4 points (of 1/72 inch) stay free on each.
        figure.set_figwidth(figure.get_figwidth() + 2 * excess / figure.dpi + 8 / 72)
    return excess > 0 or is_too_high


def rendered(figure: Figure, kind: str, dpi: int = 144, caption: str = "") -> bytes:
    """Return the bytes of a figure as `png`, `svg` or `pdf`, with a caption as metadata."""
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    buffer = io.BytesIO()
    # Without dates and random names, so that the same figure always has the same bytes.
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Description": caption} if caption else {},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "Subject": caption or None},
    }
    fonts = _fonts()
    # Texts stay texts, which a drawing program can edit. Publishers reject fonts of type 3, which PDF files would have.
    with rc_context({"font.family": fonts, "svg.hashsalt": "translucid", "svg.fonttype": "none", "pdf.fonttype": 42}):
        # The settings apply to new texts only; those of the figure were created with the default font.
        for text in figure.findobj(Text):
            text.set_fontfamily(fonts)
        engine, original_dpi = figure.get_layout_engine(), figure.dpi
        # The resolution at which Matplotlib draws: the width of a text depends on it.
        figure.dpi = dpi if kind == "png" else 72
        if not _widen_for_titles(figure):
            figure.set_layout_engine("none")  # the same layout would take half of the time again
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata[kind])
        figure.set_layout_engine(engine)
        figure.dpi = original_dpi
    content = buffer.getvalue()
    return described(content.decode(), caption).encode() if kind == "svg" else content


def _fonts() -> list[str]:
    """Return Matplotlib's own font, then the installed fonts of other scripts, for the glyphs that it lacks."""
    names = {font.name for font in font_manager.fontManager.ttflist}
    pattern = re.compile("|".join(_SCRIPTS))
    return ["DejaVu Sans", *sorted(filter(pattern.search, names))]


_COLORS = {"kept": "#1f5fa8", "ended": "#1a7f37", "dropped": "#767676", "ink": "#1c2430", "paper": "white"}


def draw_beam(trace: BeamTrace) -> Figure:
    """Draw what a beam search kept and dropped at each step; the figure at a node is the probability of its token.

    The trace is of one sentence. The path of the output that was chosen is drawn thick.
    """
    nodes, colors = trace.nodes, _COLORS
    step, row = _positions(trace)
    depth, height = max(step), int(max(row)) + 1
    chosen: set[int] = set()
    if trace.best is None:
        row[0] = (height - 1) / 2  # no path is drawn thick: the root stands in the middle
    else:
        chosen = set(trace.path(trace.best))
    figure = new_figure(max(4.0, 1.25 * (depth + 1)), max(2.0, 0.55 * height + 0.8))
    figure.set_facecolor(colors["paper"])
    axes = figure.subplots()
    axes.set_facecolor(colors["paper"])
    axes.tick_params(colors=colors["ink"])
    axes.spines["bottom"].set_color(colors["ink"])
    for i, node in enumerate(nodes):
        thick = i in chosen
        label = trace.name(node.token)
        if i:  # the root has neither a parent nor a probability
            line: dict[str, Any] = {"linewidth": 2.5, "alpha": 1} if thick else {"linewidth": 0.8, "alpha": 0.6}
            ends = [step[node.parent], step[i]], [row[node.parent], row[i]]
            axes.plot(*ends, color=colors[node.fate], zorder=1, **line)
            label += "\n" + percent(math.exp(node.log_prob - nodes[node.parent].log_prob))
        box: dict[str, Any] = {"boxstyle": "round,pad=0.2", "facecolor": colors["paper"]}
        box |= {"edgecolor": colors[node.fate], "linewidth": 2 if thick else 0.8}
        text = axes.text(step[i], row[i], label, fontsize=7, color=colors["ink"], bbox=box, zorder=2)
        text.set(horizontalalignment="center", verticalalignment="center")
    axes.set(xlim=(-0.6, depth + 0.6), ylim=(height - 0.4, -0.7), yticks=[])
    axes.set_xlabel("step", color=colors["ink"])
    axes.set_xticks(range(depth + 1))
    axes.spines[["top", "left", "right"]].set_visible(False)
    handles = [axes.plot([], [], color=colors[fate], label=fate)[0] for fate in ("kept", "ended", "dropped")]
    figure.legend(
        handles=handles, loc="outside lower left", fontsize=7, ncols=3, frameon=False, labelcolor=colors["ink"]
    )
    return figure


def _positions(trace: BeamTrace) -> tuple[list[int], list[float]]:
    """Return the step of each node, and its row among the nodes of the step, which are in order of probability."""
    step, row = [0] * len(trace.nodes), [0.0] * len(trace.nodes)
    counts: dict[int, int] = {}
    for i, node in enumerate(trace.nodes[1:], 1):
        step[i] = step[node.parent] + 1
        row[i] = counts.get(step[i], 0)
        counts[step[i]] = counts.get(step[i], 0) + 1
    return step, row


def draw_curves(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw loss, BLEU and learning rate over minutes.

    Args:
        runs: the rows of `metrics.jsonl` of each run by name.
    """
    figure = new_figure(13, 4)
    loss, bleu, rate = figure.subplots(1, 3)
    for name, rows in runs.items():
        (line,) = loss.plot(*_over_minutes(rows, "training", "loss"), alpha=0.5, linewidth=1, label=f"{name}, training")
        color = line.get_color()
        validation = _over_minutes(rows, "validation", "loss")
        loss.plot(*validation, marker="o", color=color, label=f"{name}, validation")
        bleu.plot(*_over_minutes(rows, "validation", "bleu"), marker="o", color=color, label=name)
        rate.plot(*_over_minutes(rows, "training", "learning_rate"), color=color, label=name)
    loss.set(ylabel="loss (nats a token)", title="loss")
    bleu.set(ylabel="BLEU", title="validation BLEU", ylim=0)
    rate.set(title="learning rate", ylim=0)
    for axes in (loss, bleu, rate):
        axes.set_xlabel("minutes")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def _over_minutes(rows: Sequence[Mapping[str, Any]], kind: str, key: str) -> tuple[list[float], list[float]]:
    """Return minutes and values of the rows of a kind that have both; not every model has BLEU."""
    minutes, values = [], []
    for row in rows:
        seconds, value = row.get("seconds"), row.get(key)
        if row.get("kind") == kind and isinstance(seconds, int | float) and isinstance(value, int | float):
            minutes.append(seconds / 60)
            values.append(float(value))
    return minutes, values


def draw_positions(table: Tensor) -> Figure:
    """Draw a table of positions [length, D] as a matrix, four dimensions over the positions, and one position.

    `table` is `sinusoidal_positions(100, 128)`, for example, or what a model has learned.
    """
    length, width = table.shape
    position = length // 2
    figure = new_figure(13, 4)
    matrix, lines, single = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
    squares = matrix.imshow(table, cmap="RdBu", aspect="auto", interpolation="nearest")
    matrix.set(xlabel="dimension", ylabel="position", title="the matrix P")
    figure.colorbar(squares, ax=matrix)
    for dimension in (0, 1, 16, 17):
        if dimension < width:
            lines.plot(table[:, dimension], label=f"dimension {dimension}")
    lines.set(xlabel="position", title="single dimensions over positions")
    lines.legend(fontsize=8, loc="upper right")
    lines.grid(alpha=0.3)
    single.plot(table[position], linewidth=0.9)
    single.set(xlabel="dimension", title=f"position {position} over the dimensions")
    single.grid(alpha=0.3)
    return figure


def draw_reliability(bins: Sequence[Bin], error: float) -> Figure:
    """Draw bins of translations, with the standard error of each share; perfect calibration is the diagonal.

    `error` is the expected calibration error, for the title.
    """
    figure = new_figure(5, 5)
    axes = figure.subplots()
    table = np.array([(bin_.mean_confidence, bin_.share_good, bin_.count) for bin_ in bins], float)  # [bins, 3]
    predicted, observed, count = table.reshape(-1, 3).T
    error_bars = np.sqrt(observed * (1 - observed) / count)
    axes.plot([0, 1], [0, 1], color="gray", linestyle="--", linewidth=1)
    axes.errorbar(predicted, observed, yerr=error_bars, marker="o", capsize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence", ylabel="share of good translations")
    axes.set_title(f"expected calibration error {error:.3f}")
    axes.grid(alpha=0.3)
    return figure


LETTER, SPACE = 0.115, 0.3
"""The width of a letter and the space between words, in inches."""
GAP = 1.5
"""The distance between the two lines, in inches."""
MAX_WIDTH, MIN_WEIGHT = 0.32, 0.02
"""The width of a ribbon of weight 1 in inches, and the smallest weight that is drawn."""
FOR, AGAINST, DOUBT, INK, SOFT = "#2563eb", "#dc5014", "#a84c06", "#1c2430", "#56606d"
"""The colors of positive and negative weights, of bars of improbable words, of words, and of other bars."""
UNSURE = 0.3
"""The bars of words with a smaller probability are orange."""


def draw_ribbons(words: WordMap, log_probs: Sequence[float] = ()) -> Figure:
    """Draw source words, target words below them, and ribbons between, each as wide at the target as its weight.

    Negative weights, which explanations may have, are orange.

    Args:
        words: weights between words.
        log_probs: log-probabilities of the target words, if a bar under each word is to show its probability.
    """
    above, below = _intervals(words.source), _intervals(words.target)
    width = max(above[-1][1], below[-1][1]) + SPACE
    above, below = _centered(above, width, words.source), _centered(below, width, words.target)
    figure = new_figure(width, GAP + 0.9)
    axes = figure.subplots()
    axes.set(xlim=(0, width), ylim=(-0.45, GAP + 0.45))
    axes.set_axis_off()
    for band in bands(words.weights.tolist(), above, below):
        _ribbon(axes, *band)
    for texts, line, y, context in ((words.source, above, GAP + 0.2, words.context), (words.target, below, -0.2, 0)):
        for position, (text, (start, end)) in enumerate(zip(texts, line, strict=True)):
            # Words of previous sentences are gray and in italics.
            color, style = (SOFT, "italic") if position < context else (INK, "normal")
            middle = (start + end) / 2
            axes.text(middle, y, text, ha="center", va="center", fontsize=10, color=color, style=style)
    for (start, end), value in zip(below, log_probs, strict=bool(log_probs)):
        probability = math.exp(value)
        color = DOUBT if probability < UNSURE else SOFT
        axes.add_patch(Rectangle((start, -0.38), (end - start) * probability, 0.025, facecolor=color, linewidth=0))
    return figure


Interval = tuple[float, float]
"""The left and right edges of a word or of one end of a ribbon, in inches."""
Band = tuple[float, Interval, Interval]
"""A weight, and the ends of its ribbon at the source and at the target."""


def bands(weights: Sequence[Sequence[float]], above: Sequence[Interval], below: Sequence[Interval]) -> list[Band]:
    """Return the ribbons of weights [target, source] between words in these places.

    At a target word ribbons lie side by side, each as wide as the weight times `MAX_WIDTH`; at a source word
    they are narrower if together they would be wider than the word.
    """
    widths: dict[tuple[int, int], float] = {}  # by target and source word
    for target, row in enumerate(weights):
        # The weights of an explanation may sum to more than 1.
        unit = min(MAX_WIDTH, below[target][1] - below[target][0])
        total = max(1.0, sum(map(abs, row)))
        for source, weight in enumerate(row):
            if abs(weight) >= MIN_WEIGHT:
                widths[target, source] = abs(weight) * unit / total
    # From left to right at both ends, so that ribbons of the same word do not cross.
    at_target: dict[tuple[int, int], Interval] = {}
    for target, word in enumerate(below):
        pairs = sorted((pair for pair in widths if pair[0] == target), key=lambda pair: above[pair[1]])
        at_target |= _side_by_side(word, {pair: widths[pair] for pair in pairs})
    at_source: dict[tuple[int, int], Interval] = {}
    for source, word in enumerate(above):
        pairs = sorted((pair for pair in widths if pair[1] == source), key=lambda pair: below[pair[0]])
        at_source |= _side_by_side(word, {pair: widths[pair] for pair in pairs})
    return [(weights[t][s], at_source[t, s], at_target[t, s]) for t, s in widths]


def _side_by_side(word: Interval, widths: dict[tuple[int, int], float]) -> dict[tuple[int, int], Interval]:
    """Return the intervals of ribbons of these widths around the middle of a word, scaled to fit."""
    total = sum(widths.values())
    scale = min(1.0, (word[1] - word[0]) / total) if total else 1.0
    scaled = [scale * width for width in widths.values()]
    edges = accumulate(scaled, initial=sum(word) / 2 - scale * total / 2)
    return dict(zip(widths, pairwise(edges), strict=True))


def _ribbon(axes: Axes, weight: float, above: Interval, below: Interval) -> None:
    """Draw a ribbon: two Bézier curves that leave and arrive vertically, with straight ends."""
    half = GAP / 2
    points = [(above[0], GAP), (above[0], half), (below[0], half), (below[0], 0)]
    points += [(below[1], 0), (below[1], half), (above[1], half), (above[1], GAP), (above[0], GAP)]
    curve = [Outline.CURVE4] * 3
    path = Outline(points, [Outline.MOVETO, *curve, Outline.LINETO, *curve, Outline.CLOSEPOLY])
    color = AGAINST if weight < 0 else FOR
    axes.add_patch(PathPatch(path, facecolor=color, alpha=0.15 + 0.6 * min(1.0, abs(weight)), linewidth=0))


def _intervals(words: Sequence[str]) -> list[Interval]:
    """Return the interval of each word on a line, from left to right."""
    intervals, start = [], SPACE
    for word in words:
        end = start + max(0.25, LETTER * len(word))
        intervals.append((start, end))
        start = end + SPACE
    return intervals


def _centered(line: Sequence[Interval], width: float, words: Sequence[str]) -> list[Interval]:
    """Move a line to the middle of the figure, and mirror it if its words are read from right to left."""
    shift = (width - SPACE - line[-1][1]) / 2
    if is_right_to_left(words):
        return [(width - end - shift, width - start - shift) for start, end in line]
    return [(start + shift, end + shift) for start, end in line]


def draw_svg(svg: str) -> Figure:
    """Draw an SVG of ours that consists of rectangles, texts, and curves `M.. C..`; style sheets do not count."""
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    figure = new_figure(width / 96, height / 96)  # CSS has 96 pixels an inch
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for shape in root.iter():
        kind, at = shape.tag.rpartition("}")[2], shape.attrib
        stroke = to_rgba(at.get("stroke", "none"), float(at.get("stroke-opacity", 1))) if "stroke" in at else "none"
        line: dict[str, Any] = {"edgecolor": stroke, "linewidth": 0.75 * float(at.get("stroke-width", 1))}
        if kind == "text":
            align: Literal["left", "center"] = "center" if at.get("text-anchor") == "middle" else "left"
            color = at.get("fill", _COLORS["ink"])
            axes.text(float(at["x"]), float(at["y"]), shape.text or "", ha=align, fontsize=8, color=color)
        elif kind == "rect":
            x, y, w, h, radius = (float(at[name]) for name in ("x", "y", "width", "height", "rx"))
            fill = to_rgba(at["fill"], float(at.get("fill-opacity", 1)))
            style = f"round,pad=0,rounding_size={radius}"
            axes.add_patch(FancyBboxPatch((x, y), w, h, boxstyle=style, facecolor=fill, **line))
        elif kind == "path":
            points = np.array(re.findall(r"-?[\d.]+", at["d"]), float).reshape(-1, 2)
            codes = [Outline.MOVETO, *[Outline.CURVE4] * (len(points) - 1)]
            axes.add_patch(PathPatch(Outline(points, codes), facecolor="none", **line))
    return figure
