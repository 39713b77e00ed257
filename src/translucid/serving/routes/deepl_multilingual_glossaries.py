"""The glossary routes of DeepL's API, version 3: glossaries of several dictionaries, which can be edited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import text_field
from translucid.serving.routes.deepl import DeepL
from translucid.serving.routes.deepl_glossaries import dictionary_of, name_field
from translucid.serving.routes.glossaries import DICTIONARIES, TOO_LARGE, Dictionary, Glossary, check_size


@dataclass(frozen=True)
class DeepLMultilingualGlossaries:
    """The handlers; `routes` binds them to their paths."""

    deepl: DeepL

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(prefix="/v3/glossaries", tags=["DeepL's API"], responses=schemas.DEEPL_ERRORS)
        routes.post("", status_code=201)(self.create)
        routes.get("")(self.every)
        routes.get("/{glossary_id}")(self.one)
        routes.patch("/{glossary_id}")(self.edit)
        routes.delete("/{glossary_id}", status_code=204)(self.delete)
        routes.get("/{glossary_id}/entries")(self.entries)
        routes.put("/{glossary_id}/dictionaries")(self.replace)
        routes.delete("/{glossary_id}/dictionaries", status_code=204)(self.delete_dictionary)
        return routes

    async def create(self, request: Request) -> JSONResponse:
        """Create a glossary of one dictionary or several."""
        fields, task = await self.deepl.fields(request)
        name, dictionaries = name_field(fields), self._dictionaries(fields)
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

    async def every(self, request: Request) -> JSONResponse:
        """List the glossaries of this client."""
        _, task = await self.deepl.fields(request)
        glossaries = self.deepl.glossaries.of(task.client)
        return JSONResponse({"glossaries": [glossary.information for glossary in glossaries]})

    async def one(self, request: Request, glossary_id: str) -> JSONResponse:
        """Describe a glossary."""
        _, task = await self.deepl.fields(request)
        return JSONResponse(self.deepl.glossaries.find(task.client, glossary_id).information)

    async def edit(self, request: Request, glossary_id: str) -> JSONResponse:
        """Rename a glossary, or add entries to its dictionaries."""
        fields, task = await self.deepl.fields(request)
        name = None
        if fields.get("name") is not None:
            name = name_field(fields)
        dictionaries = self._dictionaries(fields)

        def edited(glossary: Glossary) -> Glossary:
            for new in dictionaries:
                if known := glossary.find(new.source, new.target):
                    new = replace(new, entries={**known.entries, **new.entries})
                glossary = glossary.with_dictionary(new)
            if name:
                glossary = replace(glossary, name=name)
            return glossary

        return JSONResponse(self.deepl.glossaries.change(task.client, glossary_id, edited).information)

    async def delete(self, request: Request, glossary_id: str) -> Response:
        """Delete a glossary."""
        _, task = await self.deepl.fields(request)
        self.deepl.glossaries.delete(task.client, glossary_id)
        return Response(status_code=204)

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
        new = dictionary_of(self.deepl, fields)
        self.deepl.glossaries.change(task.client, glossary_id, lambda glossary: glossary.with_dictionary(new))
        return JSONResponse(new.information)

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
        return [dictionary_of(self.deepl, record) for record in records]


def _dictionary(glossary: Glossary, fields: dict[str, Any]) -> Dictionary:
    """Return the dictionary for the languages in the fields of a request.

    Raises:
        ApiError: 400, the languages are missing; 404, there is no such dictionary.
    """
    dictionary = glossary.find(text_field(fields, "source_lang"), text_field(fields, "target_lang"))
    if dictionary is None:
        raise ApiError(404, "The glossary has no dictionary for these languages")
    return dictionary
