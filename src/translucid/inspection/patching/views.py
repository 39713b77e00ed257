"""Views of patching: tables for the terminal, pages and notebooks; and saving."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from translucid.ground.atomic import write_output
from translucid.inspection.html import document
from translucid.inspection.patching.result import PatchedStates, Patching
from translucid.inspection.terminal import brightness_colour

_STYLE = """body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem;
  background: var(--background); color: var(--text); font-family: var(--sans); }
table { border-collapse: collapse; margin-bottom: 1.5rem; }
th, td { padding: 0.2em 0.5em; text-align: center; font-weight: normal; }
th[scope="row"] { text-align: right; }
"""


def summary(patching: Patching) -> str:
    """Return the log-odds of both runs as a sentence."""
    a, b = patching.words
    context = f"after {patching.prefix!r}" if patching.prefix else "at the beginning of the translation"
    clean, other = patching.log_odds
    return f"log-odds of {a!r} against {b!r} {context}: {clean:+.2f} nats with CLEAN, {other:+.2f} with OTHER"


def column_names(part: PatchedStates) -> list[str]:
    """Return the words of the columns: `cat→dog` where the words of CLEAN and OTHER differ."""
    names = []
    for clean, other in zip(part.clean_words, part.words, strict=True):
        names.append(other if clean == other else f"{clean}→{other}")
    return names


def percents(part: PatchedStates) -> list[list[str]]:
    """Return the shares in per cent, as text."""
    rows = []
    for row in part.carried.tolist():
        rows.append([str(round(100 * share)) for share in row])
    return rows


def terminal_view(patching: Patching, width: int) -> RenderableType:
    """Return the shares as tables, layers down and words across; a wide one is continued below."""
    lines: list[RenderableType] = [
        Text.assemble("CLEAN  ", (patching.clean, "bold")),
        Text.assemble("OTHER  ", (patching.other, "bold")),
        Text(summary(patching)),
    ]
    for part in patching.parts:
        lines.append(Text(f"\n{part.kind}: % of the difference that each place carries"))
        lines += _tables(part, width)
    lines += [Text(note, "dim") for note in patching.notes]
    return Group(*lines)


def _tables(part: PatchedStates, width: int) -> Iterator[Table]:
    names, cells = column_names(part), percents(part)
    label = max(map(cell_len, part.layers)) + 2
    start = 0
    while start < len(names):
        end, used = start, label
        while end < len(names) and (end == start or used + _column_width(names[end]) <= width):
            used += _column_width(names[end])
            end += 1
        table = Table(box=None, pad_edge=False, padding=(0, 1))
        table.add_column(justify="right", no_wrap=True)
        for name in names[start:end]:
            table.add_column(Text(name), justify="center", no_wrap=True)
        for layer, shares, texts in zip(part.layers, part.carried.tolist(), cells, strict=True):
            row = [_cell(share, text) for share, text in zip(shares[start:end], texts[start:end], strict=True)]
            table.add_row(layer, *row)
        yield table
        start = end


def _column_width(name: str) -> int:
    return max(cell_len(name), 5) + 2  # a cell, and a space on both sides


def _cell(share: float, text: str) -> Text:
    """Return a number whose background is brighter the more a place carries."""
    weight = min(max(share, 0.0), 1.0)
    style = Style(color="black" if weight > 0.5 else "white", bgcolor=brightness_colour(weight))
    return Text(f"{text:>4} ", style)


def html_tables(patching: Patching) -> str:
    """Return the shares as tables in HTML: blue for what is like CLEAN, orange for the opposite."""
    html = f"<p>CLEAN: <b>{escape(patching.clean)}</b><br>OTHER: <b>{escape(patching.other)}</b></p>"
    html += f"<p>{escape(summary(patching))}</p>"
    for part in patching.parts:
        title = f"{part.kind}: % of the difference that each place carries"
        html += f'<h2 style="font-size: 1em; margin-bottom: 0.3em">{title}</h2>'
        # A wide table scrolls; it takes the focus, so that the arrow keys move it.
        html += f'<div tabindex="0" role="region" aria-label="{part.kind}" style="overflow-x: auto">'
        html += "<table><tr><td></td>"
        html += "".join(f'<th scope="col">{escape(name)}</th>' for name in column_names(part)) + "</tr>"
        for layer, shares, texts in zip(part.layers, part.carried.tolist(), percents(part), strict=True):
            html += f'<tr><th scope="row">{layer}</th>'
            for share, text in zip(shares, texts, strict=True):
                colour = "37, 99, 235" if share > 0 else "220, 80, 20"
                html += f'<td style="background: rgba({colour}, {min(abs(share), 1) * 0.6:.2f})">{text}</td>'
            html += "</tr>"
        html += "</table></div>"
    return html + "".join(f"<p>{escape(note)}</p>" for note in patching.notes)


def save(patching: Patching, file: Path) -> None:
    """Save as a figure, a page or JSON, by the file's ending: a picture, .html or .json.

    Raises:
        UserError: the file can't be written.
    """
    kind = file.suffix.lower()
    if kind == ".json":
        write_output(file, json.dumps(patching.to_json(), ensure_ascii=False).encode())
    elif kind == ".html":
        body = f"<main><h1>Activation patching</h1>{html_tables(patching)}</main>\n"
        write_output(file, document(f"{patching.clean} → {patching.other}", _STYLE, body).encode())
    else:
        from translucid.inspection.plots import draw_patching, save_figure

        save_figure(draw_patching(patching), file)
