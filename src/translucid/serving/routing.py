"""The paths of all APIs, each with its handler and what the OpenAPI page says about it; the list of models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, cast

from fastapi import APIRouter, Depends, WebSocket
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from translucid.ground.errors import missing_package
from translucid.kernels.machine import has_pytorch
from translucid.models.kinds import all_tasks, extensions, inspector_tabs, resolved
from translucid.serving.catalog import PivotPairs
from translucid.serving.dialects.deepl import DeepL, DeepLDocuments, DeepLGlossaries, DeepLMultilingualGlossaries
from translucid.serving.dialects.libretranslate import LibreTranslate
from translucid.serving.dialects.reading_tools import ReadingTools
from translucid.serving.documents import DocumentJobs
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import Fields, Handlers, RequestContext
from translucid.serving.routes.editing import Editing
from translucid.serving.routes.memory_entries import MemoryEntries
from translucid.serving.routes.reviews import Reviews

Schema = dict[str, Any]
Handler = Callable[..., Any]

INSPECTION = "translucid.serving.routes.inspection"
NEED_PYTORCH = {
    "POST /look": (f"{INSPECTION}:InspectionRoutes.look", f"{INSPECTION}_fields:LookFields"),
    "POST /continue": (f"{INSPECTION}:InspectionRoutes.continue_prefix", f"{INSPECTION}_fields:ContinueFields"),
    "POST /beam": (f"{INSPECTION}:InspectionRoutes.beam", f"{INSPECTION}_fields:BeamFields"),
    "POST /layers": (f"{INSPECTION}:InspectionRoutes.layers", f"{INSPECTION}_fields:LayersFields"),
    "POST /patch": (f"{INSPECTION}:InspectionRoutes.patch", f"{INSPECTION}_fields:PatchFields"),
    "POST /picture": (f"{INSPECTION}:InspectionRoutes.picture", f"{INSPECTION}_fields:PictureFields"),
    "POST /weights": (f"{INSPECTION}:InspectionRoutes.weights", f"{INSPECTION}_fields:WeightsFields"),
}
"""The routes that look into translators: their handlers, `module:class.method`, and their fields."""
PASS_TAB = {"name": "pass", "label": "Pass", "module": "pass_tab.js"}
"""The tab of the figure of the whole computation, as the page reads it."""


def _errors(name: str, *statuses: int) -> dict[int | str, Schema]:
    """Describe error responses of the usual statuses and of these: an object with a message under this name."""
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    described = {"description": "The error.", "content": {"application/json": {"schema": schema}}}
    return dict.fromkeys((400, 401, 403, 408, 413, 415, 421, 429, 503, *statuses), described)


_ERRORS = {"DeepL's API": _errors("message", 404, 456), "DeepLX": _errors("message")}
_USUAL_ERRORS = _errors("error")
_CREATED, _DELETED = {"status_code": 201}, {"status_code": 204}
_DETAILS: dict[str, dict[str, Any]] = {
    "POST /v2/glossaries": _CREATED,
    "POST /v3/glossaries": _CREATED,
    "DELETE /v2/glossaries/{glossary_id}": _DELETED,
    "DELETE /v3/glossaries/{glossary_id}": _DELETED,
    "DELETE /v3/glossaries/{glossary_id}/dictionaries": _DELETED,
    "POST /documents/{key}/accept": {"name": "accept"},
}
"""Arguments of `add_api_route` for some routes."""


def api_routes(context: RequestContext, jobs: DocumentJobs) -> APIRouter:
    """Return the routes of all APIs but that of the lessons; GET routes answer HEAD as well, which FastAPI does not."""
    routes = APIRouter()

    def add(tag: str, route: str, handler: Handler, fields: type[Fields] | None = None, **details: Any) -> None:
        method, path = route.split()
        errors = _ERRORS.get(tag, _USUAL_ERRORS)
        routes.add_api_route(path, handler, methods=[method], tags=[tag], responses=errors, **details)
        added = cast(APIRoute, routes.routes[-1])
        for dependency in added.dependant.dependencies:  # `TranslateFields.read`, for instance
            fields = getattr(dependency.call, "__self__", None)
        if fields:
            added.openapi_extra = _described(fields, method, path)
        if method == "GET":
            routes.add_api_route(path, handler, methods=["HEAD"], include_in_schema=False)

    for tag, handlers in _handlers(context, jobs).items():
        for route, handler in handlers.items():
            add(tag, route, handler, **_DETAILS.get(route, {}))
    need_pytorch = dict(NEED_PYTORCH)
    for task in all_tasks():
        if task.served:
            need_pytorch.update(task.served.routes)
    for extension in extensions():
        need_pytorch.update(extension.routes)
        for path, handler_path in extension.sockets.items():
            routes.add_api_websocket_route(path, _socket(handler_path, context))
    for route, (handler_path, fields_path) in need_pytorch.items():
        fields = resolved(fields_path)
        handler = _on_first_use(handler_path, fields, context) if has_pytorch() else _refuse
        add(fields.tag, route, handler, fields, response_class=fields.answer, description=fields.__doc__)
    return routes


def _handlers(context: RequestContext, jobs: DocumentJobs) -> dict[str, dict[str, Handler]]:
    """Return the handlers of the routes that do not need PyTorch by tag, and by method and path."""
    libre, deepl, editing = LibreTranslate(context, jobs), DeepL(context), Editing(context, jobs)
    documents, glossaries = DeepLDocuments(deepl, jobs), DeepLGlossaries(deepl)
    multilingual = DeepLMultilingualGlossaries(deepl)
    entries, reviews = MemoryEntries(context), Reviews(context, jobs)
    listing, reading_tools = ListingRoutes(context), ReadingTools(context)
    return {
        "translation": {
            "POST /translate": libre.translate,
            "POST /detect": libre.detect,
            "POST /translate_file": libre.translate_file,
            "GET /download_file/{key}": libre.download_file,
            "GET /languages": libre.languages,
            "GET /health": libre.health,
            "GET /frontend/settings": libre.settings,
            "POST /frontend/key": libre.key,
            "POST /suggest": libre.suggest,
        },
        "DeepL's API": {
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
        },
        "DeepLX": {
            "POST /deeplx/translate": reading_tools.deeplx,
        },
        "reading tools": {
            "POST /immersive": reading_tools.immersive,
            "POST /hcfy": reading_tools.hcfy,
        },
        "documents": {
            "POST /documents": editing.upload,
            "GET /documents/{key}": editing.progress,
            "DELETE /documents/{key}": editing.delete,
            "GET /documents/{key}/result": editing.result,
            "GET /documents/{key}/segments": editing.segments,
            "PUT /documents/{key}/segments/{number}": editing.accept,
            "POST /documents/{key}/segments/{number}/translate": editing.translate_again,
            "POST /documents/{key}/accept": editing.accept_several,
            "POST /documents/{key}/withdraw": editing.withdraw,
            "GET /documents/{key}/segments/{number}/hints": editing.hints,
            "GET /documents/{key}/review": reviews.review,
            "POST /documents/{key}/review": reviews.upload_review,
        },
        "translation memory": {
            "POST /memory/entry": entries.entry,
            "POST /memory/find": entries.find,
            "POST /memory/remove": entries.remove,
        },
        "looking inside": {
            "GET /models": listing.models,
            "GET /examples": listing.examples,
        },
    }


def _on_first_use(path: str, fields: type[Fields], context: RequestContext) -> Handler:
    """Return a handler that imports the one of a path, `module:class.method`, when it is called.

    PyTorch takes seconds and 150 MiB, and clients that only translate need none of these handlers.
    """
    handler: Handler | None = None

    async def answer(call: Any = Depends(fields.read)) -> Response:  # noqa: B008  # a dependency is a default
        nonlocal handler
        if handler is None:
            handler = await run_in_threadpool(_loaded, path, context)
        return cast(Response, await handler(call))

    answer.__name__ = path.rpartition(".")[2]  # the name of the operation in OpenAPI
    return answer


def _socket(path: str, context: RequestContext) -> Handler:
    """Return a handler of WebSockets that imports the one of a path when it is called."""

    async def answer(websocket: WebSocket) -> None:
        await (await run_in_threadpool(_loaded, path, context))(websocket)

    return answer


def _loaded(path: str, context: RequestContext) -> Handler:
    """Import the handler of a path."""
    module, _, member = path.partition(":")
    name, method = member.split(".")
    return cast(Handler, getattr(getattr(import_module(module), name)(context), method))


async def _refuse() -> Response:
    raise ApiError(501, str(missing_package("what shows or explains a model", "PyTorch", "train")))


@cache
def _described(fields: type[Fields], method: str, path: str) -> Schema:
    """Return the description of a request in the form of OpenAPI."""
    schema = schema_of(fields)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    in_path = []
    names = [name for name in properties if f"{{{name}}}" in path]
    for name in names:
        in_path.append({"name": name, "in": "path", "schema": properties.pop(name), "required": True})
        required.remove(name)
    if method not in ("GET", "DELETE"):
        properties["api_key"] = {"type": "string"}
    in_query = []
    for name, field_schema in properties.items():
        if name != "file":
            parameter = {"name": name, "in": "query", "schema": field_schema, "required": name in required}
            if description := field_schema.get("description"):
                parameter["description"] = description
            in_query.append(parameter)
    if method in ("GET", "DELETE"):
        parameters = in_path + in_query
        return {"parameters": parameters} if parameters else {}
    content: Schema = {"schema": {"type": "object", "properties": properties, "required": required}}
    if fields.example is not None:
        content["example"] = fields.example
    described: Schema = {"requestBody": {"required": True, "content": {}}}
    if in_path:
        described["parameters"] = in_path
    for media_type in fields.content_types:
        if media_type.startswith("image/"):  # the image is the whole body, and the fields are in the query
            described["requestBody"]["content"][media_type] = {"schema": properties["file"]}
            described["parameters"] = in_query
        else:
            described["requestBody"]["content"][media_type] = content
    if fields.answer_schema:
        answer = {"content": {"application/json": {"schema": schema_of(fields.answer_schema, _AnswerSchema)}}}
        described["responses"] = {"200": answer}
    return described


class _AnswerSchema(GenerateJsonSchema):
    """Writes schemas without titles, which only repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _RequestSchema(_AnswerSchema):
    """Writes schemas without `null`, which counts as a missing field."""

    def nullable_schema(self, schema: Any) -> Schema:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Schema:
        described = super().default_schema(schema)
        return {name: value for name, value in described.items() if (name, value) != ("default", None)}


