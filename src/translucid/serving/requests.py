"""Requests: their bodies, limited in bytes and in time, their fields, their clients, and their tasks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar, get_args
from urllib.parse import parse_qs

import prometheus_client
from fastapi import Depends, Request
from fastapi.responses import JSONResponse, Response
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from bitext.cancellation import Cancelled
from translucid.kernels.machine import has_pytorch
from translucid.serving.catalog import AnyServed, Catalog, Served
from translucid.serving.edge.failures import ApiError, ClientLeft
from translucid.serving.edge.rate_limits import RateLimits
from translucid.serving.live_sessions import LiveSessions
from translucid.serving.memory import ServerMemory
from translucid.serving.queue import Task, WorkerPool
from translucid.serving.server_options import ServerOptions

if TYPE_CHECKING:
    from translucid.inspection.explain import Contrast, ForcedCase, Packages

SECONDS = 30.0
"""The time limit for a body; every `SLOWEST` bytes of it add a second."""
SLOWEST = 100_000
"""The lowest rate of a large body in bytes a second."""
SMALL = 1 << 16
"""The size in bytes up to which a body does not count towards `MAX_TOTAL_BYTES`."""
MAX_TOTAL_BYTES = 1 << 26
"""The maximum size in bytes of all larger bodies together, each from its first byte to the end of its answer."""
IN_MEMORY = 1 << 20
"""The size in bytes from which a document is written to a temporary file."""
MOST_FIELDS = 1000
"""The maximum number of fields of a multipart form."""
MAX_WORD_LENGTH = 100
"""The maximum number of characters in a word that another one is contrasted with."""
MAX_WORD_POSITION = 999
"""The highest position of a word that is contrasted."""
NO_PACKAGES: Packages = MappingProxyType({})
_COUNTED_BYTES = "translucid.body_bytes"
FORM = "multipart/form-data"


Result = TypeVar("Result")

WORK = "translucid.work"
"""The entry of a request's scope with the characters that it had translated, a `Counter` by language pair."""
ON_THE_LOOP = 2000
"""The maximum number of characters in a text that is processed on the event loop, which takes about a millisecond."""


# A client whose form is malformed gets the status 400; its parser would also write a line to standard error.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


class Bodies:
    """Reads bodies, and limits the memory of all bodies together."""

    def __init__(self, seconds: float = SECONDS, max_total_bytes: int = MAX_TOTAL_BYTES) -> None:
        self.seconds, self.max_total_bytes = seconds, max_total_bytes
        self.total_bytes = 0

    async def read(self, request: Request, max_bytes: int) -> bytes:
        """Return the body of a request; limits and errors are those of `stream`."""
        return b"".join([chunk async for chunk in self.stream(request, max_bytes)])

    async def stream(self, request: Request, max_bytes: int) -> AsyncGenerator[bytes, None]:
        """Yield the body of a request as it arrives, at most `max_bytes` bytes.

        Raises:
            ApiError: 408, it arrives too slowly; 413, it is too large; 503, all bodies together are too large.
            ClientDisconnect: the client disconnects before the end.
        """
        declared_size = request.headers.get("content-length", "")
        # Python refuses to convert numbers of thousands of digits.
        if declared_size.isdecimal() and (len(declared_size) > 15 or int(declared_size) > max_bytes):
            raise ApiError(413, f"Invalid request: more than {max_bytes} bytes")
        chunks, size = aiter(request.stream()), 0
        started = asyncio.get_running_loop().time()
        while True:
            try:
                # The deadline moves with each byte, so that large bodies over slow connections have enough time.
                async with asyncio.timeout_at(started + self.seconds + size / SLOWEST):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                raise ApiError(408, f"The body took more than {self.seconds:g} seconds to come in") from None
            if chunk is None:
                return
            size += len(chunk)
            if size > max_bytes:
                raise ApiError(413, f"Invalid request: more than {max_bytes} bytes")
            self._count(request.scope, size)
            yield chunk

    def _count(self, scope: Scope, size: int) -> None:
        """Count a body of this size, which may have been counted with a smaller size before."""
        if size <= SMALL:
            return
        growth = size - scope.get(_COUNTED_BYTES, 0)
        if self.total_bytes + growth > self.max_total_bytes:
            raise ApiError(503, "The server is busy with large requests, please come again", retry_after=10)
        self.total_bytes += growth
        scope[_COUNTED_BYTES] = size

    def release(self, scope: Scope) -> None:
        """Stop counting the body of a request that has been answered."""
        self.total_bytes -= scope.pop(_COUNTED_BYTES, 0)


