"""Attention as a web page of one file, and as a table for notebooks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from translucid.decoding.hypothesis import percent
from translucid.inspection.inspected import Inspected
from translucid.inspection.words import WordMap


def viewer_record(inspected: Inspected) -> dict[str, Any]:
    """Return what `web/attention.js` shows: words, probabilities, and every map between words."""
    maps = [("all layers and heads", inspected.cross())]
    for layer in inspected.layers if len(inspected.layers) > 1 else []:
        maps.append((f"layer {layer}, all heads", inspected.cross(layer)))
    for layer in inspected.layers:
        heads = len(inspected.maps[f"decoder.{layer}.cross"])
        maps += [(f"layer {layer}, head {h}", inspected.cross(layer, h)) for h in range(heads) if heads > 1]
    if len(inspected.maps) > 1:
        maps.append(("flow through all layers (rollout)", inspected.rollout()))
    merged = [(name, inspected.words(weights)) for name, weights in maps]
    return {
        "source": merged[0][1].source,
        "target": merged[0][1].target,
        "maps": [{"name": name, "weights": _rounded(words)} for name, words in merged],
        "probabilities": [round(math.exp(value), 4) for value in inspected.word_log_probs()],
    }


def page(pieces: Sequence[Inspected], source: str, translation: str) -> str:
    """Return a page that needs no network: words that light up each other, layers and heads to choose, the table."""
    web = files("translucid.inspection") / "web"
    script = (web / "attention.js").read_text(encoding="utf-8").replace("export function", "function")
    style = (web / "attention.css").read_text(encoding="utf-8")
    # "<" never stands in the data as it is, so that no text can end the script.
    records = json.dumps([viewer_record(one) for one in pieces], ensure_ascii=False).replace("<", "\\u003c")
    frame = "body { margin: 2rem auto; padding: 0 1rem; max-width: 60rem; background: var(--paper); }\n"
    body = f"""<main id="pieces"></main>
<noscript><p>{escape(source)}</p><p>{escape(translation)}</p></noscript>
<script type="module">
{script}
for (const record of {records}) {{
  const place = document.createElement("section");
  document.getElementById("pieces").append(place);
  showAttention(place, record);
}}
</script>
"""
    return document(source, frame + style, body)


def document(title: str, style: str, body: str) -> str:
    """Return a page of one file, with the colours and sizes of all our pages."""
    tokens = (files("translucid.inspection") / "web" / "tokens.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title[:80])}</title>
<style>
{tokens}{style}</style>
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


def _rounded(words: WordMap) -> list[list[float]]:
    return [[round(weight, 4) for weight in row] for row in words.weights.tolist()]