def schema_of(model: type[BaseModel], generator: type[GenerateJsonSchema] = _RequestSchema) -> Schema:
    """Return the schema of a model, with the schemas of the models in it in their places."""
    schema = model.model_json_schema(schema_generator=generator)
    definitions = schema.pop("$defs", {})

    def inlined(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(inlined, value))
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return inlined(definitions[value["$ref"].rpartition("/")[2]])
        return {name: inlined(item) for name, item in value.items()}

    return cast(Schema, inlined(schema))


class ListingRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def models(self) -> JSONResponse:
        """List the models by name."""
        catalog = self.context.catalog
        rows: list[dict[str, Any]] = []
        for pairs in catalog:
            languages = {"sources": list(pairs.sources), "targets": list(pairs.targets)}
            further: dict[str, Any] = {"formality": pairs.formality_targets} if pairs.formality_targets else {}
            if isinstance(pairs, PivotPairs):
                further["pivot"] = pairs.pivot
            elif has_pytorch():
                folder = pairs.translator.loaded.folder
                further |= inspector_tabs(folder.path)
                if self.context.options.share_models:
                    further["tabs"] = [*further.get("tabs", ()), PASS_TAB]
                version = folder.last_version()
                further |= {"package_version": version} if version else {}
            rows.append({"name": pairs.name, "reads": "text"} | languages | further)
        for task, models in catalog.served_others():
            rows += [{"name": served.name, "reads": task.reads} for served in models]
        return JSONResponse(rows)

    async def examples(self) -> JSONResponse:
        """List example sentences for each translator by its name, in the first of its source languages."""
        return JSONResponse({pairs.name: list(pairs.examples) for pairs in self.context.catalog})
