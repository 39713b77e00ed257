"""Damaged and crafted SentencePiece files, loaded in a process that may crash in SentencePiece's C++."""

from __future__ import annotations

import random
import select
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from bitext.pair import Pair
from tests.probes.hostile.damage import damaged
from tests.probes.hostile.tally import Tally
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

SECONDS = 20
REFUSED, ACCEPTED, FAILED = b"r", b"a", b"f"
TEXTS = [
    "I like soccer",
    "",
    "Hello wörld ﬁ １２ ½ \u3000 ا ﷺ ｶﾞ 漢字 \U0001f600" * 5,
    "x" * 500,
    "▁<s>",
    "e\u0301" * 50,
]


def fuzz(count: int, seed: int) -> Tally:
    """Load `count` files with SentencePiece, without the fingerprint check of a run."""
    tally = Tally("vocabularies")
    pairs = [Pair(p.source, p.target) for p in generate(100, max_words=8)]
    intact: list[bytes] = []
    with tempfile.TemporaryDirectory() as name:
        for variant in ({}, {"kind": "unigram"}, {"normalization": "identity"}):
            Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150, **variant), seed=1).save(Path(name))
            intact.append((Path(name) / "tokenizer.model").read_bytes())
    worker = _Worker()
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        content = chance.choice([_damaged, _recomposed, _recomposed])(chance.choice(intact), chance)
        tally.tried += 1
        verdict, problem = worker.show(content)
        if verdict == REFUSED:
            tally.refused += 1
        elif verdict == ACCEPTED:
            tally.accepted += 1
        else:
            tally.fail(f"seed {seed}, number {number}", problem)
            if verdict != FAILED:
                worker = _Worker()
    worker.close()
    return tally


def _damaged(content: bytes, chance: random.Random) -> bytes:
    """Damage mostly the pieces, as the normalization table is by far the larger part."""
    if chance.random() < 0.5:
        return damaged(content, chance)
    pieces = min(len(content), 3000)
    return damaged(content[:pieces], chance) + content[pieces:]


def _recomposed(content: bytes, chance: random.Random) -> bytes:
    """Change fields of the protocol buffer and keep their lengths valid, so that its parser accepts them."""
    fields = _fields(content)
    for _ in range(chance.choice([1, 1, 2, 8])):
        i = chance.randrange(len(fields))
        tag, value = fields[i]
        what = chance.randrange(6)
        if what == 0:
            large = isinstance(value, bytes) and len(value) > 1000
            fields[i : i + 1] = [fields[i]] * chance.choice([0, 2, 2 if large else 1000])
        elif what == 1:
            j = chance.randrange(len(fields))
            fields[i], fields[j] = fields[j], fields[i]
        elif isinstance(value, bytes):
            fields[i] = tag, _inner(value, chance)
        else:
            fields[i] = tag, chance.choice([0, 1, 2**31, 2**63])
        if not fields:
            break
    return b"".join(_written(tag, value) for tag, value in fields)


