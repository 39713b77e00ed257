"""Where a captioner looked, as HTML that needs no script and nothing from elsewhere."""

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
"""Pixels of a small panel's longer side."""
FINENESS = 4
"""Pixels of an overlay for a cell's side; the browser smooths between them."""


def panels(looked: AttentionResult) -> str:
    """Return a row of small panels, one a word, as notebooks show it: the image as it is, then lit for each word."""
    return row_of_panels(SaliencyOverlay.of(looked))


def row_of_panels(lit: SaliencyOverlay) -> str:
    """Return the same of any image that lights up."""
    shown = [("", "", lit.scaled(THUMBNAIL), "the image")]
    for i, (word, note) in enumerate(zip(lit.words, lit.notes, strict=True)):
        shown.append((word, note, lit.panel(i, THUMBNAIL), f"{word} {lit.verb}: {lit.said(i)}"))
    figures = "".join(
        "<figure style='margin:0;text-align:center'>"
        f"<img src='{data_uri(pixels, jpeg=True)}' alt='{escape(told)}' title='{escape(told)}' "
        f"width='{pixels.shape[1]}' height='{pixels.shape[0]}'>"
        f"<figcaption>{escape(word)} <small style='opacity:.7'>{escape(note)}</small></figcaption></figure>"
        for word, note, pixels, told in shown
    )
    return f"<div style='display:flex;flex-wrap:wrap;gap:.5em'>{figures}</div>"


def sections_of(looked: AttentionResult) -> dict[str, SaliencyOverlay]:
    """Return the attention averaged over layers and heads, then that of each layer and head, by name."""
    return {name: SaliencyOverlay.of(looked, *way) for name, way in looked.ways().items()}


def page(name: str, sections: Mapping[str, SaliencyOverlay]) -> str:
    """Return a page of one file: the image, and the words, each of which lights it up.

    A word does so when it is pointed at, and stays lit when it is chosen: by a tap, a click, or the arrow keys.

    Args:
        name: of the image.
        sections: by name, the first open, the others folded; all of the same image.
    """
    first = next(iter(sections.values()))
    style = (files("translucid.inspection") / "web" / "looked.css").read_text(encoding="utf-8")
    height, width = first.pixels.shape[:2]
    folded = [
        f"<details><summary>{escape(title)}</summary>{_section(name, lit, number)}</details>"
        for number, (title, lit) in enumerate(sections.items())
        if number
    ]
    caption = " ".join(first.words)
    shape = f":root {{ --ratio: {width} / {height}; --picture: url({data_uri(first.pixels)}); }}\n"
    body = f"""<main>
<h1>{escape(caption)}</h1>
{_section(name, first, 0)}
<details><summary>one panel a word</summary>{row_of_panels(first)}</details>
{"".join(folded)}
</main>
"""
    return document(caption, shape + style, body)


def _section(name: str, lit: SaliencyOverlay, number: int) -> str:
    """Return the image and its words: a group of radio buttons, the first of which lights up nothing."""
    words = [
        f"<label><input type='radio' name='word-{number}'><span class='word'>{escape(word)}</span>"
        f"<span class='light' style='background-image:url({_overlay_uri(lit, i)})'></span>"
        f"<span class='said'>{escape(note)}; {escape(lit.verb)}: {escape(lit.said(i))}</span></label>"
        for i, (word, note) in enumerate(zip(lit.words, lit.notes, strict=True))
    ]
    return (
        f"<section class='looked'><div class='picture' role='img' aria-label='{escape(name)}'></div>"
        "<fieldset><legend>Point at a word, tap it, or use the arrow keys.</legend>"
        f"<label><input type='radio' name='word-{number}' checked><span class='word'>the image</span></label>"
        f"{''.join(words)}</fieldset></section>"
    )


def _overlay_uri(lit: SaliencyOverlay, word: int) -> str:
    """Return what is laid over the image for a word, as a PNG with opacities."""
    height, width = (
        min(FINENESS * cells, side) for cells, side in zip(lit.weights[word].shape, lit.pixels.shape[:2], strict=True)
    )
    colour, alpha = overlay(lit.brightness(word, height, width))
    return data_uri(np.concatenate([colour, 255 * alpha], -1).round().astype(np.uint8))


def data_uri(pixels: NDArray[np.uint8], *, jpeg: bool = False) -> str:
    """Return pixels [height, width, 3], or 4 with opacities, as an address that holds the image itself."""
    from PIL import Image

    buffer = io.BytesIO()
    kind = "jpeg" if jpeg else "png"
    Image.fromarray(pixels).save(buffer, kind, **({"quality": 85} if jpeg else {"optimize": True}))
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
