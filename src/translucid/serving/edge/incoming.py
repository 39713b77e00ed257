"""Requests on their way in: their bodies, bounded in bytes and in time, and what they say, every value checked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from translucid.inspection.explain import methods_here
from translucid.serving.edge.failures import ApiError
from translucid.serving.server_options import ServerOptions

SECONDS = 30.0
"""That a body may take to come in, and a second more for each `SLOWEST` bytes of it."""
SLOWEST = 100_000
"""Bytes a second of a large body."""
SMALL = 1 << 16
"""Bytes that every connection may have; a body of more counts towards what all may have together."""
TOGETHER = 1 << 26
"""Bytes that all larger bodies may have, from their first byte to the end of the answer."""
IN_MEMORY = 1 << 20
"""Bytes of a document that come in before it is written to a file without a name."""
MOST_FIELDS = 1000
"""Of a multipart form."""
_HELD = "translucid.held"


class Bodies:
    """Reads bodies, and knows how many bytes of them there are."""

    def __init__(self, seconds: float = SECONDS, together: int = TOGETHER) -> None:
        self.seconds, self.together = seconds, together
        self.held = 0

    async def read(self, request: Request, most: int) -> bytes:
        """Return the body of a request; bounds and errors as of `stream`."""
        return b"".join([chunk async for chunk in self.stream(request, most)])

    async def stream(self, request: Request, most: int) -> AsyncGenerator[bytes, None]:
        """Give the body of a request as it comes, no more than `most` bytes.

        Raises:
            ApiError: 408, it comes too slowly; 413, it is too large; 503, there is no room for it now.
            ClientDisconnect: the client leaves in the middle.
        """
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and (len(announced) > 15 or int(announced) > most):
            raise ApiError(413, f"Invalid request: more than {most} bytes")
        chunks, size = aiter(request.stream()), 0
        began = asyncio.get_running_loop().time()
        while True:
            try:
                async with asyncio.timeout_at(began + self.seconds + size / SLOWEST):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                raise ApiError(408, f"The body took more than {self.seconds:g} seconds to come in") from None
            if chunk is None:
                return
            size += len(chunk)
            if size > most:
                raise ApiError(413, f"Invalid request: more than {most} bytes")
            self._hold(request.scope, size)
            yield chunk

    def _hold(self, scope: Scope, size: int) -> None:
        if size <= SMALL:
            return
        more = size - scope.get(_HELD, 0)
        if self.held + more > self.together:
            raise ApiError(503, "The server is busy with large requests, please come again", retry_after=10)
        self.held += more
        scope[_HELD] = size

    def release(self, scope: Scope) -> None:
        """Forget the body of a request that has its answer."""
        self.held -= scope.pop(_HELD, 0)


async def read_fields(request: Request, bodies: Bodies, options: ServerOptions) -> dict[str, Any]:
    """Return the fields of a JSON or form request; some clients send them in the query instead.

    Raises:
        ApiError: 400, it is neither; 413, it is too large; 415, it says that it is something else.
    """
    # A character may take twelve bytes of JSON (two \\uXXXX), and of a form.
    most = 12 * options.characters + 20_000
    kind = _kind(request)
    if kind == "multipart/form-data":
        fields, _ = await _form(request, bodies, most)
        return {**request.query_params, **fields}
    body = await bodies.read(request, most)
    try:
        if kind == "application/json" or (kind == "" and body.lstrip().startswith(b"{")):
            fields = json.loads(body)
        elif kind in ("application/x-www-form-urlencoded", ""):
            values = parse_qs(body.decode(), keep_blank_values=True)
            fields = {key: v[0] if len(v) == 1 else v for key, v in values.items()}
        else:  # a page of any site may send text/plain without being asked whether it may
            raise ApiError(415, f"Invalid request: send application/json or a form, not {kind[:50]}")
        fields = _characters(fields)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid request: the body is neither JSON nor a form") from error
    if not isinstance(fields, dict):
        raise ApiError(400, "Invalid request: the body is not a JSON object")
    return {**request.query_params, **fields}


async def read_upload(
    request: Request, bodies: Bodies, options: ServerOptions
) -> tuple[dict[str, Any], UploadFile | None]:
    """Return the fields of a multipart form, and the file in it, if there is one called `file`.

    Raises:
        ApiError: 400, it is no such form; 413, it is too large.
    """
    if _kind(request) != "multipart/form-data":
        raise ApiError(400, "Invalid request: send a form with a file")
    return await _form(request, bodies, options.file_bytes + 20_000, IN_MEMORY)


async def read_image(request: Request, bodies: Bodies, options: ServerOptions) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a request, and its image: a form's `file`, or the whole body, with fields in the query.

    Raises:
        ApiError: 400, there is none; 413, it is too large; 415, the request says that it is something else.
    """
    kind, most = _kind(request), options.image_bytes
    fields: dict[str, Any] = dict(request.query_params)
    if kind == "multipart/form-data":
        more, file = await _form(request, bodies, most + 20_000)
        fields |= more
        image = b"" if file is None else await file.read()
    elif kind.startswith("image/"):
        image = await bodies.read(request, most)
    else:
        what = kind[:50] or "nothing that says what it is"
        raise ApiError(415, f"Invalid request: send a form with a file, or an image as image/jpeg, not {what}")
    if not image:
        raise ApiError(400, "Invalid request: missing file parameter, an image")
    if len(image) > most:
        raise ApiError(413, f"Invalid request: more than {most} bytes")
    return fields, image


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def _form(
    request: Request, bodies: Bodies, most: int, in_memory: int = 0
) -> tuple[dict[str, Any], UploadFile | None]:
    """Read a multipart form as it comes; a field that comes several times is a list.

    Args:
        request: with the form.
        bodies: reads it.
        most: bytes of it.
        in_memory: bytes of its file, beyond which it is written to a disk; 0 is never.

    Raises:
        ApiError: 400, it can't be read; those of `Bodies.stream`.
    """
    stream = bodies.stream(request, most)
    try:
        parser = MultiPartParser(request.headers, stream, max_files=1, max_fields=MOST_FIELDS, max_part_size=most)
        parser.spool_max_size = in_memory
        form = await parser.parse()
    except (ApiError, ClientDisconnect, OSError):  # of the last, such as a full disk, the form is innocent
        raise
    except Exception as error:
        raise ApiError(400, "Invalid request: the form can't be read") from error
    finally:
        await stream.aclose()
    texts = {key: [value for value in form.getlist(key) if isinstance(value, str)] for key in form}
    fields = {key: values[0] if len(values) == 1 else values for key, values in texts.items() if values}
    file = form.get("file")
    return _characters(fields), file if isinstance(file, UploadFile) else None