def _inner(content: bytes, chance: random.Random) -> bytes:
    """Change a nested message: a piece with score and kind, or the specification of a trainer or normalizer."""
    try:
        fields = _fields(content)
    except (IndexError, ValueError):
        return damaged(content, chance)
    if not fields:
        return chance.randbytes(4)
    i = chance.randrange(len(fields))
    tag, value = fields[i]
    if isinstance(value, int):
        new: int | bytes = chance.choice([0, 1, 2, 3, 4, 5, 6, 7, 2**31, 2**32 - 1, 2**63])
    elif tag & 7 == 5:
        new = struct.pack("<f", chance.choice([0.0, float("nan"), float("inf"), -1e38, 1e38]))
    elif len(value) > 10_000:
        # The table of normalization: its length, and the units of its double array.
        words = bytearray(value)
        for _ in range(chance.choice([1, 4, 64])):
            where = 4 * chance.randrange(chance.choice([1, 300, len(words) // 4]))
            words[where : where + 4] = (
                int.from_bytes(words[where : where + 4], "little") ^ 1 << chance.randrange(32)
            ).to_bytes(4, "little")
        new = bytes(words)
    else:
        long = chance.choice([b"x", "▁".encode(), "é".encode()]) * chance.choice([100, 100_000, 3_000_000])
        new = chance.choice(
            [b"", b"\x00", b"\xff", b" ", b"\n", "▁".encode(), "▁".encode() * 50, b"<0x0A>", b"</s>", b"a\tb", long]
        )
    fields[i] = tag, new
    return b"".join(_written(tag, value) for tag, value in fields)


def _fields(content: bytes) -> list[tuple[int, int | bytes]]:
    """Split a protocol buffer into fields (tag, value)."""
    fields: list[tuple[int, int | bytes]] = []
    offset = 0
    while offset < len(content):
        tag, offset = _number(content, offset)
        if tag & 7 == 0:
            value, offset = _number(content, offset)
            fields.append((tag, value))
            continue
        if tag & 7 not in (1, 2, 5):
            raise ValueError(tag)
        size, offset = _number(content, offset) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], offset)
        if offset + size > len(content):
            raise ValueError(size)
        fields.append((tag, content[offset : offset + size]))
        offset += size
    return fields


def _number(content: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[offset] & 127) << shift
        offset, shift = offset + 1, shift + 7
        if content[offset - 1] < 128:
            return value, offset


def _written(tag: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(tag) + _varint(value)
    return _varint(tag) + (_varint(len(value)) if tag & 7 == 2 else b"") + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


class _Worker:
    """A process that loads files and reports each result; a crash or time-out is a failure."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.probes.hostile.vocabularies"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def show(self, content: bytes) -> tuple[bytes, str]:
        assert self.process.stdin and self.process.stdout and self.process.stderr
        try:
            self.process.stdin.write(struct.pack("<q", len(content)) + content)
            self.process.stdin.flush()
        except BrokenPipeError:
            return b"", "the process is dead"
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS + 20)
        if not ready:
            self.process.kill()
            return b"", f"no answer within {SECONDS} seconds"
        verdict = self.process.stdout.read(1)
        if not verdict:
            self.process.wait()
            return b"", f"the process died: {self.process.returncode} {self.process.stderr.read()[-500:]!r}"
        (size,) = struct.unpack("<q", self.process.stdout.read(8))
        return verdict, self.process.stdout.read(size).decode()

    def close(self) -> None:
        self.process.communicate()


def _work() -> None:
    from tests.probes.hostile.memory import memory_ceiling

    with memory_ceiling(1 << 30), tempfile.TemporaryDirectory() as name:
        while header := sys.stdin.buffer.read(8):
            content = sys.stdin.buffer.read(*struct.unpack("<q", header))
            tally = Tally("one")
            tally.attempt("", lambda content=content: _use(Path(name), content), SECONDS)  # type: ignore[misc]
            verdict = FAILED if tally.failures else REFUSED if tally.refused else ACCEPTED
            problem = "".join(tally.failures).encode()
            sys.stdout.buffer.write(verdict + struct.pack("<q", len(problem)) + problem)
            sys.stdout.buffer.flush()


def _use(folder: Path, content: bytes) -> None:
    """Use a tokenizer as the commands do."""
    (folder / "tokenizer.model").write_bytes(content)
    tokenizer = Tokenizer.load(folder)
    size = tokenizer.target_size
    tokenizer.target_word_starts()
    for ids in tokenizer.encode_source(TEXTS):
        assert all(0 <= i < size for i in ids)
        tokenizer.source_pieces(ids)
        tokenizer.decode(ids).encode()
    tokenizer.decode(range(min(size, 5000))).encode()
    tokenizer.source_segmenter.normalize(TEXTS[2])
    tokenizer.source_segmenter.ranks()


if __name__ == "__main__":
    _work()
