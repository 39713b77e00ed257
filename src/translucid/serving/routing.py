"""The paths of all APIs, each with its handler and what the OpenAPI page says about it; the list of models."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from typing import Any, cast

import yaml
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from translucid.ground.errors import missing_package
from translucid.kernels.machine import has_pytorch
from translucid.models.kinds import tasks
from translucid.serving.catalog import PivotPairs
from translucid.serving.dialects.deepl import DeepL, DeepLDocuments, DeepLGlossaries, DeepLMultilingualGlossaries
from translucid.serving.dialects.libretranslate import LibreTranslate
from translucid.serving.dialects.reading_tools import ReadingTools
from translucid.serving.documents.document_jobs import DocumentJobs
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import Handlers, RequestContext
from translucid.serving.routes.editing import Editing

Schema = dict[str, Any]
Handler = Callable[..., Any]

DESCRIPTIONS: dict[str, dict[str, Schema]] = yaml.safe_load((files("translucid.serving") / "routes.yaml").read_bytes())[
    "tags"
]
"""The descriptions of routes by their tag, and by method and path."""
NEED_PYTORCH = {
    "POST /look": "translucid.serving.routes.inspection:InspectionRoutes.look",
    "POST /continue": "translucid.serving.routes.inspection:InspectionRoutes.continue_prefix",
    "POST /beam": "translucid.serving.routes.inspection:InspectionRoutes.beam",
    "POST /layers": "translucid.serving.routes.inspection:LayerRoutes.layers",
    "POST /patch": "translucid.serving.routes.inspection:LayerRoutes.patch",
    "POST /picture": "translucid.serving.routes.inspection:PlotRoutes.picture",
}
"""The routes that compute with models themselves, and their handlers: `module:class.method`."""
for _task in tasks():
    if _task.served:
        NEED_PYTORCH.update(_task.served.routes)
_TEXT: Schema = {"type": "string"}
_FORM = "multipart/form-data"
_CONTENT_TYPES = {"any": ("application/json", "application/x-www-form-urlencoded", _FORM)}
"""The content types of a request's fields; those of other requests are in a form."""


def _errors(name: str, *statuses: int) -> dict[int | str, Schema]:
    """Describe error responses of the usual statuses and of these: an object with a message under this name."""
    schema = {"type": "object", "properties": {name: _TEXT}, "required": [name]}
    described = {"description": "The error.", "content": {"application/json": {"schema": schema}}}
    return dict.fromkeys((400, 401, 403, 408, 413, 415, 421, 429, 503, *statuses), described)


_ERRORS, _DEEPL_ERRORS, _DEEPLX_ERRORS = _errors("error"), _errors("message", 404, 456), _errors("message")


def api_routes(context: RequestContext, jobs: DocumentJobs) -> APIRouter:
    """Return the routes of all APIs but that of the lessons; GET routes answer HEAD as well, which FastAPI does not."""
    routes = APIRouter()
    handlers = _handlers(context, jobs)
    for tag, descriptions in DESCRIPTIONS.items():
        errors = {"DeepL's API": _DEEPL_ERRORS, "DeepLX": _DEEPLX_ERRORS}.get(tag, _ERRORS)
        for route, description in descriptions.items():
            method, path = route.split()
            described = _described(description)
            routes.add_api_route(path, handlers[route], methods=[method], tags=[tag], responses=errors, **described)
            if method == "GET":
                routes.add_api_route(path, handlers[route], methods=["HEAD"], include_in_schema=False)
    return routes


