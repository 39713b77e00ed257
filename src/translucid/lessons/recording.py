"""The records that the figures of the lessons show: what the models compute for a sentence, as plain values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics.chrf import CHRF

from translucid.api.translation import Translation
from translucid.attention.multi_head import MultiHeadAttention
from translucid.attention.scores import Concat
from translucid.corpora.phrasebook import ENGLISH_BOOK, generate
from translucid.decoding.beam import beam_search
from translucid.decoding.maps import forced_pass
from translucid.decoding.search import prepare
from translucid.decoding.trace import BeamTrace
from translucid.evaluation.metrics import corpus_scores
from translucid.ground.atomic import write_atomically
from translucid.inspection.equation import equation
from translucid.inspection.inspected import plain
from translucid.lessons.context_recording import context, context_sentence
from translucid.lessons.lessons import Lesson
from translucid.lessons.models import Models, translated
from translucid.lessons.pages import as_json, recorded
from translucid.lessons.runs import WORDS
from translucid.lessons.state_recording import (
    ablation_chart,
    ablation_sentence,
    contributions_sentence,
    decided_pieces,
    layers_sentence,
    patching,
    patching_sentence,
)
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import PlainDecoder, RecurrentMemory, RecurrentModel

Record = dict[str, Any]
BOOK = [*ENGLISH_BOOK, "They are going to the beach"]
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
    for head in range(demo.heads["decoder.0.self"]):
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
    return {"width": models.demo.model.options.width}  # type: ignore[union-attr]


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
        translations = models.demo.decoder_lens(pair.source, split=False, beam=1).translations
        count = len(set(translations))
        if translations[-1] == pair.target and count > most:
            best, most = pair.source, count
        if most == len(translations):
            break
    return best


def ablation(models: Models) -> Record:
    """Return the sentences of the book with heads off, and BLEU with fewer and fewer heads."""
    return {**of_book(ablation_sentence)(models), **ablation_chart(models)}


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
}
"""The function that records a lesson, in order."""


def record_of(models: Models, lesson: Lesson) -> str:
    """Return the record of a lesson as JSON; it is saved until one of its models is trained again."""
    if not models.has(lesson):
        return recorded(lesson.name)
    file = models.runs / "lessons" / f"{lesson.name}.json"
    newest = max((models.runs / name / "model.safetensors").stat().st_mtime for name in lesson.runs)
    if not file.exists() or file.stat().st_mtime < newest or not _has_current_fields(file, lesson):
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
