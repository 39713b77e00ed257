"""The records that the figures of the lessons show: what the models compute for a sentence, as plain values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sacrebleu.metrics.chrf import CHRF
from torch import Tensor

from translucid.api.translation import Translation
from translucid.api.translator import Translator
from translucid.attention.multi_head import MultiHeadAttention
from translucid.attention.points import handling, recording
from translucid.attention.scores import Concat
from translucid.corpora.phrasebook import generate
from translucid.data.text_pipeline import EncodedPair
from translucid.decoding.beam import beam_search
from translucid.decoding.maps import forced_pass
from translucid.decoding.pair_scores import pair_scores
from translucid.decoding.search import prepare
from translucid.decoding.trace import BeamTrace
from translucid.evaluation.metrics import corpus_scores
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.inspection.ablation import head_names
from translucid.inspection.equation import equation
from translucid.inspection.inspected import plain
from translucid.inspection.lens import deciding_layer, lens_pass, read_lens
from translucid.inspection.patching import ENCODER, pair_pieces, pair_words, replacing
from translucid.inspection.words import span_ranges, span_words, word_spans
from translucid.lessons.lessons import Lesson
from translucid.lessons.pages import as_json, recorded
from translucid.lessons.runs import WORDS, Models, translated
from translucid.models.kinds import figures_of_lesson, resolved
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import PlainDecoder, RecurrentMemory, RecurrentModel
from translucid.runs.presets import DEMO_TEXTS

Record = dict[str, Any]
BOOK = [*DEMO_TEXTS, "They are going to the beach"]
"""The sentences of most lessons."""
LENGTHS = (3, 5, 7, 9, 11, 13, 16, 20)
"""The lengths, in source words, of the sentences of the first lesson."""
PER_LENGTH = 60
"""The number of held-out sentences of each length whose translations are scored."""
CANDIDATES = 1000
"""The number of held-out sentences in which the lesson on beam search finds those that a beam translates better."""
LAYER_CANDIDATES = 60
"""The number of held-out sentences in which the lesson on layers finds one that each layer translates differently."""
BEAMS = 5
"""The largest beam width."""
FATES = "kept", "ended", "dropped"
"""The fates of the nodes of a search tree; records have their indices."""
DIMENSIONS, KEYS, DRAWS = 1024, 6, 500
"""The dimensions of the random vectors in the lesson on the scale, the number of keys, and of draws for its curve."""
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The powers of d by which the scores are divided there."""
SEED = 53
"""The seed of the random vectors."""


@torch.inference_mode()
def bottleneck_sentence(models: Models, text: str) -> Record:
    """Return what the decoder receives of a sentence, without attention and with it, and the probabilities of words."""
    none, additive = models.recurrent("none"), models.recurrent("additive")
    without, ids, _ = translated(none, text)
    memory = none.model.encode(torch.tensor([ids]))
    assert isinstance(memory, RecurrentMemory)
    attentive, _, _ = translated(additive, text)
    terms = attentive.equation()
    return {
        "text": text,
        "words": len(text.split()),
        "vector": plain(memory.first[0][-1, 0]),  # of the last layer
        "pieces": terms.key_pieces,
        "states": plain(terms.value, 3),
        "without": _rounded(without.word_probabilities),
        "with": _rounded(attentive.word_probabilities),
    }


def _rounded(probabilities: Iterable[tuple[str, float]]) -> list[list[Any]]:
    return [[word, round(probability, 4)] for word, probability in probabilities]


def bottleneck(models: Models) -> Record:
    """Return sentences of several lengths, and BLEU by length without attention and with it."""
    sentences, chart = [], []
    for words in LENGTHS:
        # The limits of `generate` are for both languages.
        phrases = generate(4 * PER_LENGTH, split="test", min_words=words - 1, max_words=words + 1)
        pairs = [pair for pair in phrases if len(pair.source.split()) == words][:PER_LENGTH]
        sources = [pair.source for pair in pairs]
        references = [pair.target for pair in pairs]
        row: Record = {"words": words, "sentences": len(pairs)}
        for kind, score in (("without", "none"), ("with", "additive")):
            translations = models.recurrent(score).translate(sources, split=False)
            bleu = corpus_scores([translation.text for translation in translations], [references])[0]
            row[kind] = round(bleu.value, 1)
        chart.append(row)
        sentences.append({**bottleneck_sentence(models, sources[0]), "reference": references[0]})
    return {"sentences": sentences, "chart": chart, "trained": WORDS}


