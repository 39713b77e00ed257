"""The interactive views of translations: their plain values, web pages in one file, and views in notebooks.

JavaScript modules are bundled into one script, because a page opened as a file may not load modules.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from itertools import chain
from typing import Any
from uuid import uuid4

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import length_penalty
from translucid.decoding.hypothesis import percent
from translucid.decoding.maps import chosen_maps
from translucid.decoding.trace import BeamTrace
from translucid.evaluation.alignment_error import Method
from translucid.inspection.bundling import WEB, bundle
from translucid.inspection.inspected import Inspected, null_for_nan, plain, rounded, title_of
from translucid.inspection.words import WordMap

SIDES = ("encoder", "decoder")
"""The sides whose self-attention can be shown."""


def page(
    pieces: Sequence[Inspected],
    source: str,
    translation: str,
    details: Sequence[Mapping[str, Any]] = (),
    method: Method = "weights",
) -> str:
    """Return a page without external resources: ribbons between words, all heads, and the given details.

    Args:
        pieces: the attention of each piece of the text.
        source: the text.
        translation: its translation.
        details: further views of each piece: `tree`, that of its beam search (`beam_record`); `explanations` by method
            (`explanation_record`); `layers`, the predictions of each layer (`Lens.to_json`), under `encoder` those of
            the encoder (`DecoderLens.to_json`).
        method: the kind of map that the ribbons show at first.
    """
    frame = "body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; background: var(--background); }\n"
    body = f"""<main id="pieces"></main>
<noscript><p>{escape(source)}</p><p>{escape(translation)}</p></noscript>
<script>
{_script('document.getElementById("pieces")', pieces, details, method)}</script>
"""
    return document(source, _text("inspector.css") + frame, body)


def notebook_view(pieces: Sequence[Inspected], details: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the view for a notebook; where no script runs, as in a notebook that is not trusted, it is a table.

    Args:
        pieces: the attention of each piece of one text.
        details: as for `page`.
    """
    name = f"translucid-{uuid4().hex}"  # unique, because all cells of a notebook are one document
    tables = ""
    for inspected in pieces:
        tables += notebook_table(inspected.words(), inspected.word_log_probs())
    # The view lies in a shadow root, so that its styles and those of the notebook do not affect each other.
    style = (_text("tokens.css") + _text("inspector.css")).replace(":root", ":host")
    style += ":host { display: block; background: var(--background); padding: 0 1em; }"
    container = f'modules["elements.js"].createShadowContainer(document.getElementById("{name}"), {_quoted(style)})'
    return f'<div id="{name}">{tables}</div>\n<script>\n{_script(container, pieces, details)}</script>'


def _script(
    container: str, pieces: Sequence[Inspected], details: Sequence[Mapping[str, Any]], method: Method = "weights"
) -> str:
    """Return a script that shows pieces in a container, which is given as a JavaScript expression."""
    sentences: list[dict[str, Any]] = []
    for inspected in pieces:
        record = viewer_record(inspected, sides=SIDES, method=method)
        source = " ".join(record["source"][record["opening"] : -1])
        sentences.append({"source_text": source, "text": " ".join(record["target"][:-1]), "record": record})
    for sentence, piece_details in zip(sentences, details, strict=False):
        sentence.update(piece_details)
    content = _quoted({"run": pieces[0].run or "RUN", "languages": None, "sentences": sentences})
    return bundle("inspector.js", [WEB], f'modules["inspector.js"].showInspector({container}, {content});\n')


def _quoted(value: Any) -> str:
    """Return a value as JavaScript; `</script>` in a text would end the script, so "<" is escaped."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


@cache
def _text(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def document(title: str, style: str, body: str) -> str:
    """Return a page in one file, with the colours and sizes of all our pages."""
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


def viewer_record(inspected: Inspected, *, sides: Sequence[str] = (), method: Method = "weights") -> dict[str, Any]:
    """Return the words, their probabilities, and maps between them, for the modules in `web/`.

    Each map has a `name`, a `kind`, a `layer` and a `head` (null for an average over all) and its `weights`, a row for
    each query and a column for each key. The queries and keys are `target` and `source` words; both are `source` for
    the kind `encoder`; they are `target` and `fed` for `decoder`; `rollout` is attention through all layers. The first
    `opening` entries of `source` are no words of the text, of which the first `context` belong to previous sentences;
    `words` are the positions of the words of both; `unknown` are those of words with unknown pieces; `sizes` are the
    numbers of pieces of the target words. If contributions were computed, there are maps of the kinds
    `norms` and `contributions`, `prefix` are the contributions of `fed` words to target words, and
    `source_contributions` the shares of the source, null where they are undefined.

    Args:
        inspected: one sentence with attention.
        sides: those of `SIDES` whose self-attention is included, if the model has any.
        method: the kind of the first map, which is shown at first.
    """
    words = inspected.words()
    maps = [_map("all layers and heads", "cross", None, None, words), *_layers(inspected, "cross", "")]
    if len(inspected.maps) > 1:
        flow = inspected.words(inspected.rollout())
        maps.append(_map("flow through all layers (rollout)", "rollout", None, None, flow))
    contributed: dict[str, Any] = {}
    if inspected.contributions is not None:
        prefix = inspected.prefix_words()
        contributed = {
            "fed": prefix.source,
            "prefix": plain(prefix.weights),
            "source_contributions": null_for_nan(rounded(inspected.source_contributions(), 4)),
        }
        by_method = {"norms": _by_method(inspected, "norms"), "contributions": _by_method(inspected, "contributions")}
        first_maps = by_method.pop(method, [])
        maps = [*first_maps, *maps, *chain.from_iterable(by_method.values())]
    record: dict[str, Any] = contributed | {
        "source": words.source,
        "target": words.target,
        "opening": words.opening,
        "context": words.context,
        "words": inspected.word_positions,
        "unknown": inspected.unknown_words,
        "probabilities": rounded(map(math.exp, inspected.word_log_probs()), 4),
        "sizes": [end - start for _, start, end in inspected.target_spans],
    }
    for side in sides:
        names = [name for name in inspected.maps if name.startswith(f"{side}.") and name.endswith(".self")]
        if not names:  # a recurrent model
            continue
        maps += _layers(inspected, side, f"{side}, ")
        if side == "decoder":
            record["fed"] = inspected.word_map(names[0]).source
    return record | {"maps": maps}


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


def _layers(inspected: Inspected, kind: str, prefix: str) -> list[dict[str, Any]]:
    """Return the average map of each layer, then that of each head, without maps that equal a wider average."""
    names = chosen_maps(inspected.heads, kind)
    averages, heads = [], []
    for name in names:
        layer, maps = int(name.split(".")[1]), inspected.word_maps(name)
        if len(names) > 1 or kind != "cross":
            averages.append(_map(prefix + title_of(layer, None), kind, layer, None, inspected.word_map(name)))
        if len(maps) > 1:
            for head, words in enumerate(maps):
                heads.append(_map(prefix + title_of(layer, head), kind, layer, head, words))
    return averages + heads


def _by_method(inspected: Inspected, method: Method) -> list[dict[str, Any]]:
    """Return the map through all layers, then that of each layer."""
    maps = []
    for layer in [None, *inspected.layers]:
        words = inspected.words(inspected.cross(layer, method=method))
        maps.append(_map(title_of(layer, None, method), method, layer, None, words))
    return maps


def _map(name: str, kind: str, layer: int | None, head: int | None, words: WordMap) -> dict[str, Any]:
    weights = plain(words.weights, 4)
    return {"name": name, "kind": kind, "layer": layer, "head": head, "weights": weights}
