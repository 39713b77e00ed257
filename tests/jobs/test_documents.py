"""A document is written only when it is complete, and an interrupted job resumes; no model is needed to test that."""

import json
from contextlib import contextmanager

import pytest

from bitext.documents.document import NearMatch, Segment
from bitext.documents.kinds import read_document
from bitext.documents.tagged_text import Mark, Side, TaggedText
from translucid.jobs.documents import marked_lines, segments_to_translate, target_of, translate_document
from translucid.jobs.job import Done

CONTENT = b"".join(b"  line %s\r\n\n" % bytes([97 + i]) for i in range(10)) + b"the end"
SIZE = 4


class UppercaseJob:
    """A job that writes in capitals."""

    wrapped = False
    window = SIZE

    def __init__(self, **identity):
        self.parts = identity

    def identity(self, device):
        return self.parts


class Crash(BaseException):
    """Simulates a power failure."""


@contextmanager
def uppercase_executor(stop_before=None):
    class Executor:
        device = "cpu"

        def __call__(self, windows):
            for number, window in enumerate(windows):
                if number == stop_before:
                    raise Crash
                yield window, translate_window(window)

    yield Executor()


def translate_window(window):
    lines, warnings = [], []
    for i, line in enumerate(window.lines):
        record = json.loads(line)
        record["text"] = record["text"].upper()
        warnings += [(i, "odd: an end")] * ("END" in record["text"])
        fields = {"origin": "model", "confidence": None, "doubts": [], "matches": []}
        lines.append(json.dumps({"marked": record, **fields}) + "\n")
    return Done("".join(lines).encode(), warnings)


def translate(output, stop_before=None, numbers=None, messages=None, **identity):
    document = read_document("a.txt", CONTENT)
    numbers = segments_to_translate(document, retranslate=False) if numbers is None else numbers
    advanced = []
    report = (messages if messages is not None else []).append
    executor = uppercase_executor(stop_before)
    translate_document(
        UppercaseJob(**identity), document, numbers, output, executor, say=report, advance=advanced.append
    )
    return sum(advanced)


def test_a_finished_job_leaves_the_document_and_no_other_file(tmp_path):
    messages = []
    assert translate(tmp_path / "b.txt", messages=messages) == 11
    assert (tmp_path / "b.txt").read_bytes() == CONTENT.upper()
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]
    assert messages == ["warning: 1 of 11 segments looks wrong. 1 warning (odd): line 21."]


def test_to_standard_output(capfdbinary):
    translate(None)
    assert capfdbinary.readouterr().out == CONTENT.upper()


def test_only_the_segments_that_are_asked_for(tmp_path):
    translate(tmp_path / "b.txt", numbers=[1, 10])
    expected = CONTENT.replace(b"line b", b"LINE B").replace(b"the end", b"THE END")
    assert (tmp_path / "b.txt").read_bytes() == expected


def test_a_killed_job_resumes_where_it_stopped(tmp_path):
    with pytest.raises(Crash):
        translate(tmp_path / "b.txt", stop_before=2, model=1)
    assert not (tmp_path / "b.txt").exists()
    assert translate(tmp_path / "b.txt", model=1) == 11 - 2 * SIZE
    assert (tmp_path / "b.txt").read_bytes() == CONTENT.upper()
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]


def test_another_job_starts_over_and_says_why(tmp_path):
    with pytest.raises(Crash):
        translate(tmp_path / "b.txt", stop_before=2, model=1)
    messages = []
    assert translate(tmp_path / "b.txt", messages=messages, model=2) == 11
    assert "thrown away: model was 1 and is 2" in messages[0]


def test_a_segment_goes_to_another_process_and_back():
    marked = TaggedText("a b\n\u2028", (Mark(0, "<b>", Side.opens, 0), Mark(1, "</b>", Side.closes, 0), Mark(3, "%s")))
    (line,) = marked_lines([Segment(marked, "line 1", longest=3)]).splitlines()
    record = json.loads(line)
    assert record.pop("longest") == 3
    fields = {"origin": "memory", "confidence": 0.5, "doubts": ["lost: x"], "matches": [[83, "a", "b"]]}
    target = target_of(json.dumps({"marked": record, **fields}).encode())
    assert target.marked == marked and (target.origin, target.confidence, target.doubts) == (
        "memory",
        0.5,
        ("lost: x",),
    )
    assert target.matches == (NearMatch(83, "a", "b"),)
