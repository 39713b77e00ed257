"""Reading requests: their bodies, limited in bytes and in time, and their fields, each of which is validated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from translucid.kernels.pytorch import has_pytorch
from translucid.serving.edge.failures import ApiError
from translucid.serving.server_options import ServerOptions

if TYPE_CHECKING:
    from translucid.inspection.explain import Contrast
    from translucid.inspection.explain.case import ForcedCase

SECONDS = 30.0
"""The longest time in which a body may arrive, and a second more for each `SLOWEST` bytes of it."""
SLOWEST = 100_000
"""The lowest rate of a large body in bytes a second."""
SMALL = 1 << 16
"""The size in bytes up to which a body does not count towards `TOGETHER`."""
TOGETHER = 1 << 26
"""The most bytes of all larger bodies together, each from its first byte to the end of its answer."""
IN_MEMORY = 1 << 20
"""The size in bytes from which a document is written to a temporary file."""
MOST_FIELDS = 1000
"""The most fields of a multipart form."""
CONTRASTED = 100
"""The most characters of a word that another one is contrasted with."""
CONTRASTED_WORDS = 999
"""The highest position of a word that is contrasted."""
_HELD = "translucid.held"


class Bodies:
    """Reads bodies, and limits the memory of all bodies together."""

    def __init__(self, seconds: float = SECONDS, together: int = TOGETHER) -> None:
        self.seconds, self.together = seconds, together
        self.held = 0

    async def read(self, request: Request, most: int) -> bytes:
        """Return the body of a request; limits and errors are those of `stream`."""
        return b"".join([chunk async for chunk in self.stream(request, most)])

    async def stream(self, request: Request, most: int) -> AsyncGenerator[bytes, None]:
        """Yield the body of a request as it arrives, at most `most` bytes.

        Raises:
            ApiError: 408, it arrives too slowly; 413, it is too large; 503, all bodies together are too large.
            ClientDisconnect: the client disconnects before the end.
        """
        announced = request.headers.get("content-length", "")
        # Python refuses to convert numbers of thousands of digits.
        if announced.isdecimal() and (len(announced) > 15 or int(announced) > most):
            raise ApiError(413, f"Invalid request: more than {most} bytes")
        chunks, size = aiter(request.stream()), 0
        began = asyncio.get_running_loop().time()
        while True:
            try:
                # The deadline moves with each byte, so that large bodies over slow connections have enough time.
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
        """Count a body of this size, which may have been counted with a smaller one."""
        if size <= SMALL:
            return
        more = size - scope.get(_HELD, 0)
        if self.held + more > self.together:
            raise ApiError(503, "The server is busy with large requests, please come again", retry_after=10)
        self.held += more
        scope[_HELD] = size

    def release(self, scope: Scope) -> None:
        """Stop counting the body of a request that has been answered."""
        self.held -= scope.pop(_HELD, 0)


async def read_fields(request: Request, bodies: Bodies, options: ServerOptions) -> dict[str, Any]:
    """Return the fields of a JSON or form request; some clients send them in the query instead.

    Raises:
        ApiError: 400, the body is neither; 413, it is too large; 415, its content type is another one.
    """
    # A character may take twelve bytes, in JSON (two \\uXXXX) as in a form (four %XX).
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
            fields = _single_values(parse_qs(body.decode(), keep_blank_values=True))
        else:  # browsers let the page of any site send text/plain without a CORS preflight
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
        ApiError: 400, the body is no such form; 413, it is too large.
    """
    if _kind(request) != "multipart/form-data":
        raise ApiError(400, "Invalid request: send a form with a file")
    return await _form(request, bodies, options.file_bytes + 20_000, IN_MEMORY)


async def read_image(request: Request, bodies: Bodies, options: ServerOptions) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a request, and its image: a form's `file`, or the whole body, with fields in the query.

    Raises:
        ApiError: 400, there is no image; 413, it is too large; 415, the content type is neither a form nor an image.
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
    """Return the content type without its parameters, such as the charset."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def _form(
    request: Request, bodies: Bodies, most: int, in_memory: int = 0
) -> tuple[dict[str, Any], UploadFile | None]:
    """Read a multipart form as it arrives; a field that occurs several times is a list.

    Args:
        request: the request with the form.
        bodies: reads the body.
        most: the most bytes of the form.
        in_memory: the size from which the file of the form is written to disk; 0 is never.

    Raises:
        ApiError: 400, the form is invalid; also the errors of `Bodies.stream`.
    """
    stream = bodies.stream(request, most)
    try:
        parser = MultiPartParser(request.headers, stream, max_files=1, max_fields=MOST_FIELDS, max_part_size=most)
        parser.spool_max_size = in_memory
        form = await parser.parse()
    except (ApiError, ClientDisconnect, OSError):  # an OSError, such as a full disk, is not the fault of the form
        raise
    except Exception as error:
        raise ApiError(400, "Invalid request: the form can't be read") from error
    finally:
        await stream.aclose()
    texts: dict[str, list[str]] = {}
    for key, value in form.multi_items():
        if isinstance(value, str):
            texts.setdefault(key, []).append(value)
    file = form.get("file")
    return _characters(_single_values(texts)), file if isinstance(file, UploadFile) else None


def _single_values(fields: dict[str, list[str]]) -> dict[str, Any]:
    """Return the fields of a form; those that occur once have a text, the others a list."""
    return {key: values[0] if len(values) == 1 else values for key, values in fields.items()}


def _characters(value: Any) -> Any:
    """Replace lone surrogates by ?: JSON may contain them as escapes, but no answer in UTF-8 can."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_characters(item) for item in value]
    if isinstance(value, dict):
        return {_characters(key): _characters(item) for key, item in value.items()}
    return value


