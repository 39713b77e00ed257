"""Lines of files and of standard input: what is read, what is reported, and what is written about bad lines."""

import bz2
import gzip
import io
import json
import lzma
import sys
import tracemalloc
from pathlib import Path

import pytest

from bitext.pair import Pair
from bitext.readers import lines as lines_module
from bitext.readers.lines import BadLine, kind_of, lines, one_line, one_space, refuse_twice, standard_input
from translucid.data.readers.corpus import BadLines, read_pairs
from translucid.data.readers.texts import read_texts
from translucid.ground.errors import UserError

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def set_stdin(monkeypatch):
    """Set the content of standard input; None closes it."""

    def replace(content):
        stream = None if content is None else io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)
        standard_input.cache_clear()

    yield replace
    standard_input.cache_clear()


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
@pytest.mark.parametrize(
    ("content", "kind", "pairs"),
    [
        (b"a\tb\nc\td\n", ".tsv", [("a", "b"), ("c", "d")]),
        (b'\xef\xbb\xbf {"source": "a", "target": "b"}\n', ".jsonl", [("a", "b")]),
        (b"one\ntwo\n", ".txt", None),
    ],
)
def test_standard_input_is_read_again_and_again(set_stdin, content, kind, pairs, pack):
    set_stdin(pack(content))
    for _ in range(2):
        assert kind_of(Path("-")) == kind
        if pairs:
            assert list(read_pairs("-")) == pairs
    if not pairs:
        assert [text.source for text in read_texts("-")] == ["one", "two"]
        with pytest.raises(UserError, match="standard input:1: there is one column only"):
            list(read_pairs("-"))


def test_standard_input_may_be_empty_closed_or_given_twice(set_stdin):
    set_stdin(b"")
    with pytest.raises(UserError, match="standard input: is empty"):
        list(read_texts("-"))
    set_stdin(None)
    with pytest.raises(UserError, match="standard input: is closed"):
        list(read_texts("-"))
    refuse_twice(["-", "a"], None, ["b"])
    with pytest.raises(UserError, match="standard input: can be one corpus and not several"):
        refuse_twice(["-", "a"], None, ["-"])


def test_a_line_is_too_long_from_the_first_byte_above_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 10)
    (tmp_path / "a.txt").write_bytes(b"123456789\n1234567890\n123456789012345678901234567890\n\n1234567890")
    bad = []
    assert list(lines(tmp_path / "a.txt", bad.append)) == ["123456789", None, None, "", "1234567890"]
    assert [(bad_line.line, bad_line.what) for bad_line in bad] == [
        (2, "is longer than 10 bytes"),
        (3, "is longer than 10 bytes"),
    ]


