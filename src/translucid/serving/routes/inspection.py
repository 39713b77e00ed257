"""Our own API: where the model looked, what else it could have said, why it said what it said."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from translucid.api.translation import Translation
from translucid.decoding.continuations import continuations
from translucid.decoding.limits import length_limit
from translucid.ground.errors import UserError
from translucid.inspection.explain.case import Case
from translucid.inspection.explain.faithfulness import why_record
from translucid.inspection.inspected import Inspected
from translucid.inspection.records import SIDES, beam_record, viewer_record
from translucid.inspection.words import word_spans
from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import method_field, text_field
from translucid.serving.edge.rendering import rendered
from translucid.serving.language_pairs import Served
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.queue.request_task import RequestTask
from translucid.serving.routes.detection import detect
from translucid.serving.texts import begin, origin_of, split_texts

LOOKED = 500
"""Characters of a text that is looked into; maps grow with the square of its length."""
CHOICES = 8
"""Continuations offered."""
TREES = 3
"""Sentences whose beam search is told of."""
WIDEST = 6
"""The largest beam of theirs."""


@dataclass(frozen=True)
class InspectionRoutes:
    """The handlers; `routes` binds them to their paths."""

    context: RequestContext

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(tags=["looking inside"], responses=schemas.ERRORS)
        routes.get("/models")(self.models)
        routes.get("/examples")(self.examples)
        routes.post("/look", openapi_extra=schemas.LOOK)(self.look)
        routes.post("/continue", openapi_extra=schemas.CONTINUE)(self.go_on)
        routes.post("/beam", openapi_extra=schemas.BEAM)(self.beam)
        return routes

    async def models(self) -> JSONResponse:
        """List the models by name."""
        catalogue = self.context.catalogue
        rows: list[dict[str, Any]] = [
            {"name": one.name, "reads": "text", "sources": list(one.sources), "targets": list(one.targets)}
            for one in catalogue
        ]
        rows += [{"name": served.name, "reads": "images"} for served in catalogue.captioners]
        rows += [{"name": served.name, "reads": "texts"} for served in catalogue.classifiers]
        rows += [{"name": served.name, "reads": "prompts"} for served in catalogue.generators]
        return JSONResponse(rows)

    async def examples(self) -> JSONResponse:
        """List sentences to try each translator with, by its name, in the first of its source languages."""
        return JSONResponse({one.name: list(one.examples) for one in self.context.catalogue})

    async def look(self, request: Request) -> Response:
        """Translate a text and return, sentence by sentence, where the model looked; and why, if asked."""
        fields, task, served, text, detected = await read_text(self.context, request, detect_source=True)
        method = method_field(fields, "explain")
        wanted = text_field(fields, "maps", "cross")
        if wanted not in ("cross", "all"):
            raise ApiError(400, "Invalid request: maps is neither cross nor all")
        sides = SIDES if wanted == "all" else ()
        about: dict[str, Any] = {"model": served.name, "source": served.source, "target": served.target}
        if detected:
            about["detectedLanguage"] = {"language": served.source, "confidence": round(detected.confidence, 1)}
        (layout,), known = await split_texts(self.context, served, [text])
        if not layout.sentences:
            return JSONResponse(about | {"translation": text, "sentences": []})
        given = _given(fields, len(layout.sentences))
        found: list[Translation] = []
        if given is None and (asked := [sentence for sentence in layout.sentences if sentence not in known]):
            found = await task.result(request, begin(self.context, task, served, asked))

        def rows() -> list[dict[str, Any]]:
            if given is not None:
                pairs = zip(layout.sentences, given, strict=True)
                return [
                    _forced(served, source, target, method, sides) | _origin(known.get(source) == target)
                    for source, target in pairs
                ]
            translations = iter(found)
            return [
                _remembered(served, source, known[source], method, sides)
                if source in known
                else _sentence(served, next(translations), method, sides)
                for source in layout.sentences
            ]

        def answer() -> Response:
            sentences = rows()
            translation = layout.fill([sentence["text"] for sentence in sentences])
            return rendered(about | {"translation": translation, "sentences": sentences})

        return await task.result(request, self.context.worker_pool.submit(task, answer))

    async def go_on(self, request: Request) -> JSONResponse:
        """Return the likeliest ways to go on after a prefix of the translation, given as token ids."""
        fields, task, served, text, _ = await read_text(self.context, request)
        prefix = fields.get("prefix")
        size = served.translator.tokenizer.target_size
        if not isinstance(prefix, list):
            raise ApiError(400, "Invalid request: prefix is not a list of token ids")
        if not all(isinstance(i, int) and not isinstance(i, bool) and 3 < i < size for i in prefix):
            raise ApiError(400, f"Invalid request: the ids of prefix are not between 4 and {size - 1}")

        def rows() -> list[dict[str, Any]]:
            return _ways(served, text, prefix)

        return JSONResponse(await task.result(request, self.context.worker_pool.submit(task, rows)))

    async def beam(self, request: Request) -> Response:
        """Return the tree of the beam search of each of the first sentences."""
        _fields, task, served, text, _ = await read_text(self.context, request)
        (layout,), _ = await split_texts(self.context, served, [text])
        sentences = layout.sentences[:TREES]

        def answer() -> Response:
            return rendered({"trees": [_tree(served, sentence) for sentence in sentences]})

        return await task.result(request, self.context.worker_pool.submit(task, answer))


class Detected(NamedTuple):
    """A source language that was found out."""

    language: str
    confidence: float
    """Percent; 0 where nothing is known."""


class Asked(NamedTuple):
    """What a request gives, and the text `q` that is to be looked into, by which model."""

    fields: dict[str, Any]
    task: RequestTask
    served: Served
    text: str
    detected: Detected | None = None


async def read_text(context: RequestContext, request: Request, *, detect_source: bool = False) -> Asked:
    """Read a request to look into a text.

    Args:
        context: where it comes in.
        request: with `q`, `source`, `target` and perhaps `model`.
        detect_source: whether the source may be `auto`.

    Raises:
        ApiError: 400, the text is too long, or there is no such model.
    """
    fields, task = await context.fields(request)
    text = text_field(fields, "q")
    if len(text) > LOOKED:
        raise ApiError(400, f"Invalid request: {len(text)} characters exceed the limit of {LOOKED}")
    source, target = text_field(fields, "source"), text_field(fields, "target")
    name = text_field(fields, "model", "") or None
    if not detect_source or source != "auto":
        return Asked(fields, task, context.catalogue.find(source, target, name), text)
    found = await _detect(context, text, target, name)
    return Asked(fields, task, found[1], text, found[0])


async def _detect(context: RequestContext, text: str, target: str, name: str | None) -> tuple[Detected, Served]:
    """Find out the language of a text, and a model that translates from it: to `target` and by `name` if that goes."""
    context.catalogue.need_translators()
    sources = {code for offered in context.catalogue for code in offered.sources}
    ranked = await run_in_threadpool(detect, text, context.catalogue.languages)
    likely = (Detected(code, confidence) for code, confidence in ranked if code in sources and confidence > 0)
    detected = next(likely, None) or Detected(next(iter(next(iter(context.catalogue)).sources)), 0.0)
    targets = [code for code in context.catalogue.targets(detected.language) if code != detected.language]
    into = target if target in targets or not targets else targets[0]
    try:
        return detected, context.catalogue.find(detected.language, into, name)
    except ApiError:  # the model that is named does not have this pair
        return detected, context.catalogue.find(detected.language, into)


def _given(fields: dict[str, Any], sentences: int) -> list[str] | None:
    """Return the translations to look at, one for each sentence, if any are given.

    Raises:
        ApiError: 400, they are something else.
    """
    given = fields.get("translations")
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(text, str) and text.strip() for text in given):
        raise ApiError(400, "Invalid request: translations is not a list of texts")
    if len(given) != sentences or sum(map(len, given)) > 2 * LOOKED:
        raise ApiError(400, f"Invalid request: translations are not {sentences} texts of up to {2 * LOOKED} characters")
    return given


def _sentence(served: Served, found: Translation, method: str, sides: Sequence[str]) -> dict[str, Any]:
    """Return one sentence's words, maps, tokens by word, warnings, how sure it is if known, and explanation."""
    parts = zip(found.inspected, found.parts, strict=True)
    pieces = [_piece(served, one, hypothesis.tokens, sides) for one, (_, hypothesis) in parts]
    row: dict[str, Any] = {"source_text": found.source, "text": found.text, "pieces": pieces}
    row["warnings"] = [*found.warnings, *found.attention_warnings]
    row["confidence"] = found.confidence if served.translator.estimator else None
    row |= _origin(from_memory=False)
    return row | _why(served, found.source, found.text if found.parts else "", method)