def text_field(fields: dict[str, Any], name: str, default: str | None = None, most: int | None = None) -> str:
    """Return a field that is a text, of at most this many characters if there is a limit.

    Raises:
        ApiError: 400, the field is missing, no text, or too long.
    """
    value = fields.get(name)
    if value is None:
        if default is not None:
            return default
        raise ApiError(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise ApiError(400, f"Invalid request: {name} is not a text")
    if most is not None and len(value) > most:
        raise ApiError(400, f"Invalid request: {len(value)} characters exceed the limit of {most}")
    return value


def choice_field(fields: dict[str, Any], name: str, choices: Sequence[str], default: str | None = None) -> str:
    """Return a field that is one of these texts.

    Raises:
        ApiError: 400, the field is missing or another one.
    """
    choice = text_field(fields, name, default)
    if choice not in choices:
        raise ApiError(400, f"Invalid request: {name} is none of {', '.join(choices)}")
    return choice


def as_list(value: Any) -> list[Any]:
    """Return a value that is a list, or a list of the value alone."""
    return value if isinstance(value, list) else [value]


def are_texts(values: Iterable[Any]) -> bool:
    """Return whether all values are texts."""
    return all(isinstance(value, str) for value in values)


def source_field(fields: dict[str, Any]) -> str | None:
    """Return the source language of a request, None if it is `auto`.

    Raises:
        ApiError: 400, the field is missing or no text.
    """
    source = text_field(fields, "source")
    return None if source == "auto" else source


def method_field(fields: dict[str, Any], name: str, default: str = "", *, images: bool = False) -> str:
    """Return the method of an explanation, for texts or for images; "" if the field is missing without a default.

    Raises:
        ApiError: 400, there is no such method here.
    """
    method = text_field(fields, name, default)
    if (method or default) and method not in methods_of_server(images=images):
        raise ApiError(400, f"Invalid request: there is no explanation by {method[:20]!r} here")
    return method


def methods_of_server(*, images: bool) -> list[str]:
    """Return the methods of explanation that this server has; none without PyTorch."""
    if not has_pytorch():
        return []
    from translucid.inspection.explain import methods_here

    return list(methods_here(images=images))


class ContrastFields(NamedTuple):
    """The fields of a request for a contrastive explanation."""

    instead_of: str
    """The other word; "" for none."""
    word: int | None
    """The position of the word that is contrasted with it; None: where the model came closest to the other one."""

    def of(self, case: ForcedCase) -> Contrast | None:
        """Return the contrast in a translation or caption, if the request has one."""
        from translucid.inspection.explain import contrast

        return contrast(case, self.instead_of, self.word) if self.instead_of else None


def contrast_fields(fields: dict[str, Any], method: str) -> ContrastFields:
    """Return the fields `instead_of` and `word`.

    Raises:
        ApiError: 400, a field is invalid, or there is no method.
    """
    instead_of = text_field(fields, "instead_of", "", CONTRASTED).strip()
    word = number_field(fields, "word", 0, CONTRASTED_WORDS) if "word" in fields else None
    if (instead_of or word is not None) and not (instead_of and method):
        raise ApiError(400, "Invalid request: word needs instead_of, which needs explain")
    return ContrastFields(instead_of, word)


def number_field(fields: dict[str, Any], name: str, default: int, most: int, least: int = 0) -> int:
    """Return a field that is a whole number from `least` to `most`.

    Raises:
        ApiError: 400, the field is no whole number, or out of range.
    """
    value = fields.get(name, default)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:  # from a form or the query
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ApiError(400, f"Invalid request: {name} is not a whole number")
    if value > most:
        raise ApiError(400, f"Invalid request: {name} is more than {most}")
    if value < least:
        raise ApiError(400, f"Invalid request: {name} is less than {least}")
    return value


def flag_field(fields: dict[str, Any], name: str) -> bool:
    """Return a boolean field, false if it is missing; in forms it is `true` or `false`.

    Raises:
        ApiError: 400, the field has another value.
    """
    value = fields.get(name)
    if value in (True, "true"):
        return True
    if value in (None, False, "false"):
        return False
    raise ApiError(400, f"Invalid request: {name} is neither true nor false")


def texts_field(fields: dict[str, Any], options: ServerOptions, name: str = "q") -> tuple[list[str], bool]:
    """Return the texts of a field, and whether it was a list.

    Raises:
        ApiError: 400, the field is missing, too long, or neither a text nor a list of texts.
    """
    value = fields.get(name)
    if value is None:
        raise ApiError(400, f"Invalid request: missing {name} parameter")
    texts = as_list(value)
    if not are_texts(texts):
        raise ApiError(400, f"Invalid request: {name} is neither a text nor a list of texts")
    if len(texts) > options.texts:
        raise ApiError(400, f"Invalid request: {len(texts)} texts exceed the limit of {options.texts}")
    characters = sum(map(len, texts))
    if characters > options.characters:
        raise ApiError(400, f"Invalid request: {characters} characters exceed the limit of {options.characters}")
    return texts, isinstance(value, list)
