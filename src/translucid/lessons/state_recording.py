"""The records of the lessons that read and replace a model's states: layers, contributions, ablation and patching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from translucid.api.translator import Translator
from translucid.attention.points import handling, recording
from translucid.corpora.phrasebook import generate
from translucid.decoding.maps import forced_pass
from translucid.evaluation.metrics import corpus_scores
from translucid.ground.errors import UserError
from translucid.inspection.ablation import head_names
from translucid.inspection.inspected import plain
from translucid.inspection.lens import deciding_layer, lens_pass, read_lens
from translucid.inspection.patching.runs import ENCODER, replacing
from translucid.inspection.patching.word_pairs import pair_pieces, pair_words
from translucid.inspection.words import span_ranges, span_words, word_spans
from translucid.lessons.models import Models, translated

Record = dict[str, Any]
HELD_OUT = 100
"""The number of held-out sentences whose pieces are counted by their deciding layer, and of those that are scored."""
HEAD_STEP = 2
"""The step of the number of heads that are off, in the chart of the lesson on ablation."""
PAIRS = {
    ("The house is old.", "The garden is old."): ("La casa es vieja.", ("La", "El")),
    ("The shirt is red and small", "The hat is red and small"): ("La camisa es roja y pequeña", ("La", "El")),
    ("I closed the door.", "I closed the book."): ("Cerré la puerta.", ("la", "el")),
    ("Where is the letter?", "Where is the book?"): ("¿Dónde está la carta?", ("la", "el")),
}
"""The pairs of sentences of the lesson on patching, CLEAN and OTHER, with nouns of different gender.

Each has a translation of CLEAN, and the articles. For other pairs, the first words in which their translations differ
are compared.
"""
SEPARATOR = "/"
"""The separator of CLEAN and OTHER where a reader types both."""


def layers_sentence(models: Models, text: str) -> Record:
    """Return what each layer of the demo's decoder predicts, and what the decoder writes from each encoder layer."""
    demo = models.demo
    _, ids, target = translated(demo, text)
    lens = read_lens(demo.model, demo.tokenizer, torch.tensor([ids]), target)
    best = plain(lens.top_log_probs.exp())
    predictions = []
    for names, probabilities in zip(lens.top, best, strict=True):
        layer_predictions = []
        for piece_predictions in zip(names, probabilities, strict=True):
            layer_predictions.append(list(map(list, zip(*piece_predictions, strict=True))))
        predictions.append(layer_predictions)
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


def decided_pieces(models: Models) -> Record:
    """Return how many pieces of held-out sentences each layer, and last none, decides: of all, and of first ones."""
    demo = models.demo
    counts: list[int] = []
    first: list[int] = []
    for phrase in generate(HELD_OUT, split="test"):
        _, ids, target = translated(demo, phrase.source)
        ranks = lens_pass(demo.model, torch.tensor([ids]), torch.tensor([target])).ranks[:, 0]  # [L + 1, T]
        counts, first = counts or [0] * (len(ranks) + 1), first or [0] * (len(ranks) + 1)
        for position, piece_ranks in enumerate(ranks.T.tolist()):
            layer = deciding_layer(piece_ranks)
            index = len(ranks) if layer is None else layer
            counts[index] += 1
            first[index] += position == 0
    return {"decided": counts, "first": first, "held_out": HELD_OUT}


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


@torch.inference_mode()
def ablation_sentence(models: Models, text: str) -> Record:
    """Return the translation with each head of the demo off, and with more and more of them, the least important first.

    A head is the more important, the more log-probability the translation loses without it.
    """
    demo = models.demo
    _, ids, target = translated(demo, text)
    pair = torch.tensor([ids]), torch.tensor([target])
    names = head_names(demo.heads)
    losses, alone = [], []
    baseline = forced_pass(demo.model, *pair, with_attention=False).log_probs.sum().item()
    for name in names:
        ablated = demo.ablated(name)
        log_probability = forced_pass(ablated.model, *pair, with_attention=False).log_probs.sum().item()
        losses.append(round(baseline - log_probability, 4))
        alone.append(_written(ablated, text))
    order = sorted(range(len(names)), key=losses.__getitem__)
    together = []
    for count in range(len(names) + 1):
        together.append(_written(demo.ablated(*(names[i] for i in order[:count])), text))
    return {
        "text": text,
        "heads": names,
        "losses": losses,
        "alone": alone,
        "order": order,
        "together": together,
    }


def ablation_chart(models: Models) -> Record:
    """Return BLEU on held-out sentences by the number of heads that are off: the least or the most important first.

    The importance of a head is the mean loss of log-probability of the references without it.
    """
    demo = models.demo
    phrases = list(generate(HELD_OUT, split="test"))
    sources = [phrase.source for phrase in phrases]
    references = [phrase.target for phrase in phrases]

    def log_probability(translator: Translator) -> float:
        return sum(score.log_probability for score in translator.score(sources, references))

    def bleu(heads: Sequence[str]) -> float:
        translations = demo.ablated(*heads).translate(sources, beam=1, split=False)
        return round(corpus_scores([translation.text for translation in translations], [references])[0].value, 1)

    # The more probable the references are without a head, the less important it is.
    least_first = sorted(head_names(demo.heads), key=lambda name: -log_probability(demo.ablated(name)))
    rows = []
    for count in [*range(0, len(least_first), HEAD_STEP), len(least_first)]:
        rows.append({"off": count, "least": bleu(least_first[:count]), "most": bleu(least_first[::-1][:count])})
    return {"chart": rows, "held_out": HELD_OUT}


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
    clean, separator, other = (part.strip() for part in text.partition(SEPARATOR))
    if not (separator and clean and other):
        fix = f"Put {SEPARATOR} between them."
        raise UserError("this lesson compares two sentences", fix=fix)
    demo = models.demo
    target, words = PAIRS.get((clean, other), (None, None))
    record = demo.patch(clean, other, words, target=target).to_json()
    del record["notes"]
    sources = _source(demo, clean), _source(demo, other)
    points = next(part["points"] for part in record["parts"] if part["kind"] == ENCODER)
    return {
        "text": f"{clean} {SEPARATOR} {other}",
        **record,
        "translations": [_written(demo, clean), _written(demo, other)],
        "moved": patched_translations(demo, sources[0], other, sources[1], points),
    }


def _written(demo: Translator, text: str) -> str:
    return demo.translate(text, beam=1, split=False).text


@torch.inference_mode()
def patched_translations(
    demo: Translator, clean: _Source, text: str, other: _Source, points: Sequence[str]
) -> list[list[str]]:
    """Return the greedy translation of OTHER with the state of CLEAN at each point and word [points][words]."""
    with recording(demo.model, points) as record:
        demo.model.encode(torch.tensor([clean.ids]))
    states: dict[str, Tensor] = dict(record)
    rows: list[list[str]] = []
    for point in points:
        rows.append([])
        for i, j in pair_words(clean.words, other.words):
            pieces = pair_pieces(clean.ranges[i], other.ranges[j])
            with handling(demo.model, {point: replacing(states[point], [pieces])}):
                rows[-1].append(_written(demo, text))
    return rows


def patching(models: Models) -> Record:
    """Return the pairs of sentences."""
    sentences = []
    for clean, other in PAIRS:
        sentences.append(patching_sentence(models, f"{clean} {SEPARATOR} {other}"))
    return {"sentences": sentences}
