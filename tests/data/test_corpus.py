"""Readers: every format, and every error that a file can have."""

import gzip
import json
import tracemalloc

import pytest

from bitext.pair import Pair
from translucid.data.readers.corpus import read_lines, read_pairs
from translucid.ground.errors import UserError

PAIRS = [Pair("Go.", "Ve."), Pair("", "nada"), Pair("a  b", "ü\u2028ñ")]


def write(folder, name, text):
    content = text.encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_format_gives_the_same_pairs(tmp_path, gz, newline, last, mark):
    def lines(texts):
        return mark + newline.join(texts) + (newline if last else "")

    write(tmp_path, f"c.tsv{gz}", lines([f"{p.source}\t{p.target}\tmore" for p in PAIRS]))
    write(tmp_path, f"c.jsonl{gz}", lines([json.dumps({**p._asdict(), "id": 1}) for p in PAIRS]))
    write(tmp_path, f"c.en{gz}", lines([p.source for p in PAIRS]))
    write(tmp_path, f"c.es{gz}", lines([p.target for p in PAIRS]))
    for name in (f"c.tsv{gz}", f"c.jsonl{gz}", f"c.{{en,es}}{gz}"):
        assert list(read_pairs(tmp_path / name)) == PAIRS, name


@pytest.mark.parametrize("name", ["C.TSV", "c.Jsonl", "C.TSV.GZ", "c.{EN,es}.gz", "C.TMX", "C.XLF.Gz", "C.PO"])
def test_endings_may_have_capitals(tmp_path, name):
    contents = {
        "tsv": "a\tb\n",
        "jsonl": '{"source": "a", "target": "b"}\n',
        "po": 'msgid "a"\nmsgstr "b"\n',
        "tmx": "<tmx><tu srclang='en'><tuv lang='en'><seg>a</seg></tuv><tuv lang='es'><seg>b</seg></tuv></tu></tmx>",
        "xlf": "<xliff><trans-unit><source>a</source><target>b</target></trans-unit></xliff>",
    }
    for file, content in {"c.EN.gz": "a\n", "c.es.gz": "b\n"}.items():
        write(tmp_path, file, content)
    if name[2:] != "{EN,es}.gz":
        content = contents[name[2:].lower().removesuffix(".gz")].encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    assert list(read_pairs(tmp_path / name)) == [Pair("a", "b")]


def test_files_follow_each_other_and_stream(tmp_path):
    write(tmp_path, "a.tsv", "1\teins\n2\tzwei\n")
    write(tmp_path, "b.tsv", "bad\n")
    pairs = read_pairs(tmp_path / "a.tsv", tmp_path / "b.tsv")
    assert next(pairs) == ("1", "eins")
    assert next(pairs) == ("2", "zwei")
    with pytest.raises(UserError, match=r"b\.tsv:1: there is one column only"):
        next(pairs)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.tsv", b"", "is empty"),
        ("c.tsv", b"a\tb\nc\0\td\n", ":2: holds NUL bytes"),
        ("c.tsv", b"a\tb\n\xff\xfe\td\n", ":2: not UTF-8"),
        ("c.tsv", b"a\tb\none column\n", ":2: there is one column"),
        ("c.jsonl", b"{'source'}\n", ":1: not JSON"),
        ("c.jsonl", b"[" * 100_000 + b"\n", ":1: not JSON"),
        ("c.jsonl", b'{"source": ' + b"9" * 5000 + b"}\n", ":1: not JSON"),
        ("c.tsv", b"a\tb\n" + b"x" * 10_000_001, ":2: is longer than 10,000,000 bytes"),
        ("c.tsv.gz", b"not gzip at all", "damaged or not gzip"),
        ("c.tsv.gz", gzip.compress(b"a\tb\n" * 1000, mtime=0)[:-20], "damaged or not gzip"),
        ("c.docx", b"x", r"is a document by its ending.*\.tsv"),
        ("c.sdlxliff", b"x", r"is a translation memory by its ending.*\.tsv"),
        ("c.csv.gz", b"x", r"is a table by its ending.*\.tsv"),
        (
            "c.words",
            b"x",
            r"of no kind that can be read .*Use \.tsv .*, \.tmx, \.po, \.xliff, \.xlf, \.parquet or a Moses pair",
        ),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        list(read_pairs(tmp_path / name))
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_half_a_surrogate_in_json_is_no_character(tmp_path):
    write(tmp_path, "c.jsonl", r'{"source": "a\ud800b\nc", "target": "\ud83d\ude00"}')
    assert list(read_pairs(tmp_path / "c.jsonl")) == [Pair("a?b c", "\U0001f600")]


