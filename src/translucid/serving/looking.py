"""Our own API: where the model looked, what else it could have said, why it said what it said."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import torch
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from translucid.decoding.continuations import continuations
from translucid.inspection.explain import explain, faithfulness
from translucid.inspection.explain.case import Case
from translucid.inspection.html import viewer_record
from translucid.inspection.plots import draw_beam
from translucid.inspection.plots.saving import rendered
from translucid.inspection.words import word_spans
from translucid.serving import schemas
from translucid.serving.catalogue import Catalogue, Served
from translucid.serving.failures import ApiError
from translucid.serving.guard import Guard
from translucid.serving.incoming import read_fields, text_field
from translucid.serving.options import ServerOptions
from translucid.serving.text import Layout
from translucid.serving.work import awaited
from translucid.translation import Translation

LOOKED = 500
"""Characters of a text that is looked into; maps grow with the square of its length."""
CHOICES = 8
"""Continuations offered."""
TREES = 3
"""Sentences whose beam search is drawn."""
BRANCHES = 4
"""The beam that is drawn."""


@dataclass(frozen=True)
class Looking:
    """The handlers; `routes` binds them to their paths."""

    catalogue: Catalogue
    options: ServerOptions
    guard: Guard
    one_at_a_time: asyncio.Semaphore

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(tags=["looking inside"], responses=schemas.ERRORS)
        routes.get("/models")(self.models)
        routes.post("/look", openapi_extra=schemas.LOOK)(self.look)
        routes.post("/continue", openapi_extra=schemas.CONTINUE)(self.go_on)
        routes.post("/beam", openapi_extra=schemas.BEAM)(self.beam)
        return routes

    async def models(self) -> JSONResponse:
        """List the models by name."""
        rows = [{"name": s.name, "source": s.source, "target": s.target} for s in self.catalogue]
        return JSONResponse(rows)

    async def look(self, request: Request) -> JSONResponse:
        """Translate a text and return, sentence by sentence, where the model looked; and why, if asked."""
        fields, served, text = await self._read(request)
        method = text_field(fields, "explain", "")
        layout = Layout.of(text, served.source)
        if not layout.sentences:
            return JSONResponse({"translation": text, "sentences": []})
        found = await awaited(request, served.batcher.submit(layout.sentences), self.options.seconds)

        def rows() -> list[dict[str, Any]]:
            return [_sentence(served, one, method) for one in found]

        async with self.one_at_a_time:
            sentences = await asyncio.wait_for(asyncio.to_thread(rows), self.options.seconds)
        answer = {"model": served.name, "translation": layout.fill([one.text for one in found]), "sentences": sentences}
        return JSONResponse(answer)

    async def go_on(self, request: Request) -> JSONResponse:
        """Return the likeliest ways to go on after a prefix of the translation, given as token ids."""
        fields, served, text = await self._read(request)
        prefix = fields.get("prefix")
        size = served.translator.tokenizer.target_size
        if not isinstance(prefix, list) or len(prefix) > 4 * LOOKED:
            raise ApiError(400, "Invalid request: prefix is not a list of token ids")
        if not all(isinstance(i, int) and not isinstance(i, bool) and 3 < i < size for i in prefix):
            raise ApiError(400, f"Invalid request: the ids of prefix are not between 4 and {size - 1}")

        def rows() -> list[dict[str, Any]]:
            return _ways(served, text, prefix)

        async with self.one_at_a_time:
            return JSONResponse(await asyncio.wait_for(asyncio.to_thread(rows), self.options.seconds))

    async def beam(self, request: Request) -> JSONResponse:
        """Return the tree of the beam search of each sentence, as pictures in SVG."""
        _, served, text = await self._read(request)
        sentences = Layout.of(text, served.source).sentences[:TREES]

        def trees() -> list[str]:
            return [_tree(served, sentence) for sentence in sentences]

        async with self.one_at_a_time:
            pictures = await asyncio.wait_for(asyncio.to_thread(trees), self.options.seconds)
        return JSONResponse({"trees": pictures})

    async def _read(self, request: Request) -> tuple[dict[str, Any], Served, str]:
        fields = await read_fields(request, self.options)
        self.guard.check(request, fields)
        text = text_field(fields, "q").encode("utf-8", "replace").decode()
        if len(text) > LOOKED:
            raise ApiError(400, f"Invalid request: {len(text)} characters exceed the limit of {LOOKED}")
        name = text_field(fields, "model", "") or None
        served = self.catalogue.find(text_field(fields, "source"), text_field(fields, "target"), name)
        return fields, served, text


def _sentence(served: Served, found: Translation, method: str) -> dict[str, Any]:
    """Return one sentence's words, maps, tokens by word, and explanation."""
    row: dict[str, Any] = {"source_text": found.source, "text": found.text, "pieces": []}
    for one, (_, hypothesis) in zip(found.inspected, found.parts, strict=True):
        spans = word_spans(one.target)
        record = viewer_record(one) if one.layers else {}
        record["tokens"] = [[*hypothesis.tokens, served.translator.model.eos][a:b] for _, a, b in spans]
        row["pieces"].append(record)
    if method and found.text.strip():
        case = Case(served.translator.model, served.translator.tokenizer, found.source, found.text)
        why = explain(case, method, samples=200)
        row["explanation"] = {
            "method": method,
            "source": why.source,
            "target": why.target,
            "importance": [[round(x, 4) for x in line] for line in why.importance.tolist()],
            "fit": [round(x, 3) for x in why.fit],
            "faithfulness": faithfulness(case, why)._asdict(),
            "random": faithfulness(case, explain(case, "random"))._asdict(),
        }
    return row


def _ways(served: Served, text: str, prefix: list[int]) -> list[dict[str, Any]]:
    translator = served.translator
    tokenizer, model = translator.tokenizer, translator.model
    ids = [*tokenizer.encode_source([text])[0], model.eos]
    if model.max_length and max(len(ids), len(prefix) + 2) > model.max_length:
        raise ApiError(400, "Invalid request: the text is too long for this model")
    source = torch.tensor([ids], device=translator.device)
    options = translator.configuration.decoding
    found = continuations(model, source, prefix, CHOICES, options, translator.own.word_starts)
    rows = []
    for hypothesis in found:
        pieces = tokenizer.target_pieces(hypothesis.tokens)
        after = word_spans(pieces[len(prefix) :])
        rows.append(
            {
                "next": after[0][0] if after else "",
                "probability": hypothesis.token_log_probabilities[len(prefix)],
                "text": tokenizer.decode(hypothesis.tokens),
                "tokens": hypothesis.tokens,
            }
        )
    return rows


def _tree(served: Served, sentence: str) -> str:
    translator = served.translator
    return rendered(draw_beam(translator.trace(sentence, BRANCHES)), "svg").decode()
