"""The records of the lessons that read and replace a model's states: layers, contributions, ablation and patching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from translucid.api.translator import Translator
from translucid.attention.points import handling, recording
from translucid.corpora.phrasebook import generate
from translucid.ground.errors import UserError
from translucid.inspection.inspected import plain
from translucid.inspection.lens import deciding_layer, lens_pass, read_lens
from translucid.inspection.patching.runs import ENCODER, replacing
from translucid.inspection.patching.word_pairs import pair_pieces, pair_words
from translucid.inspection.words import span_ranges, span_words, word_spans
from translucid.lessons.models import Models, translated

Record = dict[str, Any]
HELD_OUT = 100
"""The number of held-out sentences whose pieces are counted by the layer that decides them."""
PAIRS = (
    ("The house is old.", "The garden is old."),
    ("The shirt is red and small", "The hat is red and small"),
    ("I closed the door.", "I closed the book."),
    ("Where is the letter?", "Where is the book?"),
)
"""The pairs of sentences of the lesson on patching, CLEAN and OTHER: nouns of different gender."""
BETWEEN = "/"
"""What stands between CLEAN and OTHER where a reader types both."""


def layers_sentence(models: Models, text: str) -> Record:
    """Return what each layer of the demo's decoder predicts, and what the decoder writes from each encoder layer."""
    demo = models.demo
    _, ids, target = translated(demo, text)
    lens = read_lens(demo.model, demo.tokenizer, torch.tensor([ids]), target)
    best = plain(lens.top_log_probs.exp())
    predictions = []
    for names, probabilities in zip(lens.top, best, strict=True):
        of_layer = []
        for at_piece in zip(names, probabilities, strict=True):
            of_layer.append(list(map(list, zip(*at_piece, strict=True))))
        predictions.append(of_layer)
    return {
        "text": text,
        "layers": lens.layers,
        "target": lens.target,
        "fed": ["<s>", *lens.target[:-1]],
        "predictions": predictions,
        "probabilities": plain(lens.log_probs.exp()),
        "ranks": lens.ranks.tolist(),
        "encoder": demo.decoder_lens(text, split=False, beam=1).translations,
    }


def decided_pieces(models: Models) -> list[int]:
    """Return how many pieces of held-out sentences each layer decides; the last number is of those that none does."""
    demo = models.demo
    counts: list[int] = []
    for phrase in generate(HELD_OUT, split="test"):
        _, ids, target = translated(demo, phrase.source)
        ranks = lens_pass(demo.model, torch.tensor([ids]), torch.tensor([target])).ranks[:, 0]  # [L + 1, T]
        counts = counts or [0] * (len(ranks) + 1)
        for of_piece in ranks.T.tolist():
            decided = deciding_layer(of_piece)
            counts[len(ranks) if decided is None else decided] += 1
    return counts


def contributions_sentence(models: Models, text: str) -> Record:
    """Return raw weights, norms, and the contributions of source and target prefix for each target piece."""
    demo = models.demo
    _, ids, target = translated(demo, text)
    (inspected,) = demo.forced_decoding([(ids, target)], contributions=True)
    contributions = inspected.with_contributions
    return {
        "text": text,
        "source": inspected.source,
        "target": inspected.target,
        "fed": ["<s>", *inspected.target[:-1]],
        "weights": plain(inspected.cross()),
        "norms": plain(inspected.cross(method="norms")),
        "contributions": plain(contributions.source.nan_to_num(0)),
        "prefix": plain(contributions.prefix.nan_to_num(0)),
    }


class _Source(NamedTuple):
    """A source sentence as the demo reads it."""

    ids: list[int]
    words: list[str]
    ranges: list[tuple[int, int]]


def _source(demo: Translator, text: str) -> _Source:
    ids = demo.pipeline.encode(text).ids
    spans = word_spans(demo.tokenizer.source_pieces(ids))
    return _Source(ids, span_words(spans), span_ranges(spans))


def patching_sentence(models: Models, text: str) -> Record:
    """Return the share of the difference that each state carries, and the translations with encoder states patched.

    Raises:
        UserError: the text is not two sentences, they have no pairs of words, or their translations do not differ.
    """
    clean, separator, other = (part.strip() for part in text.partition(BETWEEN))
    if not (separator and clean and other):
        fix = f"Write {BETWEEN.join(PAIRS[0])}"
        raise UserError("this lesson compares two sentences", fix=fix)
    demo = models.demo
    record = demo.patch(clean, other).to_json()
    del record["notes"]
    sources = _source(demo, clean), _source(demo, other)
    points = next(part["points"] for part in record["parts"] if part["kind"] == ENCODER)
    return {
        "text": f"{clean} {BETWEEN} {other}",
        **record,
        "translations": [_written(demo, clean), _written(demo, other)],
        "moved": moved(demo, sources[0], other, sources[1], points),
    }


def _written(demo: Translator, text: str) -> str:
    return demo.translate(text, beam=1, split=False).text


@torch.inference_mode()
def moved(demo: Translator, clean: _Source, text: str, other: _Source, points: Sequence[str]) -> list[list[str]]:
    """Return the greedy translation of OTHER with the state of CLEAN at each point and word [points][words]."""
    with recording(demo.model, points) as record:
        demo.model.encode(torch.tensor([clean.ids]))
    states: dict[str, Tensor] = dict(record)
    rows = []
    for point in points:
        rows.append([])
        for i, j in pair_words(clean.words, other.words):
            place = pair_pieces(clean.ranges[i], other.ranges[j])
            with handling(demo.model, {point: replacing(states[point], [place])}):
                rows[-1].append(_written(demo, text))
    return rows


def patching(models: Models) -> Record:
    """Return the pairs of sentences."""
    sentences = []
    for clean, other in PAIRS:
        sentences.append(patching_sentence(models, f"{clean} {BETWEEN} {other}"))
    return {"sentences": sentences}
