"""The attention of a captioner as HTML without scripts and without external resources."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from translucid.inspection.html import document
from translucid.inspection.saliency_overlay import SaliencyOverlay, overlay

if TYPE_CHECKING:
    from translucid.inspection.attention_result import AttentionResult

THUMBNAIL = 128
"""Pixels of the longer side of a small panel."""
FINENESS = 4
"""Pixels of an overlay for each side of a cell; the browser interpolates between them."""


def panels(looked: AttentionResult) -> str:
    """Return a row of small panels for notebooks: the image, then its saliency overlay for each word."""
    return row_of_panels(SaliencyOverlay.of(looked))


def row_of_panels(lit: SaliencyOverlay) -> str:
    """Return a row of small panels: the image, then its saliency overlay for each word."""
    figures = [_figure("", "", lit.scaled(THUMBNAIL), "the image")]
    for i, (word, note) in enumerate(zip(lit.words, lit.notes, strict=True)):
        figures.append(_figure(word, note, lit.panel(i, THUMBNAIL), f"{word} {lit.verb}: {lit.said(i)}"))
    return f"<div style='display:flex;flex-wrap:wrap;gap:.5em'>{''.join(figures)}</div>"


def _figure(word: str, note: str, pixels: NDArray[np.uint8], description: str) -> str:
    height, width = pixels.shape[:2]
    return (
        "<figure style='margin:0;text-align:center'>"
        f"<img src='{data_uri(pixels, jpeg=True)}' alt='{escape(description)}' title='{escape(description)}' "
        f"width='{width}' height='{height}'>"
        f"<figcaption>{escape(word)} <small style='opacity:.7'>{escape(note)}</small></figcaption></figure>"
    )


def sections_of(looked: AttentionResult) -> dict[str, SaliencyOverlay]:
    """Return the saliency averaged over layers and heads, then that of each layer and head, by name."""
    return {name: SaliencyOverlay.of(looked, *choice) for name, choice in looked.ways().items()}


def page(name: str, sections: Mapping[str, SaliencyOverlay]) -> str:
    """Return a page in one file: the image and its words, each of which shows its saliency over the image.

    A word shows it while the pointer is on it, and keeps showing it when it is selected by a tap, a click or the arrow
    keys.

    Args:
        name: the name of the image.
        sections: the overlays of the same image by name; the first section is open, the others are folded.
    """
    first = next(iter(sections.values()))
    style = (files("translucid.inspection") / "web" / "looked.css").read_text(encoding="utf-8")
    height, width = first.pixels.shape[:2]
    folded = ""
    for number, (title, lit) in enumerate(sections.items()):
        if number > 0:
            folded += f"<details><summary>{escape(title)}</summary>{_section(name, lit, number)}</details>"
    caption = " ".join(first.words)
    # The image stands in the style sheet once, and serves as the background of all sections.
    shape = f":root {{ --ratio: {width} / {height}; --picture: url({data_uri(first.pixels)}); }}\n"
    body = f"""<main>
<h1>{escape(caption)}</h1>
{_section(name, first, 0)}
<details><summary>one panel a word</summary>{row_of_panels(first)}</details>
{folded}
</main>
"""
    return document(caption, shape + style, body)


def _section(name: str, lit: SaliencyOverlay, number: int) -> str:
    """Return the image and its words: a group of radio buttons, the first of which shows the image alone."""
    words = ""
    for i, (word, note) in enumerate(zip(lit.words, lit.notes, strict=True)):
        words += (
            f"<label><input type='radio' name='word-{number}'><span class='word'>{escape(word)}</span>"
            f"<span class='light' style='background-image:url({_overlay_uri(lit, i)})'></span>"
            f"<span class='said'>{escape(note)}; {escape(lit.verb)}: {escape(lit.said(i))}</span></label>"
        )
    return (
        f"<section class='looked'><div class='picture' role='img' aria-label='{escape(name)}'></div>"
        "<fieldset><legend>Point at a word, tap it, or use the arrow keys.</legend>"
        f"<label><input type='radio' name='word-{number}' checked><span class='word'>the image</span></label>"
        f"{words}</fieldset></section>"
    )


def _overlay_uri(lit: SaliencyOverlay, word: int) -> str:
    """Return the overlay of a word as a PNG with opacities."""
    rows, columns = lit.weights[word].shape
    height = min(FINENESS * rows, lit.pixels.shape[0])
    width = min(FINENESS * columns, lit.pixels.shape[1])
    colour, alpha = overlay(lit.brightness(word, height, width))
    return data_uri(np.concatenate([colour, 255 * alpha], -1).round().astype(np.uint8))


def data_uri(pixels: NDArray[np.uint8], *, jpeg: bool = False) -> str:
    """Return a data URI of pixels [height, width, 3], or 4 with opacities, which JPEG does not have."""
    from PIL import Image

    buffer = io.BytesIO()
    if jpeg:
        Image.fromarray(pixels).save(buffer, "jpeg", quality=85)
    else:
        Image.fromarray(pixels).save(buffer, "png", optimize=True)
    kind = "jpeg" if jpeg else "png"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
