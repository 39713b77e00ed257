"""Lenses as tables for the terminal, notebooks and pages, and saving them as figures, pages or data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from rich.style import Style
from rich.table import Table
from rich.text import Text

from translucid.decoding.hypothesis import percent
from translucid.evaluation.confidence.features import UNSURE
from translucid.ground.atomic import write_output
from translucid.ground.console import table_of
from translucid.inspection.html import document
from translucid.inspection.lens import DecoderLens, Lens
from translucid.inspection.saving import write_arrays

NOTE = "In each cell: what the layer predicts, and its probability. ✓: from this layer on, it is the word written."
_STYLE = """body { font-family: system-ui, sans-serif; }
main { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.3em 0.6em; text-align: left; }
"""


def terminal_table(lens: Lens) -> Table:
    """Return a table: words down, layers across; a check mark where a word is decided."""
    table = table_of("", *lens.layers)
    for word in lens.words:
        cells = []
        for layer, (top, probability) in enumerate(zip(word.top, word.top_probabilities, strict=True)):
            mark, style = "", Style(dim=probability < UNSURE)
            if layer == word.decided:
                mark, style = " ✓", Style(bold=True, color="cyan")
            cells.append(Text(f"{top} {percent(probability)}{mark}", style))
        table.add_row(Text(word.word, "bold"), *cells)
    return table


def terminal_translations(lens: DecoderLens) -> Table:
    """Return a table: the translation from each layer of the encoder."""
    table = table_of("layer", "translation", overflow="fold")
    for layer, translation in zip(lens.layers, lens.translations, strict=True):
        table.add_row(layer, Text(translation))
    return table


def html_table(lens: Lens) -> str:
    """Return a table with inline styles: words down, layers across, a frame where a word is decided."""
    header = "".join(f"<th>{escape(name)}</th>" for name in lens.layers)
    html = f"<table style='border-collapse:collapse'><tr><th></th>{header}</tr>"
    for word in lens.words:
        html += f"<tr><th style='text-align:right;padding:0 .4em'>{escape(word.word)}</th>"
        for layer, (top, probability) in enumerate(zip(word.top, word.top_probabilities, strict=True)):
            style = f"padding:.1em .4em;background:rgba(37,99,235,{0.6 * probability:.2f})"
            mark = ""
            if layer == word.decided:
                style += ";outline:2px solid currentColor;outline-offset:-2px"
                mark = " ✓"
            tooltip = f"{word.word} {percent(word.probabilities[layer])}, rank {word.ranks[layer]}"
            html += f"<td style='{style}' title='{escape(tooltip)}'>{escape(top)} {percent(probability)}{mark}</td>"
        html += "</tr>"
    return html + "</table>"


def html_translations(lens: DecoderLens) -> str:
    """Return a table with inline styles: the translation from each layer of the encoder."""
    html = "<table style='border-collapse:collapse'><tr><th>layer</th><th>translation</th></tr>"
    for layer, translation in zip(lens.layers, lens.translations, strict=True):
        html += (
            f"<tr><th style='text-align:right;padding:0 .4em'>{escape(layer)}</th><td>{escape(translation)}</td></tr>"
        )
    return html + "</table>"


def save_lenses(lenses: Sequence[Lens], file: Path, source: str) -> None:
    """Save the lens of each piece of a text.

    Args:
        lenses: at least one.
        file: `.html`, `.json` and `.npz` hold all pieces; a figure holds one, the first of a longer text, whose other
            pieces are saved beside it as `name-2.png` and so on. In `.npz`, piece i, counted from 0, has `i/layers`
            [L + 1], `i/target` [T] and `i/top` [L + 1, T, k], texts; `i/log_probs` [L + 1, T] and `i/top_log_probs`
            [L + 1, T, k], in nats, float32; and `i/ranks` [L + 1, T].
        source: the text, the title of a page.

    Raises:
        UserError: the file can't be written.
    """
    kind = file.suffix.lower()
    if kind == ".html":
        tables = "".join(f"<p>{html_table(lens)}</p>" for lens in lenses)
        write_output(file, document(source, _STYLE, f"<main>{tables}<p>{NOTE}</p></main>").encode())
    elif kind == ".json":
        records = [lens.to_json() for lens in lenses]
        write_output(file, json.dumps(records, ensure_ascii=False).encode())
    elif kind == ".npz":
        write_arrays(file, map(_arrays, lenses))
    else:
        from translucid.inspection.plots import draw_lens, save_figure

        for number, lens in enumerate(lenses, 1):
            path = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
            save_figure(draw_lens(lens), path)


def save_decoder_lens(lens: DecoderLens, file: Path) -> None:
    """Save the translations from each layer of the encoder as `.html` or `.json`.

    Raises:
        UserError: the file can't be written.
    """
    text = json.dumps(lens.to_json(), ensure_ascii=False)
    if file.suffix.lower() == ".html":
        text = document(lens.source, _STYLE, f"<main>{html_translations(lens)}</main>")
    write_output(file, text.encode())


def _arrays(lens: Lens) -> dict[str, np.ndarray]:
    return {
        "layers": np.array(lens.layers),
        "target": np.array(lens.target),
        "top": np.array(lens.top),
        "log_probs": lens.log_probs.float().numpy(),
        "top_log_probs": lens.top_log_probs.float().numpy(),
        "ranks": lens.ranks.numpy(),
    }
