"""What is to be seen of a translation as a web page of one file, and in notebooks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import count
from typing import Any

from translucid.decoding.hypothesis import percent
from translucid.inspection.inspected import Inspected
from translucid.inspection.records import SIDES, viewer_record
from translucid.inspection.words import WordMap

MODULES = (
    *("elements.js", "roving.js", "bands.js", "difference.js", "maps.js", "ribbons.js", "table.js", "heads.js"),
    *("beam.js", "film.js", "why.js", "ways.js", "saving.js", "code.js", "space.js"),
)
"""The modules in `web/`, each after those that it imports."""
_places = count(1)


def page(pieces: Sequence[Inspected], source: str, translation: str, run: str = "demo") -> str:
    """Return a page that needs no network: ribbons between words, all layers and heads, the steps of writing.

    Args:
        pieces: what was seen of each piece of the text.
        source: the text.
        translation: of it.
        run: the name of the run folder, for the lines of code that the page shows.
    """
    frame = "body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; background: var(--paper); }\n"
    body = f"""<main id="pieces"></main>
<noscript><p>{escape(source)}</p><p>{escape(translation)}</p></noscript>
<script>
{_call("document.getElementById('pieces')", pieces, run)}
</script>
"""
    return document(source, _text("seeing.css") + frame, body)


def _call(place: str, pieces: Sequence[Inspected], run: str) -> str:
    """Return a script that shows pieces at a place, an expression of JavaScript."""
    sentences = []
    for one in pieces:
        record = viewer_record(one, sides=SIDES)
        texts = {side: " ".join(record[side][start:-1]) for side, start in (("source", one.opening[0]), ("target", 0))}
        sentences.append({"source_text": texts["source"], "text": texts["target"], "record": record})
    seen: dict[str, Any] = {"run": run, "languages": None, "sentences": sentences}
    # "<" never stands in the data as it is, so that no text can end the script.
    data = json.dumps(seen, ensure_ascii=False).replace("<", "\\u003c")
    return f"(() => {{\n{bundle()}\nshowSpace({place}, {data});\n}})();"


@cache
def bundle() -> str:
    """Return all modules as one script without imports."""
    text = "".join(_text(name) for name in MODULES)
    return re.sub(r"^import .*\n", "", text, flags=re.MULTILINE).replace("\nexport ", "\n")


@cache
def _text(name: str) -> str:
    return (files("translucid.inspection") / "web" / name).read_text(encoding="utf-8")


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