def _forced(served: Served, source: str, target: str, method: str, sides: Sequence[str]) -> dict[str, Any]:
    """Return the same for a translation that was given."""
    translator = served.translator
    (pair,) = translator.pipeline.pairs([(source, target)])
    (one,) = translator.inspect_encoded([pair])
    pieces = [_piece(served, one, pair.target[:-1], sides)]
    row: dict[str, Any] = {"source_text": source, "text": target, "pieces": pieces}
    row |= {"warnings": [], "confidence": None}
    return row | _why(served, source, target, method)


def _remembered(served: Served, source: str, target: str, method: str, sides: Sequence[str]) -> dict[str, Any]:
    """Return the same for a translation from the memory; of one that is too long for the model, the text alone."""
    row: dict[str, Any] = {"source_text": source, "text": target, "pieces": [], "warnings": [], "confidence": None}
    if len(target) <= 2 * LOOKED:
        with suppress(UserError):
            row = _forced(served, source, target, method, sides)
    return row | _origin(from_memory=True)


def _origin(from_memory: bool) -> dict[str, Any]:
    return {"origin": origin_of([from_memory])}


def _piece(served: Served, one: Inspected, tokens: Sequence[int], sides: Sequence[str]) -> dict[str, Any]:
    record = viewer_record(one, sides=sides) if one.layers else {}
    ids = [*tokens, served.translator.model.eos]
    record["tokens"] = [ids[first:after] for _, first, after in one.target_spans]
    return record


