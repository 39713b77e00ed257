"""The figures of each lesson: what the models do with a sentence, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

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
from translucid.lessons.lessons import Lesson
from translucid.lessons.models import Models, translated
from translucid.lessons.pages import as_json, recorded
from translucid.lessons.runs import WORDS
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel
from translucid.models.recurrent.encoder import RecurrentMemory
from translucid.models.recurrent.plain import PlainDecoder

Record = dict[str, Any]
BOOK = [*ENGLISH_BOOK, "They are going to the beach"]
"""Sentences of most lessons."""
LENGTHS = (3, 5, 7, 9, 11, 13, 16, 20)
"""Source words of the sentences of the first lesson."""
EACH = 60
"""Held-out sentences of each length whose translations are scored."""
TRIED = 400
"""Held-out sentences among which the last lesson looks for those that greedy search translates worse."""
BEAMS = 5
"""The widest beam shown."""
FATES = "kept", "ended", "dropped"
"""Of what a beam considered; figures have their numbers."""
DIMENSIONS, KEYS, DRAWS = 1024, 6, 500
"""Of the random vectors of the lesson on the scale, and how often they are drawn for its curve."""
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of d, by which the scores are divided there."""
SEED = 53
"""Of what is drawn."""


def plain(tensor: Tensor, digits: int = 4) -> Any:
    """Return the values of a tensor, rounded."""
    return (tensor.cpu().double() * 10**digits).round().div(10**digits).tolist()


@torch.inference_mode()
def bottleneck_sentence(models: Models, text: str) -> Record:
    """What a decoder is given of a sentence without attention, and with it; and what it makes of that."""
    none, additive = models.recurrent("none"), models.recurrent("additive")
    plainly, ids, _ = translated(none, text)
    memory = none.model.encode(torch.tensor([ids]))
    assert isinstance(memory, RecurrentMemory)
    looking, _, _ = translated(additive, text)
    one = looking.equation()
    return {
        "text": text,
        "words": len(text.split()),
        "vector": plain(memory.first[0][-1, 0]),
        "pieces": one.seen,
        "states": plain(one.value, 3),
        "without": [[word, round(p, 4)] for word, p in plainly.word_probabilities],
        "with": [[word, round(p, 4)] for word, p in looking.word_probabilities],
    }


def bottleneck(models: Models) -> Record:
    """Sentences of several lengths, and BLEU by length without attention and with it."""
    sentences, chart = [], []
    for words in LENGTHS:
        pairs = list(generate(4 * EACH, split="test", min_words=words - 1, max_words=words + 1))
        pairs = [pair for pair in pairs if len(pair.source.split()) == words][:EACH]
        row: Record = {"words": words, "sentences": len(pairs)}
        for kind, score in (("without", "none"), ("with", "additive")):
            found = models.recurrent(score).translate([pair.source for pair in pairs], split=False)
            bleu = corpus_scores([one.text for one in found], [[pair.target for pair in pairs]])[0]
            row[kind] = round(bleu.value, 1)
        chart.append(row)
        first = pairs[0]
        sentences.append({**bottleneck_sentence(models, first.source), "reference": first.target})
    return {"sentences": sentences, "chart": chart, "trained": WORDS}


@torch.inference_mode()
def alignment_sentence(models: Models, text: str) -> Record:
    """Of each alignment score, two vectors a position whose products (additive: whose tanh, times v) sum to it."""
    scores: Record = {}
    for kind in ("dot", "general", "additive"):
        found, _, _ = translated(models.recurrent(kind), text)
        one = found.equation()
        model = models.recurrent(kind).model
        assert isinstance(model, RecurrentModel)
        assert not isinstance(model.decoder, PlainDecoder)
        score = model.decoder.score
        query = score.query(one.query) if isinstance(score, Concat) else one.query
        scores[kind] = {
            "source": one.seen,
            "target": one.looks,
            "query": plain(query),
            "key": plain(one.key),
            "v": plain(score.v) if isinstance(score, Concat) else None,
            "weights": plain(one.weights),
        }
    return {"text": text, "scores": scores}


