"""Requests and responses of the API for its OpenAPI page; `incoming.py` validates the real requests."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml
from fastapi import APIRouter
from fastapi.routing import APIRoute

Schema = dict[str, Any]

_DESCRIBED: Schema = yaml.safe_load((files("translucid.serving") / "requests.yaml").read_text("utf-8"))
_TEXT: Schema = {"type": "string"}
_FORM = "multipart/form-data"
_IMAGES = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp")
_CONTENT = {
    "any": ("application/json", "application/x-www-form-urlencoded", _FORM),
    "form": (_FORM,),
    "image": (_FORM,),
}
"""The content types of the fields, by the kinds of requests in the file."""


def _errors(name: str, *statuses: int) -> dict[int | str, Schema]:
    """Describe error responses of these statuses: an object with a message under this name."""
    schema = {"type": "object", "properties": {name: _TEXT}, "required": [name]}
    described = {"description": "The error.", "content": {"application/json": {"schema": schema}}}
    return dict.fromkeys((400, 403, 408, 413, 415, 421, 429, 503, *statuses), described)


ERRORS = _errors("error")
DEEPL_ERRORS = _errors("message", 404, 456)


def describe_requests(routes: APIRouter) -> None:
    """Add to the routes of an API what its page says about their requests."""
    for route in routes.routes:
        if isinstance(route, APIRoute):
            described = _DESCRIBED["routes"].get(f"{min(route.methods)} {route.path}")
            if described:
                route.openapi_extra = _openapi(described)


def _openapi(described: Schema) -> Schema:
    """Return the description of a request in the form of OpenAPI."""
    operation = dict(described)
    kind = operation.pop("content", None)
    if kind is None:
        return operation
    properties = operation.pop("properties")
    fields = {"type": "object", "properties": properties, "required": operation.pop("required")}
    if kind == "any":
        fields["properties"] = {**properties, "api_key": _TEXT}
    content = dict.fromkeys(_CONTENT[kind], {"schema": fields})
    if kind == "image":  # its fields may be in the query instead
        content |= {image: {"schema": properties["file"]} for image in _IMAGES}
        names = [name for name in properties if name != "file"]
        operation["parameters"] = [{"name": name, "in": "query", "schema": properties[name]} for name in names]
    return {**operation, "requestBody": {"required": True, "content": content}}