def _why(served: Served, source: str, target: str, method: str) -> dict[str, Any]:
    """Return the explanation of a sentence, if one is wanted."""
    if not method or not target.strip():
        return {}
    case = Case(served.translator.model, served.translator.pipeline, source, target)
    return {"explanation": why_record(case, method)}


def _ways(served: Served, text: str, prefix: list[int]) -> list[dict[str, Any]]:
    translator = served.translator
    tokenizer, model = translator.tokenizer, translator.model
    piece = translator.pipeline.encode(text)
    ids = piece.ids
    if model.max_length and len(ids) > model.max_length:
        raise ApiError(400, "Invalid request: the text is too long for this model")
    options, told = translator.configuration.decoding, len(tokenizer.target_opening)
    prefix = [*tokenizer.target_opening, *prefix]
    if len(prefix) > length_limit(len(ids) - 1, options, model.max_length):
        raise ApiError(400, "Invalid request: prefix is longer than a translation of this text may be")
    source = torch.tensor([ids], device=translator.device)
    found = continuations(model, source, prefix, CHOICES, options, translator.torch_engine.word_starts, told)
    rows = []
    for hypothesis in found:
        pieces = piece.masked.unmask_pieces(tokenizer.target_pieces(hypothesis.tokens))
        after = word_spans(pieces[len(prefix) :])
        rows.append(
            {
                "next": after[0][0] if after else "",
                "probability": hypothesis.token_log_probabilities[len(prefix)],
                "text": translator.pipeline.text(piece, hypothesis.tokens),
                "tokens": hypothesis.tokens[told:],
            }
        )
    return rows


def _tree(served: Served, sentence: str) -> dict[str, Any]:
    translator = served.translator
    options = translator.configuration.decoding
    beam = min(options.beam, WIDEST)
    record = beam_record(translator.trace(sentence, beam), beam, translator.tokenizer, options.length_penalty)
    return record | {"own": options.beam}