async def read_fields(request: Request, bodies: Bodies, options: ServerOptions) -> dict[str, Any]:
    """Return the fields of a JSON or form request; some clients send them in the query instead.

    Raises:
        ApiError: 400, the body is neither; 413, it is too large; 415, its content type is another one.
    """
    # A character may take twelve bytes, in JSON (two \\uXXXX) as in a form (four %XX).
    max_bytes = 12 * options.characters + 20_000
    kind = content_type(request)
    if kind == FORM:
        fields, _ = await form_of(request, bodies, max_bytes)
        return {**request.query_params, **fields}
    body = await bodies.read(request, max_bytes)
    try:
        if kind == "application/json" or (kind == "" and body.lstrip().startswith(b"{")):
            fields = json.loads(body)
        elif kind in ("application/x-www-form-urlencoded", ""):
            fields = _single_values(parse_qs(body.decode(), keep_blank_values=True))
        else:  # browsers let the page of any site send text/plain without a CORS preflight
            raise ApiError(415, f"Invalid request: send application/json or a form, not {kind[:50]}")
        fields = encodable(fields)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid request: the body is neither JSON nor a form") from error
    if not isinstance(fields, dict):
        raise ApiError(400, "Invalid request: the body is not a JSON object")
    return {**request.query_params, **fields}


def content_type(request: Request) -> str:
    """Return the content type without its parameters, such as the charset."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def form_of(
    request: Request, bodies: Bodies, max_bytes: int, spool_size: int = 0
) -> tuple[dict[str, Any], UploadFile | None]:
    """Read a multipart form as it arrives; a field that occurs several times is a list.

    Args:
        request: the request with the form.
        bodies: reads the body.
        max_bytes: the maximum size in bytes of the form.
        spool_size: the size from which the file of the form is written to disk; 0 is never.

    Raises:
        ApiError: 400, the form is invalid; also the errors of `Bodies.stream`.
    """
    stream = bodies.stream(request, max_bytes)
    try:
        parser = MultiPartParser(request.headers, stream, max_files=1, max_fields=MOST_FIELDS, max_part_size=max_bytes)
        parser.spool_max_size = spool_size
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
    return encodable(_single_values(texts)), file if isinstance(file, UploadFile) else None


def _single_values(fields: dict[str, list[str]]) -> dict[str, Any]:
    """Return the fields of a form; those that occur once have a text, the others a list."""
    single_values = {key: values[0] for key, values in fields.items() if len(values) == 1}
    return fields | single_values


def encodable(value: Any) -> Any:
    """Replace lone surrogates by ?: JSON may contain them as escapes, but no answer in UTF-8 can."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [encodable(item) for item in value]
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    return value


AnyFields = TypeVar("AnyFields", bound="Fields")


def refused(message: str) -> PydanticCustomError:
    """Return the error of a validator that refuses a field with this message."""
    return PydanticCustomError("refused", "{message}", {"message": message})


def are_texts(values: Iterable[Any]) -> bool:
    """Return whether all values are texts."""
    return all(isinstance(value, str) for value in values)


def as_list(value: Any) -> list[Any]:
    """Return a value that is a list, or a list of the value alone."""
    return value if isinstance(value, list) else [value]