def memory_sentence(models: Models, text: str) -> Record:
    """Queries, keys and values of each head of the last layer of the demo that looks at the source."""
    found, _, _ = translated(models.demo, text)
    name = f"decoder.{found.inspected[0].layers[-1]}.cross"
    heads = [found.equation(name, head) for head in range(found.inspected[0].heads[name])]
    return {
        "text": text,
        "name": name,
        "source": heads[0].seen,
        "target": heads[0].looks,
        "heads": [
            {name: plain(term) for name, term in (("query", h.query), ("key", h.key), ("value", h.value))}
            for h in heads
        ],
    }


def masks_sentence(models: Models, text: str) -> Record:
    """Queries and keys of the demo's first decoder layer over a translation and two positions of padding."""
    demo = models.demo
    _, ids, target = translated(demo, text)
    pad = demo.model.pad
    fed = [*target[:-1], pad, pad]
    names = demo.tokenizer.target_pieces([*fed, pad])
    count = demo.heads["decoder.0.self"]
    heads = [
        equation(demo.model, ids, [*fed, pad], "decoder.0.self", h, pieces=(names[:1], names)) for h in range(count)
    ]
    return {
        "text": text,
        "tokens": heads[0].seen,
        "padding": 2,
        "heads": [{"query": plain(h.query), "key": plain(h.key)} for h in heads],
    }


def heads_sentence(models: Models, text: str) -> Record:
    """Every head's weights, and what becomes of the translation's probabilities without that head."""
    found, ids, target = translated(models.demo, text)
    seen = found.inspected[0]
    return {
        "text": text,
        "source": seen.source,
        "target": seen.target,
        "fed": ["<s>", *seen.target[:-1]],
        "maps": {name: plain(weights, 3) for name, weights in seen.maps.items()},
        "probabilities": plain(torch.tensor(seen.log_probs).exp()),
        "without": without_each_head(models.demo.model, ids, target, seen.heads),
    }


@torch.inference_mode()
def without_each_head(model: SequenceModel, source: list[int], target: list[int], heads: dict[str, int]) -> Record:
    """Return the probability of each target token when one head's context is zero, for each map and head."""
    double = deepcopy(model)
    tensors = torch.tensor([source]), torch.tensor([target])
    found: Record = {}
    for name, count in heads.items():
        side, layer, kind = name.split(".")
        attention = double.get_submodule(f"{side}.{layer}.{'self' if kind == 'self' else 'cross'}_attention")
        assert isinstance(attention, MultiHeadAttention)
        weight = attention.output.weight
        whole, width = weight.clone(), weight.size(1) // count
        found[name] = []
        for head in range(count):
            weight[:, head * width : (head + 1) * width] = 0
            found[name].append(plain(forced_pass(double, *tensors, look=False).log_probs[0].exp()))
            weight.copy_(whole)
    return found


def scale(models: Models) -> Record:
    """Random vectors, whose first d numbers are vectors of d dimensions; and the heads of the demo's last layer.

    `slopes` has, for each power of d that scores are divided by, the steepest slope of the softmax for d = 1, 2, 4, ..
    """
    generator = torch.Generator().manual_seed(SEED)
    drawn = torch.randn(KEYS + 1, DIMENSIONS, generator=generator)
    queries = torch.randn(DRAWS, 1, DIMENSIONS, generator=generator, dtype=torch.float64)
    keys = torch.randn(DRAWS, KEYS, DIMENSIONS, generator=generator, dtype=torch.float64)
    sizes = [2**e for e in range(DIMENSIONS.bit_length())]
    scores = (queries * keys).cumsum(-1)[..., [size - 1 for size in sizes]]  # [draws, keys, sizes]
    slopes: Record = {}
    for power in POWERS:
        weights = (scores / torch.tensor(sizes) ** power).softmax(1)
        slopes[f"{power:.2f}"] = plain((weights * (1 - weights)).amax(1).mean(0))
    return {
        "sentences": [memory_sentence(models, text) for text in BOOK],
        "query": plain(drawn[0], 3),
        "keys": plain(drawn[1:], 3),
        "slopes": slopes,
        "draws": DRAWS,
    }


