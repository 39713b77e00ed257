"""The plain values that the interactive views show: attention, and the tree of a beam search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.limits import length_penalty
from translucid.decoding.maps import chosen_maps
from translucid.decoding.trace import BeamTrace
from translucid.inspection.inspected import Inspected, title_of
from translucid.inspection.plain_values import plain, rounded
from translucid.inspection.words import WordMap

SIDES = ("encoder", "decoder")
"""The sides whose self-attention can be shown."""


def viewer_record(inspected: Inspected, *, sides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the words, their probabilities, and maps between them, for the modules in `web/`.

    Each map has a `name`, a `kind`, a `layer` and a `head` (null for an average over all) and its `weights`, a row for
    each query and a column for each key. The queries and keys are `target` and `source` words; both are `source` for
    the kind `encoder`; they are `target` and `fed` for `decoder`; `rollout` is attention through all layers. The first
    `opening` entries of `source` are no words of the text; `unknown` are the positions of words with unknown pieces;
    `sizes` are the numbers of pieces of the target words.

    Args:
        inspected: one sentence with attention.
        sides: those of `SIDES` whose self-attention is included, if the model has any.
    """
    words = inspected.words()
    maps = [_map("all layers and heads", "cross", None, None, words), *_layers(inspected, "cross", "")]
    if len(inspected.maps) > 1:
        flow = inspected.words(inspected.rollout())
        maps.append(_map("flow through all layers (rollout)", "rollout", None, None, flow))
    record: dict[str, Any] = {
        "source": words.source,
        "target": words.target,
        "opening": words.opening,
        "unknown": inspected.unknown_words,
        "probabilities": rounded(map(math.exp, inspected.word_log_probs()), 4),
        "sizes": [after - first for _, first, after in inspected.target_spans],
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
        known = finished.get(text)
        # The same text may be reached by several segmentations into pieces: the chosen one, or the best, stays.
        if known is None or i == trace.best or (known["node"] != trace.best and score > known["score"]):
            log_prob = round(node.log_prob, 5)
            finished[text] = {"node": i, "text": text, "log_prob": log_prob, "score": round(score, 5)}
    rows = sorted(finished.values(), key=lambda row: -row["score"])
    return {"nodes": nodes, "best": trace.best, "beam": beam, "opening": opening, "finished": rows}


def _layers(inspected: Inspected, kind: str, before: str) -> list[dict[str, Any]]:
    """Return the average of each layer, then each head; without maps that equal an average over more."""
    names = chosen_maps(inspected.heads, kind)
    averages, heads = [], []
    for name in names:
        layer, maps = int(name.split(".")[1]), inspected.word_maps(name)
        if len(names) > 1 or kind != "cross":
            averages.append(_map(before + title_of(layer, None), kind, layer, None, inspected.word_map(name)))
        if len(maps) > 1:
            for head, words in enumerate(maps):
                heads.append(_map(before + title_of(layer, head), kind, layer, head, words))
    return averages + heads


def _map(name: str, kind: str, layer: int | None, head: int | None, words: WordMap) -> dict[str, Any]:
    weights = plain(words.weights, 4)
    return {"name": name, "kind": kind, "layer": layer, "head": head, "weights": weights}
