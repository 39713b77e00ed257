"""Attention in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor

from translucid.decoding.hypothesis import percent
from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore
from translucid.evaluation.confidence.features import UNSURE
from translucid.inspection.words import WordMap

BAR = 20
"""Cells of a full bar."""
SHADES = " ░▒▓█"


def with_unsure(text: str, words: Sequence[tuple[str, float]]) -> Text:
    """Return a translation in bold, those of its words underlined that have a probability under `UNSURE`."""
    shown, at = Text(text, "bold"), 0
    for word, probability in words:
        first = text.find(word, at)
        if word and first >= 0:
            at = first + len(word)
            if probability < UNSURE:
                shown.stylize("underline bright_yellow", first, at)
    return shown


def heatmap(words: WordMap, width: int) -> RenderableType:
    """Shaded cells, target words down and source words across; a list where that is too wide for the terminal."""
    label = max(cell_len(word) for word in words.target)
    columns = [max(cell_len(word), 3) for word in words.source]
    if label + sum(columns) + 2 * len(columns) > width:
        return looked_at(words)
    lines = [Text(" " * label)]
    for word, room in zip(words.source, columns, strict=True):
        lines[0].append("  " + _padded(word, room), Style(bold=True))
    for word, row in zip(words.target, words.weights.tolist(), strict=True):
        line = Text(_padded(word, label, right=True), Style(bold=True))
        for weight, room in zip(row, columns, strict=True):
            # Colour where there is colour, and a shade that also prints without.
            shade = SHADES[min(round(weight * (len(SHADES) - 1) + 0.25), len(SHADES) - 1)]
            level = round(40 + 215 * weight)
            line.append("  ").append(shade * room, Style(color=f"rgb({level // 3},{level // 2},{level})"))
        lines.append(line)
    return Group(*lines)


def looked_at(words: WordMap, most: int = 2) -> RenderableType:
    """For each target word the source words it looked at most, with their shares."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    for _ in range(4):
        table.add_column()
    for word, row in list(zip(words.target, words.weights.tolist(), strict=True))[:-1]:
        best = sorted(range(len(row)), key=lambda i: -row[i])[:most]
        first = best[0]
        others = ", ".join(f"{words.source[i]} {percent(row[i])}" for i in best[1:] if row[i] >= 0.1)
        bar = "▇" * max(1, round(row[first] * BAR))
        looked = Text(f"{words.source[first]} {percent(row[first])}")
        table.add_row(Text(word), "←", looked, Text(bar, "cyan"), Text(others, "dim"))
    return table


def alignment_table(ways: dict[AlignmentOptions, AlignmentScore], own: AlignmentOptions) -> RenderableType:
    """Error rates of every way to read word alignments, that of the run marked."""
    table = Table(box=None, pad_edge=False)
    for column in ("read off", "word is", "from"):
        table.add_column(column)
    for column in ("AER", "precision", "recall", "F1", ""):
        table.add_column(column, justify="right")
    for way, score in ways.items():
        figures = (f"{figure:.3f}" for figure in (score.error_rate, score.precision, score.recall, score.f1))
        layer = "all layers" if way.layer is None else f"layer {way.layer}"
        when = "fed" if way.shift else "predicted"
        off = ("alignment layer", "") if way.learned else (layer, when)
        table.add_row(*off, "both sides" if way.both else "the target", *figures, "← used" if way == own else "")
    return table


def importance_table(source: Sequence[str], target: Sequence[str], importance: Tensor, fit: Sequence[float]) -> Table:
    """For each target word the source words that speak for it most, and against it; and how well LIME fits."""
    table = Table(box=None, pad_edge=False)
    for column in ("word", "", "depends on", "", "local fit" if fit else ""):
        table.add_column(column, justify="right" if column in ("word", "local fit") else "left")
    for i, (word, row) in enumerate(zip(target, importance.tolist(), strict=True)):
        largest = max(max(map(abs, row)), 1e-9)
        best = sorted(range(len(row)), key=lambda s: -row[s])[:3]
        shown = ", ".join(f"{source[s]} {row[s]:+.2f}" for s in best if row[s] > 0.1 * largest)
        bar = "▇" * max(1, round(BAR * max(row[best[0]], 0) / largest))
        table.add_row(
            Text(word, "bold"), "←", Text(shown or "nothing"), Text(bar, "cyan"), f"R² {fit[i]:.2f}" if fit else ""
        )
    return table


def _padded(word: str, room: int, *, right: bool = False) -> str:
    space = " " * (room - cell_len(word))
    return space + word if right else word + space