@torch.inference_mode()
def alignment_sentence(models: Models, text: str) -> Record:
    """Return for each alignment score the vectors whose products (additive: whose tanh, times v) sum to it."""
    scores: Record = {}
    for kind in ("dot", "general", "additive"):
        translation, _, _ = translated(models.recurrent(kind), text)
        terms = translation.equation()
        model = models.recurrent(kind).model
        assert isinstance(model, RecurrentModel)
        assert not isinstance(model.decoder, PlainDecoder)
        query, v, score = terms.query, None, model.decoder.score
        if isinstance(score, Concat):
            query, v = score.query(query), plain(score.v)
        scores[kind] = {
            "source": terms.key_pieces,
            "target": terms.query_pieces,
            "query": plain(query),
            "key": plain(terms.key),
            "v": v,
            "weights": plain(terms.weights),
        }
    return {"text": text, "scores": scores}


def memory_sentence(models: Models, text: str) -> Record:
    """Return queries, keys and values of each head of the demo's last cross-attention."""
    translation, _, _ = translated(models.demo, text)
    name = f"decoder.{translation.inspected[0].layers[-1]}.cross"
    heads = []
    for head in range(translation.inspected[0].heads[name]):
        terms = translation.equation(name, head)
        heads.append({"query": plain(terms.query), "key": plain(terms.key), "value": plain(terms.value)})
    return {"text": text, "name": name, "source": terms.key_pieces, "target": terms.query_pieces, "heads": heads}


def masks_sentence(models: Models, text: str) -> Record:
    """Return queries and keys of the demo's first decoder layer for a translation and two positions of padding."""
    demo = models.demo
    _, ids, target = translated(demo, text)
    pad = demo.model.pad
    # The decoder's input is shifted: the last of these tokens is only predicted.
    tokens = [*target[:-1], pad, pad, pad]
    names = demo.tokenizer.target_pieces(tokens)
    heads = []
    for head in range(demo.inspector.heads["decoder.0.self"]):
        terms = equation(demo.model, ids, tokens, "decoder.0.self", head, pieces=(names[:1], names))
        heads.append({"query": plain(terms.query), "key": plain(terms.key)})
    return {"text": text, "tokens": terms.key_pieces, "padding": 2, "heads": heads}


def heads_sentence(models: Models, text: str) -> Record:
    """Return the weights of every head, and the probabilities of the translation without each head."""
    translation, ids, target = translated(models.demo, text)
    inspected = translation.inspected[0]
    return {
        "text": text,
        "source": inspected.source,
        "target": inspected.target,
        "fed": ["<s>", *inspected.target[:-1]],
        "maps": {name: plain(weights, 3) for name, weights in inspected.maps.items()},
        "probabilities": plain(torch.tensor(inspected.log_probs).exp()),
        "without": without_each_head(models.demo.model, ids, target, inspected.heads),
    }


@torch.inference_mode()
def without_each_head(model: SequenceModel, source: list[int], target: list[int], heads: dict[str, int]) -> Record:
    """Return the probability of each target token when one head's context is zero, for each map and head."""
    model_copy = deepcopy(model)
    tensors = torch.tensor([source]), torch.tensor([target])
    probabilities: Record = {}
    for name, count in heads.items():
        side, layer, kind = name.split(".")
        attention = model_copy.get_submodule(f"{side}.{layer}.{'self' if kind == 'self' else 'cross'}_attention")
        assert isinstance(attention, MultiHeadAttention)
        # The output projection reads the concatenated heads: its columns of a head are what the head contributes.
        weight = attention.output.weight
        original, width = weight.clone(), weight.size(1) // count
        probabilities[name] = []
        for head in range(count):
            weight[:, head * width : (head + 1) * width] = 0
            log_probs = forced_pass(model_copy, *tensors, with_attention=False).log_probs[0]
            probabilities[name].append(plain(log_probs.exp()))
            weight.copy_(original)
    return probabilities


def scale(models: Models) -> Record:
    """Return random vectors, whose first d numbers are vectors of d dimensions, and the heads of the demo's last layer.

    `slopes` has, for each power of d that scores are divided by, the steepest slope of the softmax for d = 1, 2, 4, ..
    """
    generator = torch.Generator().manual_seed(SEED)
    vectors = torch.randn(KEYS + 1, DIMENSIONS, generator=generator)
    queries = torch.randn(DRAWS, 1, DIMENSIONS, generator=generator, dtype=torch.float64)
    keys = torch.randn(DRAWS, KEYS, DIMENSIONS, generator=generator, dtype=torch.float64)
    sizes = 2 ** torch.arange(DIMENSIONS.bit_length())
    # The sum of the first d products is the score of vectors of d dimensions.
    scores = (queries * keys).cumsum(-1)[..., sizes - 1]  # [draws, keys, sizes]
    slopes: Record = {}
    for power in POWERS:
        weights = (scores / sizes**power).softmax(1)
        # The slope of a softmax weight w by its score is w (1 - w).
        slopes[f"{power:.2f}"] = plain((weights * (1 - weights)).amax(1).mean(0))
    return {
        **of_book(memory_sentence)(models),
        "query": plain(vectors[0], 3),
        "keys": plain(vectors[1:], 3),
        "slopes": slopes,
        "draws": DRAWS,
    }


