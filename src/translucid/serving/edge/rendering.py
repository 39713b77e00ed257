"""Large answers as JSON, serialised in the worker pool and in parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi.responses import Response

from bitext.cancellation import between_steps


def rendered(value: Any) -> Response:
    """Return an answer as JSON; called in the worker pool.

    `json.dumps` holds the interpreter lock until it returns, so that attention maps of some megabytes would block the
    event loop from any thread. Therefore each row of them is serialised by itself.
    """
    return Response("".join(_parts(value)).encode(), media_type="application/json")


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        opening = "{"
        for name, item in value.items():
            yield f"{opening}{_dumped(name)}:"
            yield from _parts(item)
            opening = ","
        yield "}"
    elif isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        opening = "["
        for item in value:
            between_steps()
            yield opening
            yield from _parts(item)
            opening = ","
        yield "]"
    else:
        yield _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
