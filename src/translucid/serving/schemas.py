"""What the API takes and gives, for its OpenAPI page; `incoming.py` checks what really comes."""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
ERROR = {
    "description": "What is wrong.",
    "content": {
        "application/json": {"schema": {"type": "object", "properties": {"error": TEXT}, "required": ["error"]}}
    },
}
ERRORS: dict[int | str, dict[str, Any]] = dict.fromkeys((400, 403, 408, 413, 415, 421, 429, 503), ERROR)
LIST: dict[str, Any] = {"type": "array", "items": TEXT}
MANY: dict[str, Any] = {"oneOf": [TEXT, {"type": "array", "items": TEXT}]}


def body(required: list[str], **properties: Any) -> dict[str, Any]:
    """Describe a body that may be JSON or a form."""
    schema = {"type": "object", "properties": {**properties, "api_key": TEXT}, "required": required}
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


TRANSLATE = body(
    ["q", "source", "target"],
    q=MANY,
    source={**TEXT, "description": "a language code, or auto"},
    target=TEXT,
    format={"type": "string", "enum": ["text", "html"]},
    alternatives={"type": "integer", "minimum": 0},
)
SUGGEST = body(["q", "s", "source", "target"], q=TEXT, s=TEXT, source=TEXT, target=TEXT)
DETECT = body(["q"], q=TEXT)
LOOK = body(
    ["q", "source", "target"],
    q=TEXT,
    source=TEXT,
    target=TEXT,
    model={**TEXT, "description": "a name from /models"},
    explain={"type": "string", "enum": ["lime", "erasure", "gradients"]},
    translations={**LIST, "description": "look at these instead, one for each sentence of q"},
)
CONTINUE = body(
    ["q", "source", "target", "prefix"],
    q=TEXT,
    source=TEXT,
    target=TEXT,
    model=TEXT,
    prefix={"type": "array", "items": {"type": "integer"}},
)
BEAM = body(
    ["q", "source", "target"],
    q=TEXT,
    source=TEXT,
    target=TEXT,
    model=TEXT,
    theme={"type": "string", "enum": ["light", "dark"]},
)
FILE = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "file": {**TEXT, "format": "binary"},
                        "source": TEXT,
                        "target": TEXT,
                        "api_key": TEXT,
                    },
                    "required": ["file", "source", "target"],
                }
            }
        },
    }
}
