"""What is to be seen of a translation as a web page of one file, and in notebooks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any
from uuid import uuid4

from translucid.decoding.hypothesis import percent
from translucid.inspection.bundle import WEB, bundle
from translucid.inspection.inspected import Inspected
from translucid.inspection.records import SIDES, viewer_record
from translucid.inspection.words import WordMap


def page(
    pieces: Sequence[Inspected],
    source: str,
    translation: str,
    trees: Sequence[dict[str, Any]] = (),
    explanations: Sequence[dict[str, dict[str, Any]]] = (),
) -> str:
    """Return a page that needs no network: ribbons between words, all layers and heads, the steps of writing, and why.

    Args:
        pieces: what was seen of each piece of the text.
        source: the text.
        translation: of it.
        trees: of the beam search of each piece, see `beam_record`, if known.
        explanations: of each piece by method, see `why_record`, if known.
    """
    frame = "body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; background: var(--paper); }\n"
    body = f"""<main id="pieces"></main>
<noscript><p>{escape(source)}</p><p>{escape(translation)}</p></noscript>
<script>
{_script('document.getElementById("pieces")', pieces, trees, explanations)}</script>
"""
    return document(source, _text("seeing.css") + frame, body)


def notebook_view(pieces: Sequence[Inspected]) -> str:
    """Return the same for a notebook, with styles that touch nothing else; where no script runs it is a table.

    Args:
        pieces: of one text, each with attention.
    """
    name = f"translucid-{uuid4().hex}"
    tables = "".join(notebook_table(one.words(), one.word_log_probs()) for one in pieces)
    style = (_text("tokens.css") + _text("seeing.css")).replace(":root", ":host")
    style += ":host { display: block; background: var(--paper); padding: 0 1em; }"
    place = f'modules["elements.js"].shadow(document.getElementById("{name}"), {_quoted(style)})'
    return f'<div id="{name}">{tables}</div>\n<script>\n{_script(place, pieces)}</script>'


def _script(
    place: str,
    pieces: Sequence[Inspected],
    trees: Sequence[dict[str, Any]] = (),
    explanations: Sequence[dict[str, dict[str, Any]]] = (),
) -> str:
    """Return a script that shows pieces at a place, an expression of JavaScript."""
    seen = _seen(pieces, trees, explanations)
    return bundle("space.js", [WEB], f'modules["space.js"].showSpace({place}, {seen});\n')


def _seen(
    pieces: Sequence[Inspected], trees: Sequence[dict[str, Any]], explanations: Sequence[dict[str, dict[str, Any]]]
) -> str:
    """Return what `web/space.js` shows."""
    sentences: list[dict[str, Any]] = []
    for one in pieces:
        record = viewer_record(one, sides=SIDES)
        texts = {side: " ".join(record[side][start:-1]) for side, start in (("source", one.opening[0]), ("target", 0))}
        sentences.append({"source_text": texts["source"], "text": texts["target"], "record": record})
    for sentence, tree in zip(sentences, trees, strict=False):
        sentence["tree"] = tree
    for sentence, found in zip(sentences, explanations, strict=False):
        sentence["explanations"] = found
    return _quoted({"run": pieces[0].run or "RUN", "languages": None, "sentences": sentences})


def _quoted(value: Any) -> str:
    """Return a value as JavaScript has it, in which no "<" could end the script."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


@cache
def _text(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def document(title: str, style: str, body: str) -> str:
    """Return a page of one file, with the colours and sizes of all our pages."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title[:80])}</title>
<style>
{_text("tokens.css")}{style}</style>
</head>
<body>
{body}</body>
</html>
"""


def notebook_table(words: WordMap, log_probs: Sequence[float] = ()) -> str:
    """Return a table of weights with its styles in it, as notebooks need: target words down, source words across.

    `log_probs`: of the target words, if they are to stand beside them as probabilities.
    """
    head = "".join(f"<th style='text-align:center;padding:0 .4em'>{escape(word)}</th>" for word in words.source)
    rows = []
    for i, (word, weights) in enumerate(zip(words.target, words.weights.tolist(), strict=True)):
        cells = "".join(
            f"<td style='background:rgba(37,99,235,{weight:.2f})' title='{percent(weight)}'>&nbsp;</td>"
            for weight in weights
        )
        if log_probs:
            cells += f"<td style='padding:0 .4em'>{percent(math.exp(log_probs[i]))}</td>"
        rows.append(f"<tr><th style='text-align:right;padding:0 .4em'>{escape(word)}</th>{cells}</tr>")
    return f"<table style='border-collapse:collapse'><tr><td></td>{head}</tr>{''.join(rows)}</table>"