def test_a_small_file_that_unpacks_to_one_endless_line_is_refused_in_little_memory(tmp_path):
    with gzip.open(tmp_path / "bomb.tsv.gz", "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()
    with pytest.raises(UserError, match=r"bomb\.tsv\.gz:1: is longer than"):
        list(read_pairs(tmp_path / "bomb.tsv.gz"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 90_000_000


@pytest.mark.parametrize("name", ["a\0.tsv", "\ud800.jsonl", "x" * 5000 + ".tsv"])
def test_what_can_be_no_name_of_a_file_is_said(name):
    with pytest.raises(UserError, match="name"):
        list(read_pairs(name))


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        list(read_pairs(tmp_path / "no.tsv"))
    (tmp_path / "d.tsv").mkdir()
    with pytest.raises(UserError, match="Is a directory"):
        list(read_pairs(tmp_path / "d.tsv"))


@pytest.mark.parametrize(("short", "long"), [("en", "es"), ("es", "en")])
def test_a_moses_pair_of_unequal_length_names_both(tmp_path, short, long):
    write(tmp_path, f"c.{short}", "1\n2\n")
    write(tmp_path, f"c.{long}", "1\n2\n3\n4\n")
    with pytest.raises(UserError, match=rf"c\.{long}:3: has 4 lines but .*c\.{short} has 2"):
        list(read_pairs(tmp_path / "c.{en,es}"))


def test_lines_end_at_a_line_feed_only(tmp_path):
    write(tmp_path, "t.txt", "a\rb\x0bc\u2029d\x85e\nf\r\n")
    assert list(read_lines(tmp_path / "t.txt")) == ["a\rb\x0bc\u2029d\x85e", "f"]


def test_real_corpora_are_read_whole(real_data):
    assert sum(1 for _ in read_pairs(real_data / "tatoeba-eng-spa" / "dev.tsv")) == 1720
    assert sum(1 for _ in read_pairs(real_data / "multi30k-en-de" / "val.lc.norm.tok.{en,de}.gz")) == 1014


BAD = {
    "c.tsv": (b"a\tb\none column\n\xff\tx\nc\0\td\n\ne\tf\n", [2, 3, 4]),
    "c.jsonl": (
        b'{"source": "a", "target": "b"}\n{}\n[1]\n{"source": 1, "target": "b"}\nnot\n\xff\n'
        b'{"source": "", "target": ""}\n{"source": "e", "target": "f"}\n',
        [2, 3, 4, 5, 6],
    ),
    "c.tsv.gz": (gzip.compress(b"a\tb\n" + b"x" * 10_000_001 + b"\nx\n\t\ne\tf\n"), [2, 3]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_skipped_and_told_if_that_is_wanted(tmp_path, name):
    content, numbers = BAD[name]
    (tmp_path / name).write_bytes(content)
    bad = []
    pairs = list(read_pairs(tmp_path / name, on_bad=bad.append))
    assert pairs == [Pair("a", "b"), Pair("", ""), Pair("e", "f")]
    assert [bad_line.line for bad_line in bad] == numbers
    assert all(
        bad_line.file == str(tmp_path / name) and bad_line.what and len(bad_line.text) <= 500 for bad_line in bad
    )
    with pytest.raises(UserError, match=f":{numbers[0]}: "):
        list(read_pairs(tmp_path / name))


def test_a_bad_line_on_one_side_takes_the_other_with_it(tmp_path):
    (tmp_path / "c.en").write_bytes(b"a\nb\xff\nc\nd\n")
    (tmp_path / "c.es").write_bytes(b"1\n2\n3\0\n4\n")
    bad = []
    assert list(read_pairs(tmp_path / "c.{en,es}", on_bad=bad.append)) == [Pair("a", "1"), Pair("d", "4")]
    assert [(bad_line.file[-2:], bad_line.line, bad_line.text) for bad_line in bad] == [
        ("en", 2, "b\\xff"),
        ("es", 3, "3\0"),
    ]
    (tmp_path / "c.es").write_bytes(b"1\n2\n")
    with pytest.raises(UserError, match="has 4 lines but"):
        list(read_pairs(tmp_path / "c.{en,es}", on_bad=bad.append))