def test_a_byte_order_mark_belongs_to_the_first_line_only(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\r\n\xef\xbb\xbftwo\r")
    assert list(lines(tmp_path / "a.txt", None)) == ["one\r", "\ufefftwo"]


def test_the_beginning_of_a_bad_line_is_reported(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"\xff" + b"x" * 600 + b"\n" + b"y" * 600 + b"\r\n" + "é\r\n".encode())
    bad = []
    assert list(read_pairs(tmp_path / "a.tsv", on_bad=bad.append)) == []
    assert [bad_line.text for bad_line in bad] == ["\\xff" + "x" * 496, "y" * 500, "é"]
    assert [bad_line.line for bad_line in bad] == [1, 2, 3]
    assert {bad_line.file for bad_line in bad} == {str(tmp_path / "a.tsv")}
    assert bad[0].what == "not UTF-8 (invalid start byte)"


def test_one_line_of_text():
    assert one_line("a\nb\r\ud800é") == "a b\r?é"
    assert one_space(" \n a\t \r\nb\u00a0 c ") == "a b\u00a0 c"


FIRST_BAD, SECOND_BAD = BadLine("a.tsv", 1, "what", "é\udcff"), BadLine("b.tsv", 2, "why", "x")


def names(folder):
    return [file.name for file in folder.iterdir()]


def rows(file):
    return [tuple(json.loads(line).values()) for line in file.read_text(encoding="utf-8").splitlines()]


def test_bad_lines_are_counted_and_written(tmp_path):
    file, bad = tmp_path / "bad.jsonl", BadLines()
    bad(SECOND_BAD)
    assert bad.count == 1
    with bad.written_to(file):
        assert bad.count == 0
        bad(FIRST_BAD)
        bad(SECOND_BAD)
        assert not file.exists() and len(names(tmp_path)) == 1
    assert bad.count == 2 and names(tmp_path) == ["bad.jsonl"]
    assert rows(file) == [tuple(FIRST_BAD), tuple(SECOND_BAD)]
    bad(FIRST_BAD)
    assert bad.count == 3 and len(rows(file)) == 2
    bad.validation_lines = [FIRST_BAD]
    with bad.written_to(file):
        pass
    assert bad.count == 0 and len(rows(file)) == 1
    bad.validation_lines = []
    with bad.written_to(file):
        pass
    assert names(tmp_path) == []
    with bad.written_to(file):
        pass
    assert names(tmp_path) == []


def test_a_failure_leaves_the_file_of_bad_lines_unchanged(tmp_path):
    file, bad = tmp_path / "bad.jsonl", BadLines()
    file.write_text("before")
    with pytest.raises(ValueError, match="non-negative"), bad.written_to(file):
        bad(BadLine("a", 1, "", (10).to_bytes(-1, "big").hex()))
    assert file.read_text() == "before" and names(tmp_path) == ["bad.jsonl"]
    bad(FIRST_BAD)  # the stream is closed by now
    with pytest.raises(UserError, match="can't be written"), bad.written_to(tmp_path / "none" / "bad.jsonl"):
        pass


def test_columns_and_objects_without_a_value(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\tc\n \t\n\nx\t\n")
    assert list(read_pairs(tmp_path / "a.tsv")) == [("a", "b"), (" ", ""), ("", ""), ("x", "")]
    (tmp_path / "a.jsonl").write_text(
        '{"source": "a", "target": 1}\n{"source": 1, "target": "b"}\n3\n{"target": "b"}\n'
    )
    bad = []
    assert list(read_pairs(tmp_path / "a.jsonl", on_bad=bad.append)) == []
    assert [bad_line.what for bad_line in bad] == [
        *["source and target must be strings"] * 2,
        *["has no source or no target"] * 2,
    ]
    assert Pair("a", "b").swapped == Pair("b", "a")


@pytest.mark.parametrize("packing", PACKERS)
def test_compressed_files_are_unpacked_also_in_several_parts(tmp_path, packing):
    pack = PACKERS[packing]
    content = [f"{number} {number * number}" for number in range(30_000)]
    half = len(content) // 2
    parts = ["".join(f"{line}\n" for line in part).encode() for part in (content[:half], content[half:])]
    file = tmp_path / f"a.txt{packing.upper()}"
    file.write_bytes(b"".join(map(pack, parts)))
    assert list(lines(file, None)) == content
    assert kind_of(file) == ".txt"


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: b"plain\n", lambda packed: packed[:40]])
def test_damaged_files_are_reported(tmp_path, packing, damage):
    file = tmp_path / f"a.txt{packing}"
    file.write_bytes(damage(PACKERS[packing](b"".join(b"%d\n" % (n * n) for n in range(2000)))))
    with pytest.raises(UserError, match=f"a.txt{packing}: is damaged or not (gzip|bzip2|xz) "):
        list(lines(file, None))


@pytest.mark.parametrize("packing", PACKERS)
def test_a_small_file_of_many_lines_needs_little_memory(tmp_path, packing):
    file = tmp_path / f"a.txt{packing}"
    file.write_bytes(PACKERS[packing](b"a\n" * 6_000_000))
    tracemalloc.start()
    try:
        with lines_module.opened(file) as stream:
            for _ in range(100_000):
                stream.readline()
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_file_that_asks_for_much_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "UNPACKING_MEMORY", 1 << 20)
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(b"a\n", preset=9))
    with pytest.raises(UserError, match="more than 1 MiB of memory to unpack"):
        list(lines(tmp_path / "a.txt.xz", None))


def test_standard_input_of_another_compression_is_named(set_stdin):
    set_stdin(b"\x28\xb5\x2f\xfd and so on")
    with pytest.raises(UserError, match=r"standard input: is compressed \(\.zst\)"):
        list(read_pairs("-"))
