"""Documents of every kind: they round-trip and accept translations, or they are rejected."""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from collections.abc import Callable

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.probes.documents import MAKERS
from tests.probes.hostile.damage import damaged
from tests.probes.hostile.tally import Tally
from tests.probes.packed import packed
from tests.probes.samples import SAMPLES

BITS = [
    *(
        b"<b>",
        b"</b>",
        b"<",
        b">",
        b"&",
        b"&a;",
        b"&#0;",
        b"&#99999999999;",
        b"<!--",
        b"-->",
        b"]]>",
        b"<![CDATA[",
        b"<?",
    ),
    *(
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"{{",
        b"%",
        b"%(",
        b"$",
        b"`",
        b"```\n",
        b"*",
        b"**",
        b"[",
        b"](",
        b"|",
        b"\n---\n",
    ),
    *(
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b"\t",
        b"\0",
        b"\x0c",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"-->",
        b"00:00",
    ),
    *(
        b'msgid "',
        b'msgstr[9] "x"\n',
        b"#, fuzzy\n",
        b"#~ ",
        b"Plural-Forms: nplurals=99999; plural=n/0;\\n",
        b"- ",
        b"? ",
    ),
    *(
        b"&x *x",
        b"!!python/object",
        b"<g>" * 300,
        b"[" * 3000,
        b'{"a":' * 3000,
        b"> " * 2000,
        b"<div>" * 3000,
        b"(" * 3000,
    ),
    *(
        b"{a, plural, " * 500,
        b"*_" * 2000,
        b"`" * 5000,
        b"9" * 5000,
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"\\u",
        b"\\uD800",
    ),
]
"""Fragments that are special in some kind of document."""
BOMB = 20 << 20
"""The unpacked size of a decompression bomb in bytes."""
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)
)
SPOILED = [
    ("entities in entities", lambda text: text.replace("<", f"{ENTITIES}]><", 1).replace("word", "&j;")),
    ("a file of the machine", lambda text: f'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>{text}'),
    ("a document type", lambda text: f'<!DOCTYPE x SYSTEM "file:///etc/passwd">{text.replace("word", "&a;")}'),
    ("endless nesting", lambda text: text.replace("word", "<g>" * 100_000, 1)),
    ("one text without an end", lambda text: text.replace("word", "word <g/>\n" * 100_000, 1)),
    ("characters that are none", lambda text: text.replace("word", "&#0;&#xD800;\x00", 1)),
    ("an encoding that is none", lambda text: text.replace("UTF-8", "zlib_codec").replace("utf-8", "idna")),
]
"""Changes of XML that also work on text."""


def fuzz(count: int, seed: int) -> Tally:
    """Read and fill `count` documents, most of them bad."""
    tally = Tally("documents")
    bombs = _bombs()
    for number in range(count):
        if number < len(bombs):
            what, content = bombs[number]
            tally.attempt(what, lambda content=content: _read("a.docx", content))  # type: ignore[misc]
            continue
        chance = random.Random(f"{seed} {number}")
        what, act = _drawn(chance)
        tally.attempt(f"seed {seed}, number {number}: {what}", act)
    return tally


def _drawn(chance: random.Random) -> tuple[str, Callable[[], object]]:
    name = chance.choice([*MAKERS, *SAMPLES])
    content = MAKERS[name](chance) if name in MAKERS else SAMPLES[name].encode()
    how = chance.choice(["whole", "damaged", "damaged", "a member damaged", "spoiled", "spoiled", "bits"])
    if how == "damaged":
        content = damaged(content, chance)
    elif how == "bits":
        content = _one_changed(content, _with_bits(chance), chance)
    elif how != "whole":
        spoil, change = chance.choice(SPOILED)
        how = f"{how} {spoil}" if how == "spoiled" else how
        change_it = (
            (lambda old: damaged(old, chance))
            if how == "a member damaged"
            else lambda old: change(old.decode("utf-8", "replace")).encode("utf-8", "replace")
        )
        content = _one_changed(content, change_it, chance)
    return f"{name}, {how}", lambda: _read(name, content, intact=how == "whole")


def _with_bits(chance: random.Random) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        for _ in range(chance.choice([1, 1, 2, 5])):
            position = chance.randrange(len(content) + 1)
            content = content[:position] + chance.choice(BITS) + content[position:]
        return content

    return change


def _one_changed(content: bytes, change: Callable[[bytes], bytes], chance: random.Random) -> bytes:
    """Return a file with a change of it, or of a member if it is packed."""
    if not content.startswith(b"PK"):
        return change(content)
    archive = zipfile.ZipFile(io.BytesIO(content))
    members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(list(members))
    return packed({**members, name: change(members[name])}, chance)


def _read(name: str, content: bytes, *, intact: bool = False) -> None:
    """Do with a document what the commands do."""
    try:
        document = read_document(name, content, ("en", "de"))
    except Exception:
        assert not intact, "a good document is refused"
        raise
    assert document.filled({}) == content, "bytes have changed"
    targets = {
        i: Target(TaggedText(segment.source.text[::-1]), confidence=0.5, doubts=("a: b",))
        for i, segment in enumerate(document.segments)
    }
    filled = document.filled(targets)
    if targets and intact:
        assert filled != content
        assert len(read_document(name, filled, ("en", "de")).segments) <= len(targets)


def _bombs() -> list[tuple[str, bytes]]:
    """Return harmful packed files."""
    types = zipfile.ZipFile(io.BytesIO(MAKERS["d.docx"](random.Random(1)))).read("[Content_Types].xml").decode()
    word = {"[Content_Types].xml": types, "word/header1.xml": "<a/>"}
    zeros = "\0" * BOMB
    nested = packed({"a": zeros[: BOMB // 10]})
    return [
        ("a text packed far too well", packed({**word, "word/document.xml": f"<a>{zeros}</a>"})),
        ("an image packed far too well", packed({**word, "word/document.xml": "<a/>", "word/media/a.bmp": zeros})),
        ("a list of types packed far too well", packed({"[Content_Types].xml": zeros})),
        ("many members", packed({**word, **{f"a{i}": "" for i in range(20_000)}})),
        ("members on each other", _overlapping(nested)),
        ("a name that leads out", packed({**word, "../../etc/cron.d/a": "a"})),
        ("an absolute name", packed({**word, "/etc/passwd": "a"})),
        ("macros", packed({**word, "word/vbaProject.bin": "a"})),
        (
            "a size that is a lie",
            packed({**word, "word/document.xml": "a" * 5000}).replace(b"\x88\x13\0\0", b"\1\0\0\0"),
        ),
        ("random bytes with the head of a zip file", b"PK\3\4" + zlib.compress(bytes(100_000))),
    ]


def _overlapping(content: bytes) -> bytes:
    """Return a file whose directory names its one member a thousand times."""
    at, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    entry = content[at:end]
    count = (1000).to_bytes(2, "little")
    tail = bytearray(content[end:])
    tail[8:12] = count * 2
    tail[12:16] = (len(entry) * 1000).to_bytes(4, "little")
    return content[:at] + entry * 1000 + bytes(tail)