def positions(models: Models) -> Record:
    """Return the width of the demo's positional encodings."""
    return {"width": models.demo.model.options.width}  # type: ignore[attr-defined]


def beam_sentence(models: Models, text: str) -> Record:
    """Return the trees and the results of beam searches with 1 to `BEAMS` hypotheses."""
    demo = models.demo
    _, ids, _ = translated(demo, text)
    searches = []
    for width in range(1, BEAMS + 1):
        options = demo.configuration.decoding.model_copy(update={"beam": width, "nbest": 1})
        trace = BeamTrace()
        with torch.inference_mode():
            problem = prepare(demo.model, torch.tensor([ids]), options, demo.torch_engine.word_starts)
            ((best,),) = beam_search(problem, width, 1, trace).best(1)
        trace.finish(best.with_end, demo.tokenizer.target_pieces)
        nodes = []
        for node in trace.nodes:
            nodes.append([node.parent, trace.name(node.token), round(node.log_prob, 4), FATES.index(node.fate)])
        searches.append(
            {
                "nodes": nodes,
                "best": trace.best,
                "text": demo.tokenizer.decode(best.tokens),
                "log_probability": round(best.log_probability, 4),
                "score": round(best.score, 4),
            }
        )
    return {"text": text, "searches": searches, "alpha": demo.configuration.decoding.length_penalty}


def beam(models: Models) -> Record:
    """Return sentences that a beam translates better than greedy search, one of the book, and how many change."""
    pairs = list(generate(CANDIDATES, split="test", min_words=3, max_words=9))
    texts = [pair.source for pair in pairs]
    by_greedy_search = models.demo.translate(texts, split=False, beam=1)
    by_beam = models.demo.translate(texts, split=False, beam=BEAMS)
    gains = []  # of chrF, and whether the translation is also more probable
    for narrow, wide, pair in zip(by_greedy_search, by_beam, pairs, strict=True):
        if narrow.text != wide.text:
            gain = _chrf(wide.text, pair.target) - _chrf(narrow.text, pair.target)
            gains.append((gain, _log_probability(wide) > _log_probability(narrow), wide.source))
    sentences: list[Record] = []
    for gain, is_more_probable, text in sorted(gains, reverse=True):
        if gain > 0 and is_more_probable and len(sentences) < 3:
            sentences.append(beam_sentence(models, text))
    return {
        "sentences": [*sentences, beam_sentence(models, BOOK[1])],
        "gains": len(sentences),
        "candidates": len(texts),
        "differing": len(gains),
        "better": sum(gain > 0 for gain, *_ in gains),
        "worse": sum(gain < 0 for gain, *_ in gains),
    }


def _chrf(translation: str, reference: str) -> float:
    return float(CHRF().sentence_score(translation, [reference]).score)


def _log_probability(translation: Translation) -> float:
    return translation.nbest[0].hypotheses[0].log_probability


def layers(models: Models) -> Record:
    """Return what the layers predict for the sentences of the book, and how many held-out pieces each decides."""
    texts = [text for text in [_differing(models), *BOOK] if text]
    sentences = [layers_sentence(models, text) for text in texts]
    return {"sentences": sentences, **decided_pieces(models)}


def _differing(models: Models) -> str | None:
    """Return a held-out sentence that the decoder translates differently from each layer of the encoder, at last right.

    If there is none, return that with the most translations; None if all layers give the same.
    """
    best, most = None, 1
    for pair in generate(LAYER_CANDIDATES, split="test", min_words=3, max_words=9):
        translations = models.demo.inspector.decoder_lens(pair.source, split=False, beam=1).translations
        count = len(set(translations))
        if translations[-1] == pair.target and count > most:
            best, most = pair.source, count
        if most == len(translations):
            break
    return best


