"""The records that the figures of the lessons on features and on graphs show, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import log
from pathlib import Path
from typing import Any

import torch

from translucid.api.translator import Translator
from translucid.circuits.cards import card_of
from translucid.circuits.contexts import contexts_of
from translucid.circuits.dictionary import Dictionary, FeatureName, sublayers_of
from translucid.circuits.drawing import MIN_SHARE
from translucid.circuits.faithfulness import outcomes
from translucid.circuits.features import TokenFeatures, features_of
from translucid.circuits.graph import ask, attribution_graph
from translucid.circuits.labels import KINDS, Meaning, Meanings, labels_of, mean_f1
from translucid.circuits.saved_graph import view_record
from translucid.circuits.steering import Change, Steering
from translucid.ground.console import Console
from translucid.ground.errors import UserError

SHOWN, CONTEXTS, NODES = 6, 3, 16
"""The numbers of features of each side of a sentence, of contexts of a feature, and of nodes of a graph."""


def is_ready(run: Path) -> bool:
    """Return whether a run folder has a dictionary of its weights."""
    try:
        Dictionary.load(run)
    except UserError:
        return False
    return True


def features_record(translator: Translator, text: str, target: str, factors: Sequence[float]) -> dict[str, Any]:
    """Return features of a sentence and its translation, and the greedy translations when one is scaled.

    They are strong here and rare elsewhere; half of them, and the first, have different labels if so many have one.

    Args:
        translator: a translator with the PyTorch engine, whose run has a dictionary.
        text: the sentence.
        target: its translation.
        factors: by which each feature is scaled.
    """
    dictionary = Dictionary.load(translator.loaded.folder)
    contexts = contexts_of(translator, dictionary, console=Console(quiet=True))
    meanings = Meanings.load(translator.loaded.folder, dictionary)
    labels, k = labels_of(meanings), dictionary.configuration.active
    tokens = features_of(translator, text, target, dictionary=dictionary, strongest=k).tokens

    def described(name: FeatureName) -> dict[str, Any]:
        card = card_of(translator, dictionary, str(name), contexts=contexts, meanings=meanings)
        record = card.to_json()
        record["contexts"] = record["contexts"][:CONTEXTS]
        steered = []
        for factor in factors:
            changed = translator.with_interventions(Steering(dictionary, {str(name): Change(factor=factor)}))
            steered.append(changed.translate(text, beam=1, split=False).text)
        units = _best_units(meanings, card.meaning)
        return {"card": record, "units": units, "neuron": _neuron(translator, dictionary, name), "steered": steered}

    sides = []
    for side in ("source", "target"):
        own = [token for token in tokens if token.side == side]
        values = _values(own)
        rarity = {name: max(row) * log(max(contexts.share(name), 1e-4)) for name, row in values.items()}
        names = sorted(values, key=rarity.__getitem__)
        labeled = {labels[str(name)]: name for name in reversed(names) if str(name) in labels}
        first = sorted(labeled.values(), key=names.index)[: SHOWN // 2]
        chosen = [*first, *(name for name in names if name not in first)][:SHOWN]
        features = [{"values": values[name], **described(name)} for name in chosen]
        sides.append({"side": side, "tokens": [token.token for token in own], "features": features})
    means = {}
    if meanings:
        means = {kind: round(mean_f1(meanings.rows, kind), 3) for kind in ("always", *KINDS)}
    facts = {"active": k, "width": dictionary.width, "factors": [*factors], "means": means}
    return {"text": text, "translation": target, **facts, "sides": sides}


def _values(tokens: Sequence[TokenFeatures]) -> Mapping[FeatureName, list[float]]:
    """Return the values of features at all tokens."""
    values: dict[FeatureName, list[float]] = {}
    for place, token in enumerate(tokens):
        for name, value in chain.from_iterable(token.strongest.values()):
            values.setdefault(name, [0.0] * len(tokens))[place] = round(value, 2)
    return values


def _best_units(meanings: Meanings | None, meaning: Meaning | None) -> dict[str, Any] | None:
    """Return the F1 of the best unit of each kind for what a feature means, among the words that have the label."""
    for row in meanings.rows if meanings and meaning else ():
        if meaning and (row.site, row.label, row.value) == (meaning.site, meaning.label, meaning.value):
            scores = {kind: round(row.units[kind].f1, 2) for kind in KINDS}
            return {"always": round(row.always, 2), **scores, "best": row.units["feature"].name}
    return None


@torch.no_grad()
def _neuron(translator: Translator, dictionary: Dictionary, name: FeatureName) -> dict[str, Any]:
    """Return the neuron that reads the direction most similar to that of a feature, and the cosines of both ends."""
    sublayer, transcoder = sublayers_of(translator.model)[name.sublayer], dictionary.transcoders[name.sublayer]
    reads = torch.cosine_similarity(sublayer.inner.weight.cpu(), transcoder.encoder_weight[name.number][None])
    number = int(reads.argmax())
    written = sublayer.outer.weight[:, number].cpu(), transcoder.decoder_weight[name.number]
    writes = torch.cosine_similarity(*written, dim=0).item()
    return {"number": number, "reads": round(reads[number].item(), 3), "writes": round(writes, 3)}


def circuit_record(translator: Translator, text: str, target: str, word: str | int) -> dict[str, Any]:
    """Return the graph of a word, and what the model writes without each of its features.

    Args:
        translator: as for `features_record`, as are `text` and `target`.
        text: the sentence.
        target: its translation.
        word: a word of the translation, or its position.
    """
    dictionary = Dictionary.load(translator.loaded.folder)
    labels = labels_of(Meanings.load(translator.loaded.folder, dictionary))
    graph = attribution_graph(translator, dictionary.transcoders, text, word, target=target, most=NODES)
    record = view_record(graph, labels)
    record["edges"] = [edge for edge in record["edges"] if edge["share"] >= MIN_SHARE]
    numbers = [i for i, node in enumerate(graph.nodes) if node.part.kind == "feature"]
    question = ask(translator, text, word, target=target).question
    _, results = outcomes(question, dictionary.transcoders, [[graph.nodes[i].part] for i in numbers])
    without = []
    for number, result in zip(numbers, results, strict=True):
        (piece,) = translator.tokenizer.target_pieces([result.piece])
        off = Steering(dictionary, {graph.nodes[number].part.name: Change(value=0)})
        everywhere = translator.with_interventions(off).translate(text, beam=1, split=False).text
        without.append({"node": number, "piece": piece, "logit": round(result.logit, 2), "everywhere": everywhere})
        without[-1]["changed"] = result.changed
    return {"text": text, "translation": target, "graph": record, "without": without}