def _characters(value: Any) -> Any:
    """Return JSON with a ? for every half surrogate: they are no characters, and can't be sent back."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_characters(item) for item in value]
    if isinstance(value, dict):
        return {_characters(key): _characters(item) for key, item in value.items()}
    return value


def text_field(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    """Return a field that is a text.

    Raises:
        ApiError: 400, it is missing or something else.
    """
    value = fields.get(name)
    if value is None:
        if default is not None:
            return default
        raise ApiError(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise ApiError(400, f"Invalid request: {name} is not a text")
    return value


def method_field(fields: dict[str, Any], name: str, default: str = "", *, images: bool = False) -> str:
    """Return the method of an explanation, of texts or of images; "" if none is asked for and there is no default.

    Raises:
        ApiError: 400, it can't be used here.
    """
    method = text_field(fields, name, default)
    if (method or default) and method not in methods_here(images=images):
        raise ApiError(400, f"Invalid request: there is no explanation by {method[:20]!r} here")
    return method


def number_field(fields: dict[str, Any], name: str, default: int, most: int, least: int = 0) -> int:
    """Return a field that is a whole number from `least` to `most`.

    Raises:
        ApiError: 400, it is something else, or less, or more.
    """
    value = fields.get(name, default)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ApiError(400, f"Invalid request: {name} is not a whole number")
    if value > most:
        raise ApiError(400, f"Invalid request: {name} is more than {most}")
    if value < least:
        raise ApiError(400, f"Invalid request: {name} is less than {least}")
    return value


def flag_field(fields: dict[str, Any], name: str) -> bool:
    """Return a field that says yes or no, no if it is not given; in forms it is `true` or `false`.

    Raises:
        ApiError: 400, it is something else.
    """
    value = {"true": True, "false": False}.get(value, value) if isinstance(value := fields.get(name), str) else value
    if value not in (None, True, False):
        raise ApiError(400, f"Invalid request: {name} is neither true nor false")
    return bool(value)


def texts_field(fields: dict[str, Any], options: ServerOptions, name: str = "q") -> tuple[list[str], bool]:
    """Return the texts of a field, and whether it was a list.

    Raises:
        ApiError: 400, it is missing, too much, or something else.
    """
    value = fields.get(name)
    if value is None:
        raise ApiError(400, f"Invalid request: missing {name} parameter")
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ApiError(400, f"Invalid request: {name} is neither a text nor a list of texts")
    if len(texts) > options.texts:
        raise ApiError(400, f"Invalid request: {len(texts)} texts exceed the limit of {options.texts}")
    characters = sum(map(len, texts))
    if characters > options.characters:
        raise ApiError(400, f"Invalid request: {characters} characters exceed the limit of {options.characters}")
    return texts, isinstance(value, list)