def _handlers(context: RequestContext, jobs: DocumentJobs) -> dict[str, Handler]:
    """Return the handlers of all routes by method and path."""
    libre, deepl, editing = LibreTranslate(context, jobs), DeepL(context), Editing(context, jobs)
    documents, glossaries = DeepLDocuments(deepl, jobs), DeepLGlossaries(deepl)
    multilingual = DeepLMultilingualGlossaries(deepl)
    listing, reading_tools = ListingRoutes(context), ReadingTools(context)
    return {
        "POST /translate": libre.translate,
        "POST /detect": libre.detect,
        "POST /translate_file": libre.translate_file,
        "GET /download_file/{key}": libre.download_file,
        "GET /languages": libre.languages,
        "GET /health": libre.health,
        "GET /frontend/settings": libre.settings,
        "POST /frontend/key": libre.key,
        "POST /suggest": libre.suggest,
        "POST /v2/translate": deepl.translate,
        "GET /v2/languages": deepl.languages,
        "GET /v2/usage": deepl.usage,
        "POST /v2/document": documents.upload,
        "POST /v2/document/{document_id}": documents.status,
        "POST /v2/document/{document_id}/result": documents.result,
        "GET /v2/glossary-language-pairs": glossaries.pairs,
        "POST /v2/glossaries": glossaries.create,
        "GET /v2/glossaries": glossaries.list_all,
        "GET /v2/glossaries/{glossary_id}": glossaries.describe,
        "GET /v2/glossaries/{glossary_id}/entries": glossaries.entries,
        "DELETE /v2/glossaries/{glossary_id}": glossaries.delete,
        "POST /v3/glossaries": multilingual.create,
        "GET /v3/glossaries": multilingual.list_all,
        "GET /v3/glossaries/{glossary_id}": multilingual.describe,
        "PATCH /v3/glossaries/{glossary_id}": multilingual.edit,
        "DELETE /v3/glossaries/{glossary_id}": multilingual.delete,
        "GET /v3/glossaries/{glossary_id}/entries": multilingual.entries,
        "PUT /v3/glossaries/{glossary_id}/dictionaries": multilingual.replace,
        "DELETE /v3/glossaries/{glossary_id}/dictionaries": multilingual.delete_dictionary,
        "POST /deeplx/translate": reading_tools.deeplx,
        "POST /immersive": reading_tools.immersive,
        "POST /hcfy": reading_tools.hcfy,
        "POST /documents": editing.upload,
        "GET /documents/{key}": editing.progress,
        "DELETE /documents/{key}": editing.delete,
        "GET /documents/{key}/result": editing.result,
        "GET /documents/{key}/segments": editing.segments,
        "PUT /documents/{key}/segments/{number}": editing.accept,
        "POST /documents/{key}/accept": editing.accept_several,
        "GET /documents/{key}/segments/{number}/hints": editing.hints,
        "GET /models": listing.models,
        "GET /examples": listing.examples,
        **_handlers_of_models(context),
    }


def _handlers_of_models(context: RequestContext) -> dict[str, Handler]:
    """Return the handlers of the routes that compute with models themselves, by PyTorch; without it, they refuse.

    They are imported when they are first used: PyTorch takes seconds and 150 MiB, and clients that only translate
    need none of them.
    """
    if not has_pytorch():
        return dict.fromkeys(NEED_PYTORCH, _refuse)
    return {route: _on_first_use(path, context) for route, path in NEED_PYTORCH.items()}


def _on_first_use(path: str, context: RequestContext) -> Handler:
    """Return a handler that imports the one of a path, `module:class.method`, when it is called."""
    module, _, member = path.partition(":")
    name, method = member.split(".")
    handler: Handler | None = None

    def load() -> Handler:
        handlers = getattr(import_module(module), name)
        return cast(Handler, getattr(handlers(context), method))

    async def answer(request: Request) -> Response:
        nonlocal handler
        if handler is None:
            handler = await run_in_threadpool(load)
        return cast(Response, await handler(request))

    answer.__name__ = method  # the name of the operation in OpenAPI
    return answer


async def _refuse() -> Response:
    raise ApiError(501, str(missing_package("what shows or explains a model", "PyTorch", "train")))


def _described(description: Schema) -> Schema:
    """Return a description as arguments of FastAPI, with its request in the form of OpenAPI."""
    operation = dict(description)
    arguments: Schema = {"openapi_extra": operation}
    if not operation.pop("json", True):
        arguments["response_class"] = Response
    for name in ("name", "status_code"):
        if name in operation:
            arguments[name] = operation.pop(name)
    kind = operation.pop("content", None)
    if kind:
        properties = operation.pop("properties")
        if kind == "any":
            properties = {**properties, "api_key": _TEXT}
        fields = {"schema": {"type": "object", "properties": properties, "required": operation.pop("required")}}
        if example := operation.pop("example", None):
            fields["example"] = example
        types = _CONTENT_TYPES.get(kind, (_FORM,)) if isinstance(kind, str) else (_FORM,)
        content = dict.fromkeys(types, fields)
        if isinstance(kind, list):  # the file may be the whole body, and the fields in the query
            content |= {media_type: {"schema": properties["file"]} for media_type in kind}
            in_query = []
            for name, schema in properties.items():
                if name != "file":
                    in_query.append({"name": name, "in": "query", "schema": schema})
            operation["parameters"] = in_query
        operation["requestBody"] = {"required": True, "content": content}
    return arguments


class ListingRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def models(self) -> JSONResponse:
        """List the models by name."""
        catalog = self.context.catalog
        rows: list[dict[str, Any]] = []
        for pairs in catalog:
            languages = {"sources": list(pairs.sources), "targets": list(pairs.targets)}
            pivot = {"pivot": pairs.pivot} if isinstance(pairs, PivotPairs) else {}
            rows.append({"name": pairs.name, "reads": "text"} | languages | pivot)
        for task, models in catalog.served_others():
            rows += [{"name": served.name, "reads": task.reads} for served in models]
        return JSONResponse(rows)

    async def examples(self) -> JSONResponse:
        """List example sentences for each translator by its name, in the first of its source languages."""
        return JSONResponse({pairs.name: list(pairs.examples) for pairs in self.context.catalog})
