"""Corpus files of every kind: they are read correctly or rejected."""

from __future__ import annotations

import gzip
import random
import tempfile
from pathlib import Path

from bitext.pair import Pair
from tests.probes.hostile.tally import Tally
from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.readers.corpus import read_lines, read_pairs

PARTS = [
    *(b"\t", b"\t", b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\x0b", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b" ", b""),
    *(
        b'{"source": "a", "target": "b"}',
        b'{"source": "\\ud800\\n", "target": "\\u0000"}',
        b'{"source": [1], "target": {}}',
    ),
    *(
        b'{"source": "a"',
        b'{"target": 1e999, "source": NaN}',
        b"null",
        b"[]",
        b'"source"',
        b"{}",
        b'{"source":' + b"9" * 5000,
    ),
    *(b"[" * 3000, b'{"a":' * 3000, "I like soccer\tMe gusta el fútbol".encode(), "\u2028\u202e\u0085\u3000".encode()),
    *(b"\xed\xa0\x80", b"\xc3", b"\xf8\x88\x80\x80\x80", "👩‍👩‍👧é".encode(), "a".encode("utf-16"), b"x" * 10_000),
]
"""Parts from which bad files are assembled."""
XML_PARTS = [
    *(
        b"<tu>",
        b"</tu>",
        b'<tuv xml:lang="en"><seg>',
        b"</seg></tuv>",
        b"<ph>",
        b"</ph>",
        b'<tu srclang="*all*"/>',
        b"<!--",
    ),
    *(b"<trans-unit>", b"</trans-unit>", b"<unit><segment>", b"<source>a</source>", b'<target state="new">', b"<mrk>"),
    *(b"<g>" * 300, b"&amp;", b"&nbsp;", b"&#0;", b"&#xD800;", b"<![CDATA[", b"]]>", b"<?x ?>", b'<a b="c" b="d"/>'),
    *(
        b'<!DOCTYPE tmx SYSTEM "/etc/passwd">',
        b'<!DOCTYPE tmx [<!ENTITY a "b">]>',
        b"<?xml version='1.0' encoding='x'?>",
    ),
]
PO_PARTS = [
    *(b'msgid "a"\n', b'msgstr "b"\n', b'msgid_plural "c"\n', b'msgstr[0] "d"\n', b"msgstr[", b'msgctxt "e"\n'),
    *(
        b'"more"\n',
        b'"\\',
        b'"a"b"\n',
        b"#, fuzzy\n",
        b'#~ msgid "f"\n',
        b"#| x\n",
        b"/etc/passwd\n",
        b'msgstr "\\x\\"\n',
    ),
]
NAMES = ["c.tsv", "c.jsonl", "c.{en,de}", "c.po", "c.tmx", "c.xlf"]
LINES = NAMES[:3]
"""Files in which each line is a pair."""
FRAMES = {
    "c.tmx": (b'<tmx><header srclang="en"/><body>', b"</body></tmx>"),
    "c.xlf": (b'<xliff><file source-language="en" target-language="es"><body>', b"</body></file></xliff>"),
}

GOOD = {
    "c.tsv": "I like soccer\tMe gusta el fútbol\n".encode(),
    "c.jsonl": b'{"source": "a", "target": "b"}\n',
    "c.{en,de}": b"a line\n",
    "c.po": 'msgid "I like soccer"\nmsgstr "Me gusta el fútbol"\n\n'.encode(),
    "c.tmx": b'<tu><tuv xml:lang="en"><seg>a<ph>%s</ph></seg></tuv><tuv xml:lang="es"><seg>b</seg></tuv></tu>\n',
    "c.xlf": b'<trans-unit id="1"><source>a</source><target><g>b</g></target></trans-unit>\n',
}


def fuzz(count: int, seed: int) -> Tally:
    """Read `count` bad files."""
    tally = Tally("corpora")
    bombs = 2 + count // 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(bombs):
            _bomb(folder, number, tally, lines=1_000_000 if count > 10_000 else 100_000)
        for number in range(bombs, count):
            case = _drawn(random.Random(f"{seed} {number}"))
            tally.attempt(case, lambda case=case: _read(folder, *case))  # type: ignore[misc]
    return tally


def _drawn(chance: random.Random) -> tuple[str, bytes, bytes, str | None, int]:
    name = chance.choice(NAMES)
    most = chance.choice([1, 1, 2, 12])
    special_parts = XML_PARTS if name in FRAMES else PO_PARTS if name == "c.po" else []

    def bad_part() -> bytes:
        if chance.random() >= 0.8:
            return chance.randbytes(8)
        if special_parts and chance.random() < 0.7:
            return chance.choice(special_parts)
        return chance.choice(PARTS)

    def content() -> bytes:
        lines = [GOOD[name]] * chance.randrange(6)
        bad = [bad_part() for _ in range(chance.randrange(most + 1))]
        parts = [*lines, *bad]
        chance.shuffle(parts)
        before, after = FRAMES.get(name, (b"", b""))
        return b"".join([before, *parts, after] if chance.random() < 0.9 else parts)

    packed = chance.choice([None, None, None, "whole", "cut", "flipped", "garbage"])
    first = content()
    return name, first, first if chance.random() < 0.5 else content(), packed, chance.randrange(1 << 30)


def _read(folder: Path, name: str, content: bytes, other: bytes, packed: str | None, position: int) -> None:
    sides = [content, other] if "{" in name else [content]
    ending = ".gz" if packed else ""
    for side, data in zip(("en", "de") if "{" in name else (name[2:],), sides, strict=True):
        (folder / f"c.{side}{ending}").write_bytes(_packed(data, packed, position) if packed else data)
    file = folder / (name + ending)
    pairs = list(read_pairs(file))
    if packed in (None, "whole") and name in LINES:
        assert {len(pairs)} == {len(data.split(b"\n")) - data.endswith(b"\n") for data in sides}, "a line is lost"
    for text in (text for pair in pairs for text in pair):
        assert isinstance(text, str) and "\n" not in text
        text.encode()
    skipped = Skipped()
    filtered = list(keep(pairs, Filter(), skipped))
    assert len(filtered) == skipped.kept == len(pairs) - skipped.reasons.total()
    skipped.summary()


def _packed(data: bytes, damage: str, position: int) -> bytes:
    packed = bytearray(gzip.compress(data, 1))
    if damage == "cut":
        del packed[position % len(packed) :]
    elif damage == "flipped":
        packed[position % len(packed)] ^= 1 << position % 8
    elif damage == "garbage":
        packed += data or b"\x00"
    return bytes(packed)


def _bomb(folder: Path, number: int, tally: Tally, lines: int) -> None:
    """Try a small file that decompresses to one line of 5 GB, or to very many empty lines."""
    file = folder / "bomb.tsv.gz"
    part, times = (b"x" * 100_000_000, 50) if number % 2 == 0 else (b"\n" * lines, 1)
    file.write_bytes(gzip.compress(part, 1) * times)

    def read() -> None:
        assert {pair == Pair("", "") for pair in read_pairs(file)} == {True}
        assert sum(1 for _ in read_lines(file)) == lines

    tally.attempt(f"{times} times {len(part):,} bytes {part[:1]!r}, packed", read)
