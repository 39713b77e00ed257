"""What a browser is given to show, as plain values: attention, and the tree of a beam search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.limits import length_penalty
from translucid.decoding.maps import chosen_maps
from translucid.decoding.trace import BeamTrace
from translucid.inspection.inspected import Inspected
from translucid.inspection.words import WordMap

SIDES = ("encoder", "decoder")
"""Whose self-attention is shown where it is wanted."""


def viewer_record(inspected: Inspected, *, sides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the words, how likely they are, and maps between them, as the modules in `web/` show them.

    Each map has a `name`, a `kind`, a `layer` and a `head` (null where it is an average of all) and its `weights`, a
    row for each word that looked and a column for each that it could look at: `target` and `source`. Of the kind
    `encoder` both are `source`; of `decoder` they are `target` and `fed`; `rollout` is what flows through all layers.
    So many of the first of `source` as `opening` says are no words of it; `unknown` are the positions of
    those that the model does not know; `sizes` are the pieces of each target word.

    Args:
        inspected: of one sentence, with attention.
        sides: of `SIDES`, those whose self-attention is wanted too, where there is any.
    """
    words = inspected.words()
    maps = [_map("all layers and heads", "cross", None, None, words), *_layers(inspected, "cross", "")]
    if len(inspected.maps) > 1:
        flow = inspected.words(inspected.rollout())
        maps.append(_map("flow through all layers (rollout)", "rollout", None, None, flow))
    record = {
        "source": words.source,
        "target": words.target,
        "opening": words.opening,
        "unknown": inspected.unknown_words,
        "probabilities": [round(math.exp(value), 4) for value in inspected.word_log_probs()],
        "sizes": [after - first for _, first, after in inspected.target_spans],
    }
    for side in sides:
        names = [name for name in inspected.maps if name.startswith(f"{side}.") and name.endswith(".self")]
        maps += _layers(inspected, side, f"{side}, ") if names else []
        if names and side == "decoder":
            record["fed"] = inspected.word_maps(names[0])[0].source
    return record | {"maps": maps}


def beam_record(trace: BeamTrace, beam: int, tokenizer: Tokenizer, alpha: float) -> dict[str, Any]:
    """Return the tree of a beam search: its nodes, the root first, and each finished text once, with its best score.

    Args:
        trace: of one sentence.
        beam: hypotheses that were extended.
        tokenizer: of the model; an output begins with its `target_opening`.
        alpha: of the length penalty, by which a log-probability becomes a score.
    """
    opening = len(tokenizer.target_opening)
    nodes = [
        {"parent": node.parent, "token": node.token, "name": trace.name(node.token), "fate": node.fate}
        | {"log_prob": round(node.log_prob, 5)}
        for node in trace.nodes
    ]
    finished: dict[str, dict[str, Any]] = {}  # by text
    for i, node in enumerate(trace.nodes):
        if node.fate == "ended":
            tokens = [trace.nodes[j].token for j in trace.path(i)]
            score = node.log_prob / length_penalty(float(len(tokens) - opening), alpha)
            text = tokenizer.decode(tokens[opening:-1])
            row = {"node": i, "text": text, "log_prob": round(node.log_prob, 5), "score": round(score, 5)}
            known = finished.get(text)
            # The same text may be reached by several segmentations into pieces: the chosen one, or the best, stays.
            if known is None or i == trace.best or (known["node"] != trace.best and score > known["score"]):
                finished[text] = row
    rows = sorted(finished.values(), key=lambda one: -one["score"])
    return {"nodes": nodes, "best": trace.best, "beam": beam, "opening": opening, "finished": rows}


def _layers(inspected: Inspected, kind: str, before: str) -> list[dict[str, Any]]:
    """Return the average of each layer, unless it is that of all, and each head of several."""
    names = chosen_maps(inspected.heads, kind)
    averages, heads = [], []
    for name in names:
        layer, maps = int(name.split(".")[1]), inspected.word_maps(name)
        if len(names) > 1 or kind != "cross":
            averages.append(_map(f"{before}layer {layer}, all heads", kind, layer, None, inspected.word_map(name)))
        if len(maps) > 1:
            heads += [_map(f"{before}layer {layer}, head {h}", kind, layer, h, one) for h, one in enumerate(maps)]
    return averages + heads


def _map(name: str, kind: str, layer: int | None, head: int | None, words: WordMap) -> dict[str, Any]:
    weights = [[round(weight, 4) for weight in row] for row in words.weights.tolist()]
    return {"name": name, "kind": kind, "layer": layer, "head": head, "weights": weights}
