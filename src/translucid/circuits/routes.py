"""The API for features and graphs, which the tabs *Features*, *Graph* and *Heads* of the page use."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fastapi.responses import Response

from translucid.api.translator import Translator
from translucid.circuits.cards import card_of
from translucid.circuits.contexts import FILE as CONTEXTS
from translucid.circuits.contexts import Contexts
from translucid.circuits.dictionary import Dictionary
from translucid.circuits.faithfulness import outcomes
from translucid.circuits.features import features_of
from translucid.circuits.fields import AblateFields, CardFields, FeaturesFields, GraphFields, ScoreFields, SteerFields
from translucid.circuits.graph import WordQuestion, ask, attribution_graph
from translucid.circuits.graph_view import figures
from translucid.circuits.kinds import FILE as DICTIONARY
from translucid.circuits.kinds import has_dictionary
from translucid.circuits.labels import FILE as MEANINGS
from translucid.circuits.labels import Meanings, labels_of
from translucid.circuits.nodes import Node
from translucid.circuits.saved_graph import view_record
from translucid.circuits.scores import head_score
from translucid.circuits.steering import Steering, parse_changes
from translucid.ground.errors import UserError
from translucid.runs.run_folder import CIRCUITS
from translucid.serving.catalog import ServedPivot
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.rendering import rendered
from translucid.serving.requests import Call, Handlers
from translucid.serving.routes.inspection import find_model
from translucid.serving.routes.inspection_fields import SentenceFields


class CircuitRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def _answer(self, call: Call[Any], answer: Callable[[Translator, Known], dict[str, Any]]) -> Response:
        """Answer a request about a sentence, by its model and what is known of its features."""
        fields: SentenceFields = call.fields
        translator = find_model(self.context, fields).translator
        return await call.task.run(lambda: rendered(answer(translator, known_of(translator))))

    async def features(self, call: Call[FeaturesFields]) -> Response:
        """Return the strongest features of each token of a sentence and its translation."""
        fields = call.fields

        def answer(translator: Translator, known: Known) -> dict[str, Any]:
            result = features_of(translator, fields.q, fields.translation, dictionary=known.dictionary)
            tokens = [token.to_json() for token in result.tokens]
            for token in tokens:
                for active in chain.from_iterable(token["features"].values()):
                    if label := known.labels.get(active["feature"]):
                        active["label"] = label
            return {"sublayers": known.dictionary.sublayers, "tokens": tokens}

        return await self._answer(call, answer)

    async def card(self, call: Call[CardFields]) -> Response:
        """Return what is known of a feature."""
        fields = call.fields
        served = self.context.catalog.find(fields.source, fields.target, fields.model or None)
        if isinstance(served, ServedPivot):
            raise ApiError(400, "Invalid request: features are those of one model")
        translator = served.translator

        def answer() -> Response:
            known = known_of(translator)
            if known.contexts is None:
                what = "there are no contexts of this dictionary yet; show a card on the command line first"
                raise ApiError(400, f"Invalid request: {what}")
            dictionary, contexts, meanings = known
            card = card_of(translator, dictionary, fields.feature, contexts=contexts, meanings=meanings)
            return rendered(card.to_json())

        return await call.task.run(answer)

    async def steer(self, call: Call[SteerFields]) -> Response:
        """Translate a sentence with changed features."""
        fields = call.fields
        call.task.count(find_model(self.context, fields), [fields.q])

        def answer(translator: Translator, known: Known) -> dict[str, Any]:
            steering = Steering(known.dictionary, parse_changes(known.dictionary, fields.features))
            return {"text": translator.with_interventions(steering).translate(fields.q, split=False).text}

        return await self._answer(call, answer)

    async def graph(self, call: Call[GraphFields]) -> Response:
        """Return the attribution graph of a word of a translation, with its picture."""
        fields = call.fields

        def answer(translator: Translator, known: Known) -> dict[str, Any]:
            graph = attribution_graph(
                translator,
                known.dictionary.transcoders,
                fields.q,
                fields.word,
                instead_of=fields.instead_of or None,
                target=fields.translation,
            )
            return {**view_record(graph, known.labels), "figures": figures(graph)}

        return await self._answer(call, answer)

    async def ablate(self, call: Call[AblateFields]) -> Response:
        """Return what the model writes in place of a word without some features, each at one position."""
        fields = call.fields

        def answer(translator: Translator, known: Known) -> dict[str, Any]:
            asked = ask(translator, fields.q, fields.word, fields.instead_of or None, fields.translation)
            nodes = [_node(text, known.dictionary, asked) for text in fields.features]
            logit, (outcome,) = outcomes(asked.question, known.dictionary.transcoders, [nodes])
            (piece,) = translator.tokenizer.target_pieces([outcome.piece])
            figures = {"logit": round(logit, 4), "without": round(outcome.logit, 4)}
            return {"changed": outcome.changed, "word": asked.word, "piece": piece, **figures}

        return await self._answer(call, answer)

    async def score(self, call: Call[ScoreFields]) -> Response:
        """Return why a head looks from a word to another."""
        fields = call.fields

        def answer(translator: Translator, known: Known) -> dict[str, Any]:
            asked = fields.head, fields.query, fields.key
            score = head_score(translator, known.dictionary.transcoders, fields.q, *asked, target=fields.translation)
            parts = chain.from_iterable((pair.query, pair.key) for pair in score.pairs)
            names = known.labels.keys() & {part.partition(" @ ")[0] for part in parts}
            return {**score.to_json(), "labels": {name: known.labels[name] for name in sorted(names)}}

        return await self._answer(call, answer)


class Known(NamedTuple):
    """What is known of the features of a run."""

    dictionary: Dictionary
    contexts: Contexts | None
    meanings: Meanings | None

    @property
    def labels(self) -> dict[str, str]:
        """The labels of features by their names."""
        return labels_of(self.meanings)


def known_of(translator: Translator) -> Known:
    """Return what is known of the features of a translator's run; its files are read once.

    Raises:
        ApiError: 400, there is no dictionary.
    """
    run = translator.loaded.folder.path
    if not has_dictionary(run):
        raise ApiError(400, "Invalid request: this model has no dictionary of features")
    files = [run / CIRCUITS / name for name in (DICTIONARY, CONTEXTS, MEANINGS)]
    changed = tuple(file.stat().st_mtime_ns for file in files if file.exists())
    return _read(run, changed, translator.device)


@lru_cache(maxsize=8)
def _read(run: Path, changed: tuple[int, ...], device: torch.device) -> Known:
    dictionary = Dictionary.load(run)
    contexts, meanings = Contexts.load(run, dictionary), Meanings.load(run, dictionary)
    return Known(dictionary.to(device), contexts, meanings)


def _node(text: str, dictionary: Dictionary, asked: WordQuestion) -> Node:
    """Return a feature at a position, such as `decoder.1.feature.412 @ 3`.

    Raises:
        UserError: there is no such feature or position.
    """
    match = re.fullmatch(r"(.+?) ?@ ?(\d{1,4})", text, re.ASCII)
    feature = dictionary.parse_feature(match[1] if match else text)
    tokens = asked.source if feature.sublayer.startswith("encoder") else asked.prefix
    if match is None or int(match[2]) >= len(tokens):
        raise UserError(f"{text!r} has no position", fix=f"Give {feature} @ N, N from 0 to {len(tokens) - 1}.")
    return Node("feature", feature.sublayer, int(match[2]), feature.number)
