"""The glossary routes of DeepL's API, version 2: glossaries of one language pair."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import text_field
from translucid.serving.routes.deepl import DeepL
from translucid.serving.routes.glossaries import Dictionary, Glossary, read_entries

TSV = "text/tab-separated-values"
NAME = 200
"""The most characters of a glossary's name."""


@dataclass(frozen=True)
class DeepLGlossaries:
    """The handlers; `routes` binds them to their paths."""

    deepl: DeepL

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(prefix="/v2", tags=["DeepL's API"], responses=schemas.DEEPL_ERRORS)
        routes.get("/glossary-language-pairs")(self.pairs)
        routes.post("/glossaries", status_code=201)(self.create)
        routes.get("/glossaries")(self.every)
        routes.get("/glossaries/{glossary_id}")(self.one)
        routes.get("/glossaries/{glossary_id}/entries")(self.entries)
        routes.delete("/glossaries/{glossary_id}", status_code=204)(self.delete)
        return routes

    async def pairs(self, request: Request) -> JSONResponse:
        """List the language pairs for glossaries."""
        await self.deepl.fields(request)
        pairs: set[tuple[str, str]] = set()
        for served in self.deepl.context.catalogue:
            for source, target in product(served.sources, served.targets):
                if source != target:
                    pairs.add((source.lower(), target.lower()))
        rows = [{"source_lang": source, "target_lang": target} for source, target in sorted(pairs)]
        return JSONResponse({"supported_languages": rows})

    async def create(self, request: Request) -> JSONResponse:
        """Create a glossary."""
        fields, task = await self.deepl.fields(request)
        glossary = Glossary(task.client, name_field(fields), (dictionary_of(self.deepl, fields),))
        self.deepl.glossaries.add(glossary)
        return JSONResponse(glossary.monolingual_information, 201)

    async def every(self, request: Request) -> JSONResponse:
        """List the glossaries of this client."""
        _, task = await self.deepl.fields(request)
        rows = []
        for glossary in self.deepl.glossaries.of(task.client):
            if len(glossary.dictionaries) == 1:  # this version of the API can't describe others
                rows.append(glossary.monolingual_information)
        return JSONResponse({"glossaries": rows})

    async def one(self, request: Request, glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        return JSONResponse((await self._find(request, glossary_id)).monolingual_information)

    async def entries(self, request: Request, glossary_id: str) -> Response:
        """Return the entries of a glossary, a term and its translation a line."""
        glossary = await self._find(request, glossary_id)
        return Response(glossary.dictionaries[0].tsv, media_type=TSV)

    async def delete(self, request: Request, glossary_id: str) -> Response:
        """Delete a glossary."""
        _, task = await self.deepl.fields(request)
        self.deepl.glossaries.delete(task.client, glossary_id)
        return Response(status_code=204)

    async def _find(self, request: Request, glossary_id: str) -> Glossary:
        _, task = await self.deepl.fields(request)
        glossary = self.deepl.glossaries.find(task.client, glossary_id)
        if len(glossary.dictionaries) != 1:
            raise ApiError(400, "The glossary is of several pairs of languages; ask for it under /v3/glossaries.")
        return glossary


def name_field(fields: dict[str, Any]) -> str:
    """Return the name of a glossary in a request.

    Raises:
        ApiError: 400, the name is missing or too long.
    """
    name = text_field(fields, "name")
    if not name or len(name) > NAME:
        raise ApiError(400, f"Invalid request: name has between 1 and {NAME} characters")
    return name


def dictionary_of(deepl: DeepL, fields: dict[str, Any]) -> Dictionary:
    """Return the dictionary in the fields of a request.

    Raises:
        ApiError: 400, a field is missing or invalid.
    """
    source, target = deepl.pair({**fields, "source_lang": text_field(fields, "source_lang")})
    entries = read_entries(text_field(fields, "entries"), text_field(fields, "entries_format"))
    return Dictionary(source or "", target, entries)
