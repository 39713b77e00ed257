"""Bodies and fields of requests: which are accepted, their limits of size and time, and the error messages."""

import asyncio
import io
import json
from types import SimpleNamespace
from typing import Annotated, ClassVar, Literal

import pytest
from pydantic import AfterValidator, Field, create_model
from starlette.datastructures import UploadFile
from starlette.requests import Request

from translucid.captions.fields import read_image
from translucid.captions.kinds import PACKAGES
from translucid.serving import requests as incoming
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import (
    IN_MEMORY,
    MOST_FIELDS,
    SMALL,
    Bodies,
    Choice,
    DocumentFields,
    Fields,
    Flag,
    LimitedText,
    Texts,
    UploadFields,
    WholeNumber,
    at_most,
    check_method,
    read_fields,
)
from translucid.serving.routes.inspection_fields import LookFields
from translucid.serving.server_options import ServerOptions

from . import refusals

OPTIONS = ServerOptions(characters=10, texts=3, file_bytes=1000, image_bytes=100)
FIELDS_LIMIT = 12 * 10 + 20_000
"""Maximum number of bytes of a request without a file under these options."""
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"


def request(*chunks, kind=JSON, query="", wait=0.0, **headers):
    """Return a request whose body arrives in chunks; `wait` seconds pass before each chunk after the first."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive():
        if len(messages) <= len(chunks):
            await asyncio.sleep(wait)
        return messages.pop(0)

    pairs = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    encoded = [(name.encode(), value.encode()) for name, value in pairs.items() if value is not None]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": query.encode(), "headers": encoded}
    return Request(scope, receive)


def fields_of(*chunks, options=OPTIONS, **arguments):
    return asyncio.run(read_fields(request(*chunks, **arguments), Bodies(), options))


def refusal_of(work, *arguments, **keywords):
    """Return the status and the message with which a call is refused."""
    return refusals.refusal_of(work, *arguments, **keywords)[:2]


def multipart(*parts):
    """Return a form of (name, content) pairs, or of (name, file name, content)."""
    body = b""
    for name, *file, content in parts:
        disposition = f'form-data; name="{name}"' + "".join(f'; filename="{file_name}"' for file_name in file)
        body += b"--x\r\nContent-Disposition: " + disposition.encode() + b"\r\n\r\n" + content + b"\r\n"
    return body + b"--x--\r\n"


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b'{"q": "a", "n": [1, true, null]}', JSON, {"q": "a", "n": [1, True, None]}),
        (b'{"q": "a"}', "Application/JSON; charset=utf-8", {"q": "a"}),
        (b' \n{"q": "a"}', None, {"q": "a"}),
        (b"q=a&q=b&s=&t=%C3%A9", None, {"q": ["a", "b"], "s": "", "t": "é"}),
        (b"q=a+b&target=es", FORM, {"q": "a b", "target": "es"}),
        (b"", FORM, {}),
        (multipart(("q", b"a"), ("q", b"b"), ("s", b"")), MULTIPART, {"q": ["a", "b"], "s": ""}),
        (multipart(("q", "é".encode()), ("file", "a.txt", b"x")), MULTIPART, {"q": "é"}),
        (b'{"a\\ud800": ["\\udfff", {"b": "\\ud83d\\ude00"}]}', JSON, {"a?": ["?", {"b": "😀"}]}),
    ],
)
def test_fields_of_bodies_of_each_kind(body, kind, expected):
    assert fields_of(body, kind=kind) == expected
    assert fields_of(body[:3], body[3:], kind=kind, query="first=1&second=2") == {
        "first": "1",
        "second": "2",
        **expected,
    }


def test_a_field_in_the_body_overrides_the_same_field_in_the_query():
    for body, kind in ((b'{"q": "body"}', JSON), (b"q=body", FORM), (multipart(("q", b"body")), MULTIPART)):
        assert fields_of(body, kind=kind, query="q=query") == {"q": "body"}


@pytest.mark.parametrize(
    ("body", "kind", "status", "message"),
    [
        (b"{", JSON, 400, "the body is neither JSON nor a form"),
        (b"\xff", FORM, 400, "the body is neither JSON nor a form"),
        (b"[" * 20_000, JSON, 400, "the body is neither JSON nor a form"),
        (b"[]", JSON, 400, "the body is not a JSON object"),
        (b"3", JSON, 400, "the body is not a JSON object"),
        (b"{}", "text/plain", 415, "send application/json or a form, not text/plain"),
        (b"{}", "x" * 60, 415, "send application/json or a form, not " + "x" * 50),
        (b"--y\r\n", MULTIPART, 400, "the form can't be read"),
        (multipart(("q", b"a")), "multipart/form-data", 400, "the form can't be read"),
        (multipart(("a", "a.txt", b"1"), ("b", "b.txt", b"2")), MULTIPART, 400, "the form can't be read"),
    ],
)
def test_bodies_that_cannot_be_read(body, kind, status, message):
    assert refusal_of(fields_of, body, kind=kind) == (status, f"Invalid request: {message}")


def test_the_number_of_fields_in_a_form_is_limited():
    parts = [(f"f{i}", b"") for i in range(MOST_FIELDS)]
    assert MOST_FIELDS == 1000
    options = ServerOptions(characters=10_000)
    assert len(fields_of(multipart(*parts), kind=MULTIPART, options=options)) == MOST_FIELDS
    too_many = multipart(*parts, ("one more", b""))
    assert refusal_of(fields_of, too_many, kind=MULTIPART, options=options) == (
        400,
        "Invalid request: the form can't be read",
    )


@pytest.mark.parametrize("announced", [True, False])
def test_the_size_of_a_body_is_limited(announced):
    too_large = (413, f"Invalid request: more than {FIELDS_LIMIT} bytes")
    for size in (FIELDS_LIMIT, FIELDS_LIMIT + 1):
        body = json.dumps({"q": "x"}).encode().ljust(size)
        length = {"content_length": str(size)} if announced else {}
        if size == FIELDS_LIMIT:
            assert fields_of(body, **length) == {"q": "x"}
        else:
            assert refusal_of(fields_of, body, **length) == too_large
            assert refusal_of(fields_of, body[:20], body[20:], **length) == too_large


@pytest.mark.parametrize(
    ("length", "accepted"),
    [("9" * 5000, False), (f"{2:016}", False), (f"{2:015}", True), ("-1", True), ("x", True)],
)
def test_an_announced_length_may_be_anything(length, accepted):
    if accepted:
        assert fields_of(b"{}", content_length=length) == {}
    else:  # refused before any byte is read
        unread = request(content_length=length)
        unread._receive = None
        assert refusal_of(asyncio.run, Bodies().read(unread, 100)) == (413, "Invalid request: more than 100 bytes")


def test_a_body_that_stops_arriving_is_refused():
    slow = request(b"{", b"}", wait=60)
    waiting = asyncio.wait_for(Bodies(seconds=0.05).read(slow, 100), 10)
    assert refusal_of(asyncio.run, waiting) == (408, "The body took more than 0.05 seconds to come in")


def test_each_byte_of_a_body_adds_to_its_time(monkeypatch):
    assert (incoming.SECONDS, incoming.SLOWEST) == (30, 100_000)
    monkeypatch.setattr(incoming, "SLOWEST", 1000)
    body = [b"x" * 100] * 3  # each chunk adds a tenth of a second to the limit
    assert asyncio.run(Bodies(seconds=0.03).read(request(*body, wait=0.07), 1000)) == b"x" * 300
    monkeypatch.setattr(incoming, "SLOWEST", 100_000)
    waiting = asyncio.wait_for(Bodies(seconds=0.03).read(request(*body, wait=0.07), 1000), 10)
    assert refusal_of(asyncio.run, waiting)[0] == 408


def test_large_bodies_are_counted_together_until_they_are_answered():
    bodies = Bodies(max_total_bytes=2 * SMALL + 2)
    small, first, second, third = (request(*body) for body in ([b"x" * SMALL], *[[b"x" * SMALL, b"x"]] * 3))
    for body_request in (small, first, second):
        asyncio.run(bodies.read(body_request, 10 * SMALL))
    assert SMALL == 65_536 and bodies.total_bytes == 2 * SMALL + 2
    with pytest.raises(ApiError) as error:
        asyncio.run(bodies.read(third, 10 * SMALL))
    assert (error.value.status, error.value.retry_after) == (503, 10)
    assert error.value.message == "The server is busy with large requests, please come again"
    for body_request, expected_bytes in (
        (third, 2 * SMALL + 2),
        (small, 2 * SMALL + 2),
        (first, SMALL + 1),
        (first, SMALL + 1),
        (second, 0),
    ):
        bodies.release(body_request.scope)
        assert bodies.total_bytes == expected_bytes
    assert Bodies().max_total_bytes == 64 << 20


def upload_of(*parts, kind=MULTIPART, options=OPTIONS):
    context = SimpleNamespace(bodies=Bodies(), options=options)
    values = asyncio.run(UploadFields.values_of(request(multipart(*parts), kind=kind), context))
    return values, values.pop("file")


def test_an_upload_is_a_form_with_a_file():
    fields, file = upload_of(("source", b"en"), ("file", "a.txt", b"content"), ("more", b"1"), ("more", b"2"))
    assert (fields, file.filename, file.file.read()) == ({"source": "en", "more": ["1", "2"]}, "a.txt", b"content")
    assert upload_of(("source", b"en")) == ({"source": "en"}, None)
    assert upload_of(("file", b"a text")) == ({}, None)
    assert upload_of(("other", "a.txt", b"content")) == ({}, None)
    for kind in (JSON, FORM, "image/png", None):
        assert refusal_of(upload_of, kind=kind) == (400, "Invalid request: send a form with a file")


def test_the_size_of_an_upload_is_limited_and_a_large_one_is_not_in_memory():
    overhead = len(multipart(("file", "a.txt", b"")))
    assert upload_of(("file", "a.txt", b"x" * (21_000 - overhead)))[1].size == 21_000 - overhead
    too_large = (413, "Invalid request: more than 21000 bytes")
    assert refusal_of(upload_of, ("file", "a.txt", b"x" * (21_001 - overhead))) == too_large
    for size, on_disk in ((IN_MEMORY, False), (IN_MEMORY + 1, True)):
        _, file = upload_of(("file", "a.txt", b"x" * size), options=ServerOptions())
        assert (IN_MEMORY, file.file._rolled) == (1 << 20, on_disk)


def image_of(*chunks, kind=MULTIPART, query=""):
    return asyncio.run(read_image(request(*chunks, kind=kind, query=query), Bodies(), OPTIONS))


def test_an_image_is_the_body_or_a_file_of_a_form():
    assert image_of(b"pix", b"els", kind="image/png", query="beam=3") == ({"beam": "3"}, b"pixels")
    form = multipart(("beam", b"4"), ("file", "a.png", b"pixels"))
    assert image_of(form, query="beam=3&nbest=2") == ({"beam": "4", "nbest": "2"}, b"pixels")
    refusal = (400, "Invalid request: missing file parameter, an image")
    assert refusal_of(image_of, b"", kind="image/png") == refusal
    assert refusal_of(image_of, multipart(("beam", b"4"))) == refusal
    assert refusal_of(image_of, multipart(("file", "a.png", b""))) == refusal
    for kind, name in ((JSON, JSON), (None, "nothing that says what it is"), ("y" * 60, "y" * 50)):
        message = f"Invalid request: send a form with a file, or an image as image/jpeg, not {name}"
        assert refusal_of(image_of, b"x", kind=kind) == (415, message)


def test_the_size_of_an_image_is_limited():
    assert image_of(b"x" * 100, kind="image/png")[1] == b"x" * 100
    assert image_of(multipart(("file", "a.png", b"x" * 100)))[1] == b"x" * 100
    too_large = (413, "Invalid request: more than 100 bytes")
    assert refusal_of(image_of, b"x" * 101, kind="image/png") == too_large
    assert refusal_of(image_of, multipart(("file", "a.png", b"x" * 101))) == too_large
    overhead = len(multipart(("file", "a.png", b"x"), ("q", b"")))
    assert image_of(multipart(("file", "a.png", b"x"), ("q", b"y" * (20_100 - overhead))))[1] == b"x"
    form = multipart(("file", "a.png", b"x"), ("q", b"y" * (20_101 - overhead)))
    assert refusal_of(image_of, form) == (413, "Invalid request: more than 20100 bytes")


def value_of(kind, value=None, default=..., **names):
    """Return the value of a field `n` of a type, in a request with this value and others."""
    fields = create_model("Example", __base__=Fields, n=(kind, default))
    return fields.of({"n": value, **names}, SimpleNamespace(options=OPTIONS)).n


def message_of(*arguments, **keywords):
    status, message = refusal_of(value_of, *arguments, **keywords)
    assert status == 400
    return message.removeprefix("Invalid request: ")


def test_a_field_that_is_a_text():
    assert [value_of(str, "a"), value_of(str, ""), value_of(str, "a", "other")] == ["a", "", "a"]
    assert [value_of(str, None, "other"), value_of(str, default="", q=3)] == ["other", ""]
    assert message_of(str) == "missing n parameter"
    assert message_of(str, ["a"]) == message_of(str, 3, "other") == "n is not a text"
    assert value_of(Annotated[str, Field(max_length=2)], "ab") == "ab"
    assert message_of(Annotated[str, Field(max_length=2)], "abc") == "3 characters exceed the limit of 2"


def test_a_field_with_certain_values():
    choice = Annotated[Literal["one", "two"], Choice]
    assert [value_of(choice, "two"), value_of(choice, None, "one")] == ["two", "one"]
    assert [message_of(choice, value) for value in ("", 3)] == ["n is none of one, two", "n is not a text"]


def test_the_first_field_in_the_order_of_the_model_is_reported():
    class Example(Fields):
        a: str
        b: Annotated[int, WholeNumber] = 1
        c: str

    values = {"a": "", "b": 2, "c": ""}
    for bad, message in (({"a": 3, "b": ""}, "a is not a text"), ({"b": "x", "c": None}, "b is not a whole number")):
        assert refusal_of(Example.of, {**values, **bad}, None) == (400, f"Invalid request: {message}")
    assert refusal_of(Example.of, {}, None) == (400, "Invalid request: missing a parameter")


def test_a_document_has_a_source_language_or_none():
    file = UploadFile(io.BytesIO())
    for source, language in (("auto", None), ("en", "en")):
        fields = DocumentFields.of({"file": file, "source": source, "target": "es"}, None)
        assert (fields.language, fields.file) == (language, file)
    refusal = (400, "Invalid request: missing file parameter")
    assert refusal_of(DocumentFields.of, {"file": None}, None) == refusal


def test_a_field_that_is_a_method():
    assert check_method("lime") == check_method("lime", PACKAGES) == "lime"
    assert value_of(Annotated[str, AfterValidator(check_method)], "erasure") == "erasure"
    for method in ("m" * 30, ""):
        assert message_of(Annotated[str, AfterValidator(check_method)], method) == (
            f"there is no explanation by {method[:20]!r} here"
        )


@pytest.mark.parametrize(
    ("fields", "is_accepted"),
    [
        ({}, True),
        ({"explain": "erasure"}, True),
        ({"explain": "erasure", "instead_of": " a "}, True),
        ({"explain": "erasure", "instead_of": "a", "word": "0"}, True),
        ({"instead_of": "a"}, False),
        ({"instead_of": " "}, True),
        ({"word": 0, "explain": "erasure"}, False),
        ({"word": 0, "explain": "erasure", "instead_of": " "}, False),
    ],
)
def test_a_contrast_needs_a_word_and_a_method(fields, is_accepted):
    request_fields = {"q": "a", "source": "en", "target": "es", **fields}
    if is_accepted:
        parsed = LookFields.of(request_fields, None)
        assert parsed.instead_of == fields.get("instead_of", "").strip()
    else:
        message = "Invalid request: word needs instead_of, which needs explain"
        assert refusal_of(LookFields.of, request_fields, None) == (400, message)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (2, 2),
        (9, 9),
        ("2", 2),
        (" 9 ", 9),
        ("0" * 18 + "5", 5),
        (1, "is less than 2"),
        (10, "is more than 9"),
        ("10", "is more than 9"),
        ("0" * 19 + "5", "is not a whole number"),
        (-1, "is not a whole number"),
        ("-1", "is not a whole number"),
        ("3.0", "is not a whole number"),
        (3.0, "is not a whole number"),
        (True, "is not a whole number"),
        ([3], "is not a whole number"),
        ("", "is not a whole number"),
    ],
)
def test_a_field_that_is_a_number(value, result):
    kind = Annotated[int, Field(ge=2, le=9), WholeNumber]
    if isinstance(result, int):
        assert value_of(kind, value, 7) == result
    else:
        assert message_of(kind, value, 7) == f"n {result}"


def test_a_number_has_a_default_and_may_be_zero():
    kind = Annotated[int, Field(ge=0), WholeNumber]
    assert [value_of(kind, None, 7), value_of(kind, 0, 7), value_of(kind, "0", 7)] == [7, 0, 0]
    assert at_most("n", 9, 9) == 9
    assert refusal_of(at_most, "n", 10, 9) == (400, "Invalid request: n is more than 9")


def test_a_field_that_is_a_flag():
    flags = [value_of(Flag, value, False) for value in (True, "true", False, "false", None)]
    assert flags == [True, True, False, False, False]
    for value in (2, "True", ""):
        assert message_of(Flag, value, False) == "n is neither true nor false"


def test_a_field_of_one_or_several_texts():
    assert value_of(Texts, "1234567890") == (["1234567890"], False)
    assert value_of(Texts, ["12345", "", "67890"]) == (["12345", "", "67890"], True)
    assert value_of(Texts, []) == ([], True)
    assert value_of(LimitedText, "1234567890") == "1234567890"
    for value, message in (
        (None, "missing n parameter"),
        (3, "n is neither a text nor a list of texts"),
        (["a", 3], "n is neither a text nor a list of texts"),
        ({"a": "b"}, "n is neither a text nor a list of texts"),
        ([""] * 4, "4 texts exceed the limit of 3"),
        (["12345", "678901"], "11 characters exceed the limit of 10"),
        ("12345678901", "11 characters exceed the limit of 10"),
    ):
        assert message_of(Texts, value) == message
    assert message_of(LimitedText, "12345678901") == "11 characters exceed the limit of 10"


def test_messages_of_a_model_about_fields_that_are_missing_or_none_of_the_values():
    class Example(Fields):
        messages: ClassVar = {"a": "no {value:.3} here", "b": "b is needed"}
        with_null: ClassVar = ("a",)

        a: Annotated[Literal["x", "y"], Choice] = "x"
        b: str

    for values, message in (
        ({"a": "abcdef", "b": ""}, "no abc here"),
        ({"a": "x"}, "b is needed"),
        ({"a": None, "b": ""}, "Invalid request: a is not a text"),
        ({"b": 3}, "Invalid request: b is not a text"),
    ):
        assert refusal_of(Example.of, values, None) == (400, message)
