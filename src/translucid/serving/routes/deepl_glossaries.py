"""The glossary routes of DeepL's API: version 2, glossaries of one language pair, and version 3, of several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import text_field
from translucid.serving.routes.deepl import DeepL
from translucid.serving.routes.glossaries import (
    DICTIONARIES,
    TOO_LARGE,
    Dictionary,
    Glossary,
    check_size,
    read_entries,
)

TSV = "text/tab-separated-values"
NAME = 200
"""The maximum number of characters in a glossary's name."""


@dataclass(frozen=True)
class _AllGlossaries:
    """The handlers of both versions."""

    deepl: DeepL

    async def delete(self, request: Request, glossary_id: str) -> Response:
        """Delete a glossary."""
        _, task = await self.deepl.fields(request)
        self.deepl.glossaries.delete(task.client, glossary_id)
        return Response(status_code=204)


class DeepLGlossaries(_AllGlossaries):
    """The handlers of version 2; `routing.py` binds them to their paths."""

    async def pairs(self, request: Request) -> JSONResponse:
        """List the language pairs for glossaries."""
        await self.deepl.fields(request)
        pairs: set[tuple[str, str]] = set()
        for served in self.deepl.context.catalog.models:
            for source, target in product(served.sources, served.targets):
                if source != target:
                    pairs.add((source.lower(), target.lower()))
        rows = [{"source_lang": source, "target_lang": target} for source, target in sorted(pairs)]
        return JSONResponse({"supported_languages": rows})

    async def create(self, request: Request) -> JSONResponse:
        """Create a glossary."""
        fields, task = await self.deepl.fields(request)
        glossary = Glossary(task.client, _name_field(fields), (_dictionary_of(self.deepl, fields),))
        self.deepl.glossaries.add(glossary)
        return JSONResponse(glossary.monolingual_information, 201)

    async def list_all(self, request: Request) -> JSONResponse:
        """List the glossaries of this client."""
        _, task = await self.deepl.fields(request)
        rows = []
        for glossary in self.deepl.glossaries.of(task.client):
            if len(glossary.dictionaries) == 1:  # this version of the API can't describe others
                rows.append(glossary.monolingual_information)
        return JSONResponse({"glossaries": rows})

    async def describe(self, request: Request, glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        return JSONResponse((await self._find(request, glossary_id)).monolingual_information)

    async def entries(self, request: Request, glossary_id: str) -> Response:
        """Return the entries of a glossary, a term and its translation a line."""
        glossary = await self._find(request, glossary_id)
        return Response(glossary.dictionaries[0].tsv, media_type=TSV)

    async def _find(self, request: Request, glossary_id: str) -> Glossary:
        _, task = await self.deepl.fields(request)
        glossary = self.deepl.glossaries.find(task.client, glossary_id)
        if len(glossary.dictionaries) != 1:
            raise ApiError(400, "The glossary is of several pairs of languages; ask for it under /v3/glossaries.")
        return glossary


class DeepLMultilingualGlossaries(_AllGlossaries):
    """The handlers of version 3, whose glossaries can be edited; `routing.py` binds them to their paths."""

    async def create(self, request: Request) -> JSONResponse:
        """Create a glossary of one dictionary or several."""
        fields, task = await self.deepl.fields(request)
        name, dictionaries = _name_field(fields), self._dictionaries(fields)
        if not dictionaries:
            raise ApiError(400, "Invalid request: missing dictionaries parameter")
        glossary = Glossary(task.client, name, ())
        for dictionary in dictionaries:
            if glossary.find(dictionary.source, dictionary.target):
                raise ApiError(400, "Invalid request: two of the dictionaries are for the same languages")
            glossary = glossary.with_dictionary(dictionary)
        check_size(glossary)
        self.deepl.glossaries.add(glossary)
        return JSONResponse(glossary.information, 201)

    async def list_all(self, request: Request) -> JSONResponse:
        """List the glossaries of this client."""
        _, task = await self.deepl.fields(request)
        glossaries = self.deepl.glossaries.of(task.client)
        return JSONResponse({"glossaries": [glossary.information for glossary in glossaries]})

    async def describe(self, request: Request, glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        _, task = await self.deepl.fields(request)
        return JSONResponse(self.deepl.glossaries.find(task.client, glossary_id).information)

    async def edit(self, request: Request, glossary_id: str) -> JSONResponse:
        """Rename a glossary, or add entries to its dictionaries."""
        fields, task = await self.deepl.fields(request)
        name = None
        if fields.get("name") is not None:
            name = _name_field(fields)
        dictionaries = self._dictionaries(fields)

        def edited(glossary: Glossary) -> Glossary:
            for dictionary in dictionaries:
                if existing := glossary.find(dictionary.source, dictionary.target):
                    dictionary = replace(dictionary, entries={**existing.entries, **dictionary.entries})
                glossary = glossary.with_dictionary(dictionary)
            if name:
                glossary = replace(glossary, name=name)
            return glossary

        return JSONResponse(self.deepl.glossaries.change(task.client, glossary_id, edited).information)

    async def entries(self, request: Request, glossary_id: str) -> JSONResponse:
        """Return the entries for two languages."""
        fields, task = await self.deepl.fields(request)
        dictionary = _dictionary(self.deepl.glossaries.find(task.client, glossary_id), fields)
        row = dictionary.information
        del row["entry_count"]
        return JSONResponse({"dictionaries": [{**row, "entries": dictionary.tsv, "entries_format": "tsv"}]})

    async def replace(self, request: Request, glossary_id: str) -> JSONResponse:
        """Add a dictionary, or replace the one for the same languages."""
        fields, task = await self.deepl.fields(request)
        dictionary = _dictionary_of(self.deepl, fields)
        self.deepl.glossaries.change(task.client, glossary_id, lambda glossary: glossary.with_dictionary(dictionary))
        return JSONResponse(dictionary.information)

    async def delete_dictionary(self, request: Request, glossary_id: str) -> Response:
        """Delete the dictionary for two languages."""
        fields, task = await self.deepl.fields(request)

        def shortened(glossary: Glossary) -> Glossary:
            dictionary = _dictionary(glossary, fields)
            return glossary.without_dictionary(dictionary.source, dictionary.target)

        self.deepl.glossaries.change(task.client, glossary_id, shortened)
        return Response(status_code=204)

    def _dictionaries(self, fields: dict[str, Any]) -> list[Dictionary]:
        """Return the dictionaries in the fields of a request.

        Raises:
            ApiError: 400, a field is missing or invalid, or there are too many dictionaries.
        """
        records = fields.get("dictionaries") or []
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise ApiError(400, "Invalid request: dictionaries is not a list of objects")
        if len(records) > DICTIONARIES:  # comparing the languages of each with all others takes time
            raise ApiError(400, TOO_LARGE)
        return [_dictionary_of(self.deepl, record) for record in records]


def _name_field(fields: dict[str, Any]) -> str:
    """Return the name of a glossary in a request.

    Raises:
        ApiError: 400, the name is missing or too long.
    """
    name = text_field(fields, "name")
    if not name or len(name) > NAME:
        raise ApiError(400, f"Invalid request: name has between 1 and {NAME} characters")
    return name


def _dictionary_of(deepl: DeepL, fields: dict[str, Any]) -> Dictionary:
    """Return the dictionary in the fields of a request.

    Raises:
        ApiError: 400, a field is missing or invalid.
    """
    source, target = deepl.pair({**fields, "source_lang": text_field(fields, "source_lang")})
    if source and not deepl.context.catalog.is_direct(source, target):
        raise ApiError(400, f"No model translates {source} to {target} directly, as a glossary requires.")
    entries = read_entries(text_field(fields, "entries"), text_field(fields, "entries_format"))
    return Dictionary(source or "", target, entries)


def _dictionary(glossary: Glossary, fields: dict[str, Any]) -> Dictionary:
    """Return the dictionary for the languages in the fields of a request.

    Raises:
        ApiError: 400, the languages are missing; 404, there is no such dictionary.
    """
    dictionary = glossary.find(text_field(fields, "source_lang"), text_field(fields, "target_lang"))
    if dictionary is None:
        raise ApiError(404, "The glossary has no dictionary for these languages")
    return dictionary