def ablation(models: Models) -> Record:
    """Return the sentences of the book with heads off, and BLEU with fewer and fewer heads."""
    return {**of_book(ablation_sentence)(models), **ablation_chart(models)}


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
        "encoder": demo.inspector.decoder_lens(text, split=False, beam=1).translations,
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
    (inspected,) = demo.inspector.forced_decoding([EncodedPair(ids, target)], contributions=True)
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
    names = head_names(demo.inspector.heads)
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
        return sum(score.log_probability for score in translator.inspector.score(sources, references))

    def bleu(heads: Sequence[str]) -> float:
        translations = demo.ablated(*heads).translate(sources, beam=1, split=False)
        return round(corpus_scores([translation.text for translation in translations], [references])[0].value, 1)

    # The more probable the references are without a head, the less important it is.
    least_first = sorted(head_names(demo.inspector.heads), key=lambda name: -log_probability(demo.ablated(name)))
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
    record = demo.inspector.patch(clean, other, words, target=target).to_json()
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


PASSAGES = {
    ("I saw a lamp.", "It's beautiful."): ("Es bonita.", "Es bonito."),
    ("I saw an umbrella.", "It's beautiful."): ("Es bonito.", "Es bonita."),
    ("My son has a drawer.", "It was empty."): ("Estaba vacío.", "Estaba vacía."),
    ("I have a bottle.", "It's black."): ("Es negra.", "Es negro."),
}
"""The previous sentence and the sentence that is translated; its right translation, and a wrong one."""


def context_sentence(models: Models, text: str) -> Record:
    """Return the translations of a sentence with the previous sentence and without it, and log-odds.

    The log-odds compare two translations: for passages of the lesson, the right and the wrong one; for others, the
    translations with the previous sentence and without it.

    Raises:
        UserError: the text is not two sentences.
    """
    previous, separator, sentence = (part.strip() for part in text.partition(SEPARATOR))
    if not (separator and previous and sentence):
        raise UserError("this lesson reads two sentences", fix=f"Put {SEPARATOR} between them.")
    translator = models.context
    contexts: list[list[str]] = [[previous], []]
    translations = []
    for context in contexts:
        translations.append(translator.translate(sentence, beam=1, split=False, context=" ".join(context)).text)
    compared = PASSAGES.get((previous, sentence), tuple(translations))
    odds = [round(log_odds(translator, context, sentence, compared), 4) for context in contexts]
    return {
        "text": f"{previous} {SEPARATOR} {sentence}",
        "before": previous,
        "sentence": sentence,
        "compared": list(compared),
        "translations": translations,
        "log_odds": odds,
    }


def log_odds(translator: Translator, previous: Sequence[str], sentence: str, translations: Sequence[str]) -> float:
    """Return log p(y | previous, sentence) - log p(y' | previous, sentence) for two translations y and y', in nats."""
    pairs = translator.inspector.after(previous).encoded([*product([sentence], translations)])
    rows = [pair.input_ids for pair in pairs]
    prefix_length = len(translator.tokenizer.target_opening)
    first, second = pair_scores(translator.model, rows, translator.device, prefix_length=prefix_length)
    return first.log_probability - second.log_probability


def context(models: Models) -> Record:
    """Return the passages of the lesson."""
    return {"sentences": [context_sentence(models, f" {SEPARATOR} ".join(passage)) for passage in PASSAGES]}


HEARD = (
    "We saw a beautiful church in the old city",
    DEMO_TEXTS[1],
    "When Elena arrived early, she gave a book to our father.",
)
"""The sentences of the lesson on live translation: an order and a gender that depend on later words, and a guess."""
LAGS = (1, 2, 3, 4)
"""The lags of its slider."""


def live_sentence(models: Models, text: str) -> Record:
    """Return how a sentence is translated while it is heard, by AlignAtt with each of `LAGS`.

    Raises:
        UserError: the text is more than one sentence.
    """
    lags = []
    for lag in LAGS:
        session = models.demo.live("alignatt", lag=lag)
        session.read(text)
        session.finish()
        sentence, *others = session.record["sentences"]
        if others:
            raise UserError("a lesson takes one sentence", fix="Give a short one.")
        written = [[part["text"], part["heard"], _plain_row(part["row"])] for part in sentence["written"]]
        refused = []
        for part in sentence["refused"]:
            if part["heard"] == len(sentence["source"]):
                continue  # the sentence ended then
            # The policy compares pieces; that of the largest weight may not belong to the word with the largest sum.
            words = sentence["heard"][str(part["heard"])]["words"]
            looks_at = words[part["evidence"]["argmax"]] if part["evidence"] else None
            refused.append({"text": part["text"], "heard": part["heard"], "at": looks_at})
            refused[-1]["row"] = _plain_row(part["row"])
        lags.append({"lag": lag, "text": sentence["text"], "written": written, "refused": refused})
    whole = models.demo.translate(text, beam=1, split=False).text
    return {"text": text, "words": sentence["source"], "whole": whole, "lags": lags}