def _text(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        raise refused(f"Invalid request: {info.field_name} is not a text")
    return value


def _whole_number(value: Any, info: ValidationInfo) -> int:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:  # from a form or the query
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise refused(f"Invalid request: {info.field_name} is not a whole number")
    return value


def _flag(value: Any, info: ValidationInfo) -> bool:
    if value in (True, "true"):
        return True
    if value in (False, "false"):
        return False
    raise refused(f"Invalid request: {info.field_name} is neither true nor false")


class TextOrTexts(NamedTuple):
    """The texts of a field."""

    texts: list[str]
    is_list: bool
    """Whether the field was a list, rather than one text."""


def _texts(value: Any, info: ValidationInfo) -> TextOrTexts:
    options: ServerOptions = info.context.options  # type: ignore[union-attr]
    texts = as_list(value)
    if not are_texts(texts):
        raise refused(f"Invalid request: {info.field_name} is neither a text nor a list of texts")
    if len(texts) > options.texts:
        raise refused(f"Invalid request: {len(texts)} texts exceed the limit of {options.texts}")
    characters = sum(map(len, texts))
    if characters > options.characters:
        raise refused(f"Invalid request: {characters} characters exceed the limit of {options.characters}")
    return TextOrTexts(texts, isinstance(value, list))


def _text_of_request(value: str, info: ValidationInfo) -> str:
    _texts(value, info)
    return value


def check_method(value: str, further: Packages = NO_PACKAGES) -> str:
    """Return the name of a method of explanation; `further` is that of `available_methods`.

    Raises:
        PydanticCustomError: the server has no such method.
    """
    if value not in methods_of_server(further):
        raise refused(f"Invalid request: there is no explanation by {value[:20]!r} here")
    return value


NO_EXPLANATION = "Invalid request: word needs instead_of, which needs explain"
_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_METHODS = ["lime", "erasure", "gradients"]
METHODS = {"type": "string", "enum": _METHODS}
OPTIONAL_METHODS = {"type": "string", "enum": ["", *_METHODS]}
Choice = BeforeValidator(_text)
"""The validator before a `Literal`, which has a message of its own for values that are no text."""
WholeNumber = BeforeValidator(_whole_number)
"""The validator of a whole number from 0 on; in a form or the query, decimal digits."""
Flag = Annotated[bool, BeforeValidator(_flag, json_schema_input_type=bool)]
"""True or false; in a form or the query, `true` or `false`."""
Texts = Annotated[TextOrTexts, PlainValidator(_texts), WithJsonSchema({"oneOf": [_TEXT, _TEXTS]})]
"""A text or a list of texts, within the limits of the server."""
TextList = Annotated[TextOrTexts, PlainValidator(_texts), WithJsonSchema(_TEXTS)]
"""The same; only lists are described."""
LimitedText = Annotated[str, AfterValidator(_text_of_request)]
"""A text within the limit of the server."""
Contrasted = Annotated[str, Field(max_length=MAX_WORD_LENGTH), AfterValidator(str.strip)]
"""A word or a label that is contrasted with another one."""
Source = Annotated[str, Field(description="a language code, or auto")]
ModelName = Annotated[str, Field(description="a name from /models")]
Upload = Annotated[UploadFile, WithJsonSchema({"type": "string", "format": "binary"})]


def at_most(name: str, value: int, maximum: int) -> int:
    """Return a number of a request, whose maximum depends on the server.

    Raises:
        ApiError: 400, it is larger.
    """
    if value > maximum:
        raise ApiError(400, f"Invalid request: {name} is more than {maximum}")
    return value


def methods_of_server(further: Packages = NO_PACKAGES) -> list[str]:
    """Return the methods of explanation that this server has; none without PyTorch."""
    if not has_pytorch():
        return []
    from translucid.inspection.explain import available_methods

    return list(available_methods(further))


class Usage:
    """Metrics of what is translated, by language pair, such as `en-es`."""

    def __init__(self) -> None:
        """Begin at 0."""
        counter = prometheus_client.Counter
        self.texts = counter("translucid_texts_total", "Texts to translate", ["pair"], registry=None)
        self.characters = counter("translucid_characters_total", "Their characters", ["pair"], registry=None)

    def count(self, pair: str, texts: Sequence[str]) -> None:
        """Count texts that are translated."""
        self.texts.labels(pair).inc(len(texts))
        self.characters.labels(pair).inc(sum(map(len, texts)))


@dataclass(frozen=True)
class RequestContext:
    """The shared objects of the server, which handlers and requests use."""

    catalog: Catalog
    options: ServerOptions
    rate_limits: RateLimits
    memory: ServerMemory | None = None
    """The translation memory of clients whose key has none of its own."""
    key_memories: Mapping[Path, ServerMemory] = field(default_factory=dict)
    """Those of API keys, by file."""
    lessons: bool = False
    """Whether the server has the interactive lessons."""
    bodies: Bodies = field(default_factory=Bodies)
    worker_pool: WorkerPool = field(default_factory=WorkerPool)
    usage: Usage = field(default_factory=Usage)
    live_sessions: LiveSessions = field(default_factory=LiveSessions)

    def close(self) -> None:
        """Finish all work, then close the memory, which work uses until its end."""
        self.catalog.close()
        self.worker_pool.close()
        for memory in self.all_memories:
            memory.close()

    @property
    def all_memories(self) -> list[ServerMemory]:
        """All open memories."""
        return [memory for memory in (self.memory, *self.key_memories.values()) if memory]

    def memory_of(self, client: str) -> ServerMemory | None:
        """Return the translation memory of a client: that of its key, or else the server's."""
        kind, _, key = client.partition(" ")
        if kind != "key":
            return self.memory
        if key not in self.options.api_keys:  # it has been removed since the client's document was sent
            return None
        settings = self.options.api_keys[key]
        return self.key_memories[settings.memory] if settings and settings.memory else self.memory

    def with_memory(self, served: AnyServed, client: str) -> AnyServed:
        """Return a translator with the translation memory of a client, as this memory changes it."""
        memory = self.memory_of(client)
        if memory is None or not memory.is_between(served.source, served.target):
            return served
        if isinstance(served, Served):
            return replace(served, memory=memory, translator=memory.changed(served.translator))
        return replace(served, memory=memory)


class RequestTask(Task):
    """All work of one request; it is also over when the client has disconnected."""

    def __init__(
        self, context: RequestContext, request: Request | None, client: str, seconds: float | None = None
    ) -> None:
        """Start the time limit, which is that of the server's options unless it is given.

        Without a request, the work has no connection: whoever waits for it cancels it.
        """
        super().__init__(client, context.options.seconds if seconds is None else seconds)
        self.context, self.request = context, request

    def count(self, served: AnyServed, texts: Sequence[str]) -> None:
        """Count texts that this request translates, for the metrics and the log."""
        pair = f"{served.source}-{served.target}"
        self.context.usage.count(pair, texts)
        if self.request:
            self.request.scope.setdefault(WORK, Counter())[pair] += sum(map(len, texts))

    def with_memory(self, served: AnyServed) -> AnyServed:
        """Return a translator with the client's translation memory."""
        return self.context.with_memory(served, self.client)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do a part of the work in the worker pool, and wait for its result; raises the errors of `result`."""
        return await self.result(self.context.worker_pool.submit(self, work))

    async def result(self, future: Future[Result]) -> Result:
        """Wait for a part of the work until the time limit, or until the client disconnects.

        Raises:
            ApiError: 503, the work took too long.
            ClientLeft: the client has disconnected.
        """
        wrapped = asyncio.wrap_future(future)
        disconnected = asyncio.ensure_future(until_disconnected(self.request))
        try:
            seconds = max(0.0, self.seconds_left())
            futures: set[asyncio.Future[Any]] = {wrapped, disconnected}
            await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if wrapped.done():
                return wrapped.result()
            if disconnected.done():
                raise ClientLeft
            raise Cancelled
        except Cancelled:
            raise ApiError(503, f"It took more than {self.seconds:g} seconds", retry_after=10) from None
        finally:
            if not wrapped.done():
                self.abandoned = True  # the work ends at its next step
                wrapped.cancel()
            disconnected.cancel()


async def until_disconnected(request: Request | None) -> None:
    """Return when the client has disconnected; never without a request."""
    if request is None:
        await asyncio.Future[None]()
        return
    while (await request.receive())["type"] != "http.disconnect":
        pass


@dataclass(frozen=True)
class Call(Generic[AnyFields]):
    """A request that was read and checked.

    FastAPI reads it for a handler with a parameter `call: Call[TranslateFields]`.
    """

    fields: AnyFields
    task: RequestTask

    if not TYPE_CHECKING:

        def __class_getitem__(cls, model):
            return Annotated[cls, Depends(model.read)] if isinstance(model, type) else cls


_MESSAGES = {
    "missing": "missing {name} parameter",
    "string_type": "{name} is not a text",
    "string_too_long": "{size} characters exceed the limit of {max_length}",
    "greater_than_equal": "{name} is less than {ge}",
    "less_than_equal": "{name} is more than {le}",
}
"""The messages of Pydantic's errors."""


class Fields(BaseModel):
    """The fields of a request in JSON, a form or the query. They also describe it in the OpenAPI document.

    A `null` counts as a missing field.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    tag: ClassVar[str] = ""
    """The section of the OpenAPI document, for routes of other models than translators."""
    example: ClassVar[dict[str, Any] | None] = None
    """An example of the fields."""
    answer: ClassVar[type[Response]] = JSONResponse
    """The answer in the OpenAPI document: JSON, or something else."""
    answer_schema: ClassVar[type[BaseModel] | None] = None
    """The contents of the answer, if they are described."""
    messages: ClassVar[Mapping[str, str]] = {}
    """The messages about fields that are missing, or none of their values, where they are not the usual ones."""
    with_null: ClassVar[Collection[str]] = ()
    """The fields in which `null` is a wrong value."""
    light: ClassVar[bool] = False
    """Whether requests take little work: ten of them count as one."""
    content_types: ClassVar[Sequence[str]] = "application/json", "application/x-www-form-urlencoded", FORM
    """The content types of the body."""

    @classmethod
    async def read(cls, request: Request) -> Call[Self]:
        """Read and check a request: the dependency of all handlers.

        Raises:
            ApiError: the request is invalid or refused.
        """
        context: RequestContext = request.app.state.context
        cls.admit(request, context)
        values = await cls.values_of(request, context)
        task = RequestTask(context, request, cls.client_of(request, values, context))
        return Call(cls.of(values, context), task)

    @classmethod
    def admit(cls, request: Request, context: RequestContext) -> None:
        """Refuse requests before their body is read."""

    @classmethod
    async def values_of(cls, request: Request, context: RequestContext) -> dict[str, Any]:
        """Return the values of the fields by name, and of any others."""
        return await read_fields(request, context.bodies, context.options)

    @classmethod
    def client_of(cls, request: Request, values: dict[str, Any], context: RequestContext) -> str:
        """Check the key of a request, and count it; return the client."""
        return context.rate_limits.check(request, values, light=cls.light)

    @classmethod
    def of(cls, values: dict[str, Any], context: RequestContext) -> Self:
        """Return the fields with these values.

        Raises:
            ApiError: 400, a field is missing or invalid; this message is about the first one.
        """
        try:
            return cls.model_validate(values, context=context)
        except ValidationError as invalid:
            error = invalid.errors(include_url=False)[0]
        name, kind, value = str(error["loc"][-1]) if error["loc"] else "", error["type"], error["input"]
        if kind == "refused":
            message = error["msg"]
        elif kind in ("missing", "literal_error") and name in cls.messages:
            message = cls.messages[name].format(value=value)
        elif kind == "literal_error":
            message = f"Invalid request: {name} is none of {', '.join(get_args(cls.model_fields[name].annotation))}"
        else:
            size = len(value) if isinstance(value, str) else 0
            form = _MESSAGES.get(kind, "{name} is invalid")
            message = "Invalid request: " + form.format(name=name, size=size, **error.get("ctx", {}))
        raise ApiError(400, message)

    @model_validator(mode="before")
    @classmethod
    def _null_is_missing(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None or name in cls.with_null}


class UploadFields(Fields):
    """The fields of a form with a file."""

    content_types: ClassVar = (FORM,)

    file: Upload

    @classmethod
    async def values_of(cls, request: Request, context: RequestContext) -> dict[str, Any]:
        """Return the fields of the form, and the file in it, if there is one called `file`."""
        if content_type(request) != FORM:
            raise ApiError(400, "Invalid request: send a form with a file")
        fields, file = await form_of(request, context.bodies, context.options.file_bytes + 20_000, IN_MEMORY)
        return {**fields, "file": file}


FormalityName = Annotated[
    Literal["", "formal", "informal"],
    Choice,
    Field(description="how the translation addresses its reader, for runs with data.formality"),
]


class DocumentFields(UploadFields):
    """A document to translate."""

    source: Source
    target: str

    @property
    def language(self) -> str | None:
        """The source language, None if it is to be detected."""
        return None if self.source == "auto" else self.source


class ContrastFields(Fields):
    """The fields of an explanation of a word, in contrast with another one."""

    instead_of: Contrasted = Field("", description="explain why a word is there and not this one; for one sentence")
    word: Annotated[int, Field(ge=0, le=MAX_WORD_POSITION), WholeNumber] | None = Field(
        None,
        description="the position of that word; by default, where the model came closest to instead_of",
    )

    @property
    def explained_by(self) -> str:
        """The method of the explanation; "" for none."""
        return ""

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if (self.instead_of or self.word is not None) and not (self.instead_of and self.explained_by):
            raise refused(NO_EXPLANATION)
        return self

    def contrast(self, case: ForcedCase) -> Contrast | None:
        """Return the contrast of a word, if the request has one."""
        from translucid.inspection.explain import contrast

        return contrast(case, self.instead_of, self.word) if self.instead_of else None


@dataclass(frozen=True)
class Handlers:
    """The handlers of an API; `routing.py` binds them to their paths."""

    context: RequestContext


async def off_the_loop(size: int, work: Callable[[], Result]) -> Result:
    """Do work whose time depends on the size of a text: in a thread, unless the text is short."""
    if size <= ON_THE_LOOP:
        return work()
    return await run_in_threadpool(work)
