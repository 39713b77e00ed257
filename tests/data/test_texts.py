"""Running text from files of every kind, including hostile ones."""

import gzip
import json
import tracemalloc

import pytest

from bitext.readers.lines import BadLine
from translucid.data.filtering import Skipped
from translucid.data.readers.texts import keep_texts, read_texts
from translucid.ground.errors import UserError


def write(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


def texts(*files, on_bad=None):
    return [tuple(text) for text in read_texts(*files, on_bad=on_bad)]


RECORDS = '{"text": "Good"}\n{"text": "Bad", "label": "neg"}\n{"text": "", "label": 3, "more": []}\n'
FILES = {
    "plain.txt": (b"One.\nTwo, and\tmore\n\nFour", [("One.", ""), ("Two, and\tmore", ""), ("", ""), ("Four", "")]),
    "without an ending": (b"One.\n", [("One.", "")]),
    "labels.tsv": (b"Good\tpos\nBad\tneg\tx\nNone\n\n", [("Good", "pos"), ("Bad", "neg"), ("None", ""), ("", "")]),
    "labels.jsonl": (RECORDS.encode(), [("Good", ""), ("Bad", "neg"), ("", "3")]),
    "LABELS.TSV": (b"Good\tpos\n", [("Good", "pos")]),
    "dos.txt": (b"\xef\xbb\xbfOne\r\nTwo\r\n", [("One", ""), ("Two", "")]),
    "other ends.txt": ("a\u2028b\x0bc\x85\nd\re\n".encode(), [("a\u2028b\x0bc\x85", ""), ("d\re", "")]),
    "line feeds.jsonl": (rb'{"text": "a\nb\ud800"}' + b"\n", [("a b?", "")]),
}  # fmt: skip


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", FILES)
def test_a_line_is_a_text(tmp_path, name, packed):
    content, expected = FILES[name]
    assert texts(write(tmp_path, name + packed, content)) == expected


def test_files_one_after_the_other_and_blank_texts_are_counted(tmp_path):
    first, second = write(tmp_path, "a.txt", b"One\n \n\n"), write(tmp_path, "b.tsv", b"\tpos\nTwo\tneg\n")
    skipped = Skipped("text")
    assert [text.source for text in keep_texts(read_texts(first, second), skipped)] == ["One", "Two"]
    assert (skipped.kept, skipped.reasons) == (2, {"empty": 3})
    assert skipped.summary() == "2 texts; skipped 3: 3 empty"


HOSTILE = {
    "nul.txt": (b"good\nb\0d\n", ":2: ", "holds NUL bytes"),
    "latin1.txt": (b"good\nGr\xfc\xdfe\n", ":2: ", "not UTF-8"),
    "huge.txt": (b"good\n" + b"x" * 10_000_001 + b"\n", ":2: ", "is longer than 10,000,000 bytes"),
    "not.jsonl": (b'{"text": "good"}\nbad\n', ":2: ", "not JSON"),
    "list.jsonl": (b'{"text": "good"}\n[1]\n', ":2: ", "has no text"),
    "no text.jsonl": (b'{"text": "good"}\n{"label": "x"}\n', ":2: ", "has no text"),
    "number.jsonl": (b'{"text": "good"}\n{"text": 7}\n', ":2: ", "text must be a string"),
    "odd label.jsonl": (b'{"text": "good"}\n{"text": "x", "label": [1]}\n', ":2: ", "label a string"),
    "deep.jsonl": (b'{"text": "good"}\n' + b"[" * 100_000 + b"\n", ":2: ", "not JSON"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_line_is_refused_in_one_line_or_skipped(tmp_path, name):
    content, position, message = HOSTILE[name]
    last = b'{"text": "also good"}\n' if name.endswith("jsonl") else b"also good\n"
    file = write(tmp_path, name, content + last)
    with pytest.raises(UserError) as caught:
        texts(file)
    assert message in str(caught.value) and position in str(caught.value) and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    bad_lines = []
    assert texts(file, on_bad=bad_lines.append) == [("good", ""), ("also good", "")]
    (bad,) = bad_lines
    assert isinstance(bad, BadLine) and bad.line == 2 and message in bad.what and len(bad.text) <= 500


@pytest.mark.parametrize("skip", [None, lambda bad: None])
@pytest.mark.parametrize(
    "name", ["letter.docx", "film.srt", "page.html", "table.csv", "all.zip", "film.srt.gz", "x.json"]
)
def test_documents_are_refused_by_their_ending_whether_bad_lines_are_skipped_or_not(tmp_path, name, skip):
    with pytest.raises(UserError, match="by its ending, which is not read as running text"):
        texts(write(tmp_path, name, b"content\n"), on_bad=skip)


@pytest.mark.parametrize(("name", "content", "message"), [
    ("none.txt", None, "can't be read"),
    ("empty.txt", b"", "is empty"),
    ("not.txt.gz", b"plain", "is damaged or not gzip"),
])  # fmt: skip
def test_files_without_text_are_refused(tmp_path, name, content, message):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=message):
        texts(file)


def test_reading_holds_little_of_a_file(tmp_path):
    """Reading forty million bytes takes less than two million bytes of memory."""
    with gzip.open(tmp_path / "large.jsonl.gz", "wt", compresslevel=1) as file:
        line = json.dumps({"text": "word " * 2000}) + "\n"
        for _ in range(4000):
            file.write(line)
    tracemalloc.start()
    characters = sum(len(text.source) for text in read_texts(tmp_path / "large.jsonl.gz"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert characters == 40_000_000
    assert peak < 2_000_000
