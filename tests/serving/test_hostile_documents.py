"""Hostile documents: each is refused quickly, with a one-line message, and the next document is translated."""

import io
import resource
import time
import zipfile

import pytest

from .test_documents import finished_job, send

TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


def make_zip(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in {"[Content_Types].xml": TYPES, **members}.items():
            with archive.open(name, "w", force_zip64=True) as member:
                for part in content if isinstance(content, list) else [content]:
                    member.write(part.encode())
    return file.getvalue()


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
BOMB = f'<!DOCTYPE xliff [<!ENTITY e0 "ha">{ENTITIES}]><xliff version="1.2">&e11;</xliff>'
OUTSIDE = '<!DOCTYPE xliff [<!ENTITY e SYSTEM "file:///etc/passwd">]><xliff version="1.2">&e;</xliff>'
WORD = "word/document.xml"
HOSTILE = {
    "a zip bomb": ("a.docx", lambda: make_zip({WORD: ["0" * (1 << 20)] * 300})),
    "many members": ("a.docx", lambda: make_zip({f"word/{i}.xml": "x" for i in range(20_000)})),
    "a member outside": ("a.docx", lambda: make_zip({"../../etc/passwd": "x", WORD: "<w:document/>"})),
    "no zip": ("a.docx", lambda: b"PK\3\4" + b"x" * 5000),
    "entities": ("a.xliff", lambda: BOMB.encode()),
    "an entity from a file": ("a.xliff", lambda: OUTSIDE.encode()),
    "deep XML": ("a.xliff", lambda: b"<xliff>" + b"<g>" * 100_000),
    "deep JSON": ("a.json", lambda: b'{"a":' * 100_000),
    "aliases": ("a.yaml", lambda: b"a: &a [x,x,x,x]\n" + b"".join(b"b%d: [*a,*a,*a,*a]\n" % i for i in range(9))),
    "deep HTML": ("a.html", lambda: b"<div>" * 200_000),
    "no text": ("a.txt", lambda: bytes(range(256)) * 100),
    "endless subtitles": ("a.srt", lambda: b"1\n00:00:00,000 --> 00:00:01,000\nx\n\n" * 3_000),
    "one line of everything": ("a.txt", lambda: b"word " * 1_000_000),
}


@pytest.fixture
def client(serve):
    """A client for a server with a low limit of segments, so that exceeding it takes little time."""
    return serve(document_segments=2_500)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_document_is_refused_in_one_line_and_others_are_served(client, kind):
    name, make = HOSTILE[kind]
    content = make()
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    status = finished_job(client, send(client, content, name).json())
    if kind == "aliases":  # aliases are kept as aliases
        assert (status["state"], status["segments"]) == ("done", 4)
    else:
        assert status["state"] == "failed", status
        assert name in status["error"]
    assert "\n" not in status["error"] and "Internal" not in status["error"], status["error"]
    assert "root:" not in status["error"]
    # Processor time, with a large margin for a busy machine: only a missing limit exceeds it.
    assert time.process_time() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kilobytes
    response = send(client, b"I sing.\n", path="/translate_file")
    assert response.status_code == 200


def test_every_kind_that_is_offered_has_a_reader(client):
    formats = client.get("/frontend/settings").json()["supportedFilesFormat"]
    assert len(formats) > 20
    for ending in formats:
        status = finished_job(client, send(client, b"\x00\xff\xfe\x00 {", f"a{ending}").json())
        assert status["state"] == "failed" or ending == ".properties", (ending, status)  # .properties files are Latin-1
        assert "Internal" not in status["error"], (ending, status)
