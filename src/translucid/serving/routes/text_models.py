"""HTTP routes of text models: classification, its explanation, and text continuation by a language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from translucid.api.text_classifier import Judge
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.inspection.explain import explain, faithfulness, methods_here, random_faithfulness
from translucid.inspection.explain.label_case import LabelCase
from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import number_field, text_field
from translucid.serving.queue.request_context import RequestContext

if TYPE_CHECKING:
    from translucid.api.generation import Generated
    from translucid.decoding.decoding_options import DecodingOptions

LONGEST = 5000
"""Characters of a text that is classified or continued."""
EXPLAINED = 2000
"""Characters of a text whose label is explained; each word of it is left out once."""
WRITTEN = 200
"""Tokens that are written at most."""
CONSIDERED = 8
"""Pieces that are told of at each step."""


@dataclass(frozen=True)
class TextModelRoutes:
    """The handlers; `routes` binds them to their paths."""

    context: RequestContext

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(tags=["texts"], responses=schemas.ERRORS)
        routes.post("/classify", openapi_extra=schemas.CLASSIFY)(self.classify)
        routes.post("/generate", openapi_extra=schemas.GENERATE)(self.generate)
        return routes

    async def classify(self, request: Request) -> JSONResponse:
        """Say what a text is, how that moved as it was read, and which words decided, if asked."""
        fields, task = await self.context.fields(request)
        served = self.context.catalogue.classifier(text_field(fields, "model", "") or None)
        text, method, label = _text(fields, LONGEST), text_field(fields, "explain", ""), text_field(fields, "label", "")
        if not text.strip():
            raise ApiError(400, "Invalid request: there are no words to classify")
        if label and label not in served.model.labels:
            raise ApiError(400, f"Invalid request: there is no label {label[:50]!r}")
        if method and (method not in methods_here() or method == "attention"):
            raise ApiError(400, f"Invalid request: there is no explanation by {method[:20]!r} here")
        if method and len(text) > EXPLAINED:
            raise ApiError(400, f"Invalid request: {len(text)} characters exceed the limit of {EXPLAINED} for explain")

        def answer() -> dict[str, Any]:
            found, judge = served.model.classify(text), served.model.judges[0]
            between_steps()
            told = {name: round(value, 6) for name, value in found.probabilities.items()}
            row = {"label": found.label, "probabilities": told}
            return row | _words(judge, text, label or found.label, method)

        return JSONResponse(
            {"model": served.name, **await task.result(request, self.context.worker_pool.submit(task, answer))}
        )

    async def generate(self, request: Request) -> JSONResponse:
        """Go on with a text, and tell of each piece how likely it was and what else was considered."""
        fields, task = await self.context.fields(request)
        served = self.context.catalogue.generator(text_field(fields, "model", "") or None)
        prompt, options = _text(fields, LONGEST, ""), _writing(fields, served.model.configuration.decoding)
        most = number_field(fields, "max_tokens", 50, WRITTEN, least=1)
        considered = number_field(fields, "considered", 0, CONSIDERED)

        def answer() -> dict[str, Any]:
            found = served.model.generate(prompt, options, max_tokens=most)
            between_steps()
            told = {"text": found.text, "ended": found.nbest[0].ended, "backwards": found.backwards}
            return {**told, "pieces": _pieces(found, considered)}

        return JSONResponse(
            {"model": served.name, **await task.result(request, self.context.worker_pool.submit(task, answer))}
        )


def _text(fields: dict[str, Any], most: int, default: str | None = None) -> str:
    text = text_field(fields, "q", default)
    if len(text) > most:
        raise ApiError(400, f"Invalid request: {len(text)} characters exceed the limit of {most}")
    return text


def _words(judge: Judge, text: str, label: str, method: str) -> dict[str, Any]:
    """Return each word with the label's probability when it had been read, and what it does for the label."""
    (ids,) = judge.ids([text])
    try:
        case = LabelCase(judge.model, judge.tokenizer, ids, label, text)
    except UserError:  # nothing that the tokenizer keeps
        return {"words": []}
    after = [round(value, 5) for value in case.unfolding().tolist()]
    rows: list[dict[str, Any]] = [
        {"word": word, "probability": value} for word, value in zip(case.source_words, after, strict=True)
    ]
    if not method:
        return {"words": rows}
    why = explain(case, method, samples=200)
    for row, value in zip(rows, why.importance[0].tolist(), strict=True):
        row["importance"] = round(value, 4)
    scores = {"faithfulness": faithfulness(case, why), "random": random_faithfulness(case)}
    told = {name: score._asdict() for name, score in scores.items()}
    return {"words": rows, "explanation": {"method": method, "label": label, "fit": why.fit, **told}}


def _writing(fields: dict[str, Any], own: DecodingOptions) -> DecodingOptions:
    """Return how to write: as the run does, but for what is given.

    Raises:
        ApiError: 400, a value is wrong.
    """
    from translucid.api.generator import writing

    given: dict[str, Any] = {}
    for name in ("temperature", "top_p"):
        if name in fields:
            try:
                given[name] = float(fields[name])
            except (TypeError, ValueError) as error:
                raise ApiError(400, f"Invalid request: {name} is not a number") from error
    for name, most in (("top_k", 1_000_000), ("seed", 2**31), ("beam", 10)):
        if name in fields:
            given[name] = number_field(fields, name, 0, most)
    try:
        return writing(own.model_copy(update={"nbest": 1}), given)
    except UserError as error:
        raise ApiError(400, f"Invalid request: {error}") from error


def _pieces(found: Generated, considered: int) -> list[dict[str, Any]]:
    written = found.nbest[0].written
    rows = [{"piece": piece.text, "probability": _probability(piece.log_probability)} for piece in written]
    if not considered:
        return rows
    others: Sequence[Any] = found.considered(considered)
    return [
        {**row, "considered": [{"piece": one.text, "probability": _probability(one.log_probability)} for one in step]}
        for row, step in zip(rows, others, strict=True)
    ]


def _probability(log_probability: float) -> float:
    return round(min(1.0, math.exp(log_probability)), 6)