def _plain_row(row: Iterable[float]) -> list[float]:
    return [round(weight, 3) for weight in row]


def live(models: Models) -> Record:
    """Return the sentences of the lesson."""
    return {"sentences": [live_sentence(models, text) for text in HEARD]}


FACTORS = (0, 4, 16, 64)
"""The factors of the slider in the lesson on features; it also has 1."""
CIRCUITS_OF = {
    "They are going to the beach": "playa",
    "I closed the door.": "la",
    DEMO_TEXTS[0]: "fútbol",
}
"""The sentences of the lessons on features and on circuits, and a word of each translation; of others, the longest."""


def features_sentence(models: Models, text: str) -> Record:
    """Return features of a sentence and of its greedy translation, and the translations when one is scaled."""
    return _record_of_figure("features")(models.demo, text, _one_sentence(models, text), FACTORS)


def circuit_sentence(models: Models, text: str) -> Record:
    """Return the graph of a word of the greedy translation of a sentence."""
    target = _one_sentence(models, text)
    words, word = target.split(), CIRCUITS_OF.get(text)
    # Another model may not write the word.
    position = words.index(word) if word in words else max(range(len(words)), key=lambda i: len(words[i]))
    return _record_of_figure("circuit")(models.demo, text, target, position)


def _one_sentence(models: Models, text: str) -> str:
    """Return the greedy translation of a text.

    Raises:
        UserError: the text is more than one sentence, or its translation is empty.
    """
    translated(models.demo, text)
    target = _written(models.demo, text)
    if not target.strip():
        raise UserError("the translation is empty", fix="Give another sentence.")
    return target


def _record_of_figure(lesson: str) -> Callable[..., Record]:
    """Return the function of an extension that records a figure."""
    figures = figures_of_lesson(lesson)
    assert figures is not None
    function: Callable[..., Record] = resolved(figures.records[lesson])
    return function


def features(models: Models) -> Record:
    """Return the sentences of the lesson."""
    return {"sentences": [features_sentence(models, text) for text in CIRCUITS_OF]}


def circuit(models: Models) -> Record:
    """Return the sentences of the lesson."""
    return {"sentences": [circuit_sentence(models, text) for text in CIRCUITS_OF]}


def of_book(sentence: Callable[[Models, str], Record]) -> Callable[[Models], Record]:
    """Return a function that records a lesson with only sentences."""
    return lambda models: {"sentences": [sentence(models, text) for text in BOOK]}


SENTENCE: dict[str, Callable[[Models, str], Record]] = {
    "bottleneck": bottleneck_sentence,
    "alignment": alignment_sentence,
    "memory": memory_sentence,
    "masks": masks_sentence,
    "heads": heads_sentence,
    "scale": memory_sentence,
    "beam": beam_sentence,
    "layers": layers_sentence,
    "contributions": contributions_sentence,
    "ablation": ablation_sentence,
    "patching": patching_sentence,
    "context": context_sentence,
    "live": live_sentence,
    "features": features_sentence,
    "circuit": circuit_sentence,
}
"""The function that records a sentence, by lesson; the lesson on positions has none."""
LESSON: dict[str, Callable[[Models], Record]] = {
    "bottleneck": bottleneck,
    "alignment": of_book(alignment_sentence),
    "memory": of_book(memory_sentence),
    "masks": of_book(masks_sentence),
    "positions": positions,
    "heads": of_book(heads_sentence),
    "scale": scale,
    "beam": beam,
    "layers": layers,
    "contributions": of_book(contributions_sentence),
    "ablation": ablation,
    "patching": patching,
    "context": context,
    "live": live,
    "features": features,
    "circuit": circuit,
}
"""The function that records a lesson, in order."""


def record_of(models: Models, lesson: Lesson) -> str:
    """Return the record of a lesson as JSON; it is saved until one of its models or its dictionary is learned again."""
    if not models.has(lesson):
        return recorded(lesson.name)
    file = models.runs / "lessons" / f"{lesson.name}.json"
    if not file.exists() or file.stat().st_mtime < models.changed(lesson) or not _has_current_fields(file, lesson):
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, as_json(LESSON[lesson.name](models)).encode())
    return file.read_text(encoding="utf-8")


def _has_current_fields(file: Path, lesson: Lesson) -> bool:
    """Whether a saved record has the fields that this version records."""
    try:
        saved = json.loads(file.read_bytes())
    except ValueError:
        return False
    return isinstance(saved, dict) and saved.keys() == json.loads(recorded(lesson.name)).keys()
