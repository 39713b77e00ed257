"""Web pages in one file, tables and masks for notebooks, and the tree of a beam search as plain values for a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import length_penalty
from translucid.decoding.hypothesis import percent
from translucid.inspection.rendering.bundling import WEB, bundle
from translucid.inspection.words import WordMap

if TYPE_CHECKING:
    from translucid.decoding.trace import BeamTrace


def quoted(value: Any) -> str:
    """Return a value as JavaScript; `</script>` in a text would end the script, so "<" is escaped."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


@cache
def web_file(name: str) -> str:
    """Return the text of a file of our pages."""
    return (WEB / name).read_text(encoding="utf-8")


def document(title: str, style: str, body: str, language: str = "en") -> str:
    """Return a page in one file, with the colors and sizes of all our pages."""
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title[:80])}</title>
<style>
{web_file("tokens.css")}{style}</style>
</head>
<body>
{body}</body>
</html>
"""


def scripted_page(title: str, style: str, head: str, record: Any, module: Path, function: str) -> str:
    """Return a page in one file that shows a record by a JavaScript module, and needs no network.

    Args:
        title: the title of the page.
        style: its style sheet, after the colors and sizes of all our pages.
        head: HTML above the view.
        record: plain values.
        module: the file of the module, which may import those of its folder and of `WEB`.
        function: the name of a function of the module, which is called with the element of the view and the record.
    """
    record_text = 'document.getElementById("record").textContent'
    call = f'modules["{module.name}"].{function}(document.getElementById("view"), JSON.parse({record_text}));\n'
    body = f"""<main class="inspector">
{head}<div id="view"></div>
</main>
<script type="application/json" id="record">{quoted(record)}</script>
<script>
{bundle(module.name, [WEB, module.parent], call)}</script>
"""
    return document(title, style, body)


def notebook_table(words: WordMap, log_probs: Sequence[float] = ()) -> str:
    """Return a table of weights with inline styles, for notebooks: target words down, source words across.

    `log_probs` of the target words, if given, appear beside them as probabilities.
    """
    html = "<table style='border-collapse:collapse'><tr><td></td>"
    for word in words.source:
        html += f"<th style='text-align:center;padding:0 .4em'>{escape(word)}</th>"
    html += "</tr>"
    for i, (word, weights) in enumerate(zip(words.target, words.weights.tolist(), strict=True)):
        html += f"<tr><th style='text-align:right;padding:0 .4em'>{escape(word)}</th>"
        for weight in weights:
            html += f"<td style='background:rgba(37,99,235,{weight:.2f})' title='{percent(weight)}'>&nbsp;</td>"
        if log_probs:
            html += f"<td style='padding:0 .4em'>{percent(math.exp(log_probs[i]))}</td>"
        html += "</tr>"
    return html + "</table>"


def beam_record(trace: BeamTrace, beam: int, tokenizer: Tokenizer, alpha: float) -> dict[str, Any]:
    """Return the tree of a beam search: its nodes, the root first, and each finished text once, with its best score.

    Args:
        trace: the search of one sentence.
        beam: the width of the beam.
        tokenizer: the tokenizer of the model; an output begins with its `target_opening`.
        alpha: the exponent of the length penalty, by which a log-probability becomes a score.
    """
    opening = len(tokenizer.target_opening)
    nodes = []
    finished: dict[str, dict[str, Any]] = {}  # by text
    for i, node in enumerate(trace.nodes):
        record = {"parent": node.parent, "token": node.token, "name": trace.name(node.token), "fate": node.fate}
        nodes.append(record | {"log_prob": round(node.log_prob, 5)})
        if node.fate != "ended":
            continue
        tokens = trace.tokens(i)
        score = node.log_prob / length_penalty(float(len(tokens) - opening), alpha)
        text = tokenizer.decode(tokens[opening:-1])
        previous = finished.get(text)
        # The same text may be reached by several segmentations into pieces: the chosen one, or the best, stays.
        if previous is None or i == trace.best or (previous["node"] != trace.best and score > previous["score"]):
            log_prob = round(node.log_prob, 5)
            finished[text] = {"node": i, "text": text, "log_prob": log_prob, "score": round(score, 5)}
    rows = sorted(finished.values(), key=lambda row: -row["score"])
    return {"nodes": nodes, "best": trace.best, "beam": beam, "opening": opening, "finished": rows}


@dataclass(frozen=True)
class ShownMask:
    """An attention mask with the tokens of its queries and keys."""

    mask: Tensor
    """[.., rows, columns] boolean, True = may attend; only the first entry of leading dimensions is shown. A single row
    applies to all queries."""
    rows: Sequence[str]
    """The tokens of the queries."""
    columns: Sequence[str]
    """The tokens of the keys."""

    def __post_init__(self) -> None:
        """Check the numbers of tokens.

        Raises:
            ValueError: they don't match the shape of the mask.
        """
        if self.mask.shape[-1] != len(self.columns) or self.mask.shape[-2] not in (1, len(self.rows)):
            raise ValueError(f"a mask {tuple(self.mask.shape)} for {len(self.rows)} rows, {len(self.columns)} columns")

    def _repr_html_(self) -> str:
        """Show itself: a square for each pair, green where attention is allowed, with a sentence as its tooltip."""
        flat = self.mask.reshape(-1, *self.mask.shape[-2:])[0].expand(len(self.rows), -1)
        html = "<table><tr><td>looks ↓ at →</td>"
        for column in self.columns:
            html += f"<th style='writing-mode:vertical-rl;text-align:right'>{escape(column)}</th>"
        html += "</tr>"
        for row, allowed in zip(self.rows, flat.tolist(), strict=True):
            html += f"<tr><th style='text-align:right'>{escape(row)}</th>"
            for column, is_allowed in zip(self.columns, allowed, strict=True):
                html += _cell(row, column, is_allowed)
            html += "</tr>"
        return html + "</table>"


def _cell(row: str, column: str, is_allowed: bool) -> str:
    verb, opacity, sign = ("may", 0.35, "✓") if is_allowed else ("may not", 0, "·")
    tooltip = escape(f"{row} {verb} look at {column}")
    return f"<td title='{tooltip}' style='text-align:center;background:rgba(21,128,61,{opacity})'>{sign}</td>"
