"""Attention, alignments and explanations in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor

from translucid.decoding.hypothesis import percent
from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore
from translucid.evaluation.confidence import UNSURE
from translucid.ground.console import table_of
from translucid.inspection.words import WordMap, with_context_marked

BAR = 20
"""The length of a full bar in cells of the terminal."""
SHADES = " ░▒▓█"
"""Characters for weights from 0 to 1."""


def with_unsure(text: str, words: Sequence[tuple[str, float]]) -> Text:
    """Return a translation in bold, in which words with a probability under `UNSURE` are underlined."""
    styled, position = Text(text, "bold"), 0
    for word, probability in words:
        start = text.find(word, position)
        # The text may lack a word that a later step of the text pipeline has changed.
        if word and start >= 0:
            position = start + len(word)
            if probability < UNSURE:
                styled.stylize("underline bright_yellow", start, position)
    return styled


def heatmap(words: WordMap, width: int) -> RenderableType:
    """Return shaded cells, target words down and source words across; a list if they are wider than the terminal."""
    label = max(map(cell_len, words.target))
    column_widths = [max(cell_len(word), 3) for word in words.source]
    if label + sum(column_widths) + 2 * len(column_widths) > width:
        return attention_table(words)
    header = Text(" " * label)
    for index, (word, column_width) in enumerate(zip(words.source, column_widths, strict=True)):
        style = Style(italic=True, dim=True) if index < words.context else Style(bold=True)
        header.append("  " + word + _padding(word, column_width), style)
    lines = [header]
    for word, row in zip(words.target, words.weights.tolist(), strict=True):
        line = Text(_padding(word, label) + word, Style(bold=True))
        for weight, column_width in zip(row, column_widths, strict=True):
            # A color, and also a shade, which remains when the output is copied or has no colors.
            shade = SHADES[min(round(weight * (len(SHADES) - 1) + 0.25), len(SHADES) - 1)]
            line.append("  ").append(shade * column_width, Style(color=brightness_color(weight)))
        lines.append(line)
    return Group(*lines)


def brightness_color(weight: float) -> str:
    """Return a blue for a weight from 0 (dark) to 1 (bright), as Rich names colors."""
    level = round(40 + 215 * weight)
    return f"rgb({level // 3},{level // 2},{level})"


def bar(share: float) -> str:
    """Return a bar for a share from 0 to 1, at least one cell long."""
    return "▇" * max(1, round(share * BAR))


def attention_table(words: WordMap) -> RenderableType:
    """Return a table: for each target word the two source words with the greatest weights, and their shares."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    for _ in range(4):
        table.add_column()
    source = with_context_marked(words.source, words.context)
    for word, row in zip(words.target[:-1], words.weights[:-1].tolist(), strict=True):
        largest, *further = _largest(row, 2)
        best = Text(f"{source[largest]} {percent(row[largest])}")
        weaker = strong_shares([(source[i], row[i]) for i in further])
        table.add_row(Text(word), "←", best, Text(bar(row[largest]), "cyan"), Text(weaker, "dim"))
    return table


def source_table(target: Sequence[str], shares: Sequence[float], prefix: WordMap) -> RenderableType:
    """Return a table: for each target word the share of the source, and the largest shares of the target prefix.

    Args:
        target: the words.
        shares: their source contributions; NaN where they are undefined.
        prefix: the contributions of the start token and the words before.
    """
    table = Table(box=None, pad_edge=False)
    for column in ("word", "from the source", "", "from the translation so far"):
        table.add_column(column)
    for word, share, row in zip(target, shares, prefix.weights.tolist(), strict=True):
        if math.isnan(share):
            table.add_row(Text(word, "bold"), "undefined", "", "")
            continue
        earlier = strong_shares([(prefix.source[i], row[i]) for i in _largest(row, 2)])
        table.add_row(Text(word, "bold"), percent(share), Text(bar(share), "cyan"), Text(earlier, "dim"))
    return table


def retrieval_table(words: Iterable[tuple[str, int, float, bool, str, str]]) -> RenderableType:
    """Return a table: for each word the earlier sentence that decided it, as in `Translation.retrieved`."""
    table = Table(box=None, pad_edge=False)
    for column in ("word", "share", "", "", "earlier source", "its translation"):
        table.add_column(column)
    for word, _, share, changed, source, target in words:
        change = "changed" if changed else "supported"
        table.add_row(Text(word, "bold"), percent(share), Text(bar(share), "cyan"), change, Text(source), Text(target))
    return table


def alignment_table(scores: dict[AlignmentOptions, AlignmentScore], current: AlignmentOptions) -> RenderableType:
    """Return a table of the error rates of all ways to derive word alignments; that of the run is marked."""
    table = table_of("read off", "word is", "from", figures=("AER", "precision", "recall", "F1", ""))
    for options, score in scores.items():
        origin, time = "alignment layer", ""
        if not options.learned:
            origin = "all layers" if options.layer is None else f"layer {options.layer}"
            if options.head is not None:
                origin += f", head {options.head}"
            if options.method != "weights":
                origin = f"{options.method}, {origin}"
            time = "fed" if options.shift else "predicted"
        sides = "both sides" if options.both else "the target"
        figures = map("{:.3f}".format, (score.error_rate, score.precision, score.recall, score.f1))
        table.add_row(origin, time, sides, *figures, "← used" if options == current else "")
    return table


def importance_table(source: Sequence[str], target: Sequence[str], importance: Tensor, fit: Sequence[float]) -> Table:
    """Return a table: for each target word the most important source words, and how well LIME fits, if it was used."""
    table = Table(box=None, pad_edge=False)
    table.add_column("word", justify="right")
    for column in ("", "depends on", ""):
        table.add_column(column)
    table.add_column("local fit" if fit else "", justify="right" if fit else "left")
    for i, (word, row) in enumerate(zip(target, importance.tolist(), strict=True)):
        largest = max(max(map(abs, row)), 1e-9)
        best = _largest(row, 3)
        listing = ", ".join(f"{source[s]} {row[s]:+.2f}" for s in best if row[s] > 0.1 * largest)
        bar_text = bar(max(row[best[0]], 0) / largest)
        score = f"R² {fit[i]:.2f}" if fit else ""
        table.add_row(Text(word, "bold"), "←", Text(listing or "nothing"), Text(bar_text, "cyan"), score)
    return table


def _largest(row: Sequence[float], count: int) -> list[int]:
    """Return the positions of the largest values, the largest first."""
    return sorted(range(len(row)), key=lambda i: -row[i])[:count]


def _padding(word: str, width: int) -> str:
    """Return the spaces that pad a word to a width; characters of East Asian scripts are two cells wide."""
    return " " * (width - cell_len(word))


def strong_shares(shares: Sequence[tuple[str, float]]) -> str:
    """Return the places or words with a share of at least 10 % as text, with their shares."""
    return ", ".join(f"{name} {percent(share)}" for name, share in shares if share >= 0.1)