def positions(models: Models) -> Record:
    """The width of the demo, for which its table of positions is shown."""
    return {"width": models.demo.model.options.width}  # type: ignore[union-attr]


def beam_sentence(models: Models, text: str) -> Record:
    """The trees of beam searches with 1 to `BEAMS` hypotheses, and what they find."""
    demo = models.demo
    _, ids, _ = translated(demo, text)
    searches = []
    for width in range(1, BEAMS + 1):
        options = demo.configuration.decoding.model_copy(update={"beam": width, "nbest": 1})
        trace = BeamTrace()
        with torch.inference_mode():
            problem = prepare(demo.model, torch.tensor([ids]), options, demo.torch_engine.word_starts)
            ((best,),) = beam_search(problem, width, 1, trace).best(1)
        trace.finish([*best.tokens, demo.model.eos], demo.tokenizer.target_pieces)
        searches.append(
            {
                "nodes": [
                    [node.parent, trace.name(node.token), round(node.log_prob, 4), FATES.index(node.fate)]
                    for node in trace.nodes
                ],
                "best": trace.best,
                "text": demo.tokenizer.decode(best.tokens),
                "log_probability": round(best.log_probability, 4),
                "score": round(best.score, 4),
            }
        )
    return {"text": text, "searches": searches, "alpha": demo.configuration.decoding.length_penalty}


def beam(models: Models) -> Record:
    """Sentences that greedy search translates worse than a beam, by the model's own opinion, and one of the book."""
    texts = [pair.source for pair in generate(TRIED, split="test", min_words=3, max_words=9)]
    by_greed = models.demo.translate(texts, split=False, beam=1)
    by_beam = models.demo.translate(texts, split=False, beam=BEAMS)
    gains = [
        (wide.nbest[0].hypotheses[0].log_probability - narrow.nbest[0].hypotheses[0].log_probability, wide.source)
        for narrow, wide in zip(by_greed, by_beam, strict=True)
        if narrow.text != wide.text
    ]
    chosen = sorted((text for gain, text in sorted(gains, reverse=True)[:3] if gain > 0), key=len)
    return {"sentences": [beam_sentence(models, text) for text in [*chosen, BOOK[1]]], "differing": len(gains)}


def of_book(sentence: Callable[[Models, str], Record]) -> Callable[[Models], Record]:
    """Return what records a lesson that has only sentences."""
    return lambda models: {"sentences": [sentence(models, text) for text in BOOK]}


SENTENCE: dict[str, Callable[[Models, str], Record]] = {
    "bottleneck": bottleneck_sentence,
    "alignment": alignment_sentence,
    "memory": memory_sentence,
    "masks": masks_sentence,
    "heads": heads_sentence,
    "scale": memory_sentence,
    "beam": beam_sentence,
}
"""What a lesson shows of any sentence; positions need none."""
LESSON: dict[str, Callable[[Models], Record]] = {
    "bottleneck": bottleneck,
    "alignment": of_book(alignment_sentence),
    "memory": of_book(memory_sentence),
    "masks": of_book(masks_sentence),
    "positions": positions,
    "heads": of_book(heads_sentence),
    "scale": scale,
    "beam": beam,
}
"""All figures of each lesson, in order."""


def record_of(models: Models, lesson: Lesson) -> str:
    """Return the figures of a lesson as JSON; of our models they are kept until one of these is trained anew."""
    if not models.has(lesson):
        return recorded(lesson.name)
    file = models.runs / "lessons" / f"{lesson.name}.json"
    newest = max((models.runs / name / "model.safetensors").stat().st_mtime for name in lesson.runs)
    if not file.exists() or file.stat().st_mtime < newest:
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, as_json(LESSON[lesson.name](models)).encode())
    return file.read_text(encoding="utf-8")
