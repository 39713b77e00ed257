"""A document is written only when it is complete, and an interrupted job resumes; no model is needed to test that."""

import pickle
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bitext.documents.document import NearMatch, Segment, Target, read_document
from bitext.documents.tagged_text import KeptElement, Mark, Side, TaggedText
from bitext.protected_spans import PlaceholderSyntax
from translucid.jobs.documents import line_of, records_of, segments_to_translate, target_of, translate_document
from translucid.jobs.job import Done
from translucid.jobs.windows import RecordReader

CONTENT = b"".join(b"  line %s\r\n\n" % bytes([97 + i]) for i in range(10)) + b"the end"
SIZE = 4


class UppercaseJob:
    """A job that writes in capitals."""

    wrapped = separate_lines = False
    window = SIZE
    context = configuration = first_step = None

    max_length = None

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
    for i, record in enumerate(window.lines):
        text = record.source.text.text.upper()
        warnings += [(i, "odd: an end")] * ("END" in text)
        lines.append(line_of(Target(replace(record.source.text, text=text))) + "\n")
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


def record_of(segment):
    (record,) = records_of(UppercaseJob(), SimpleNamespace(segments=[segment]), [0])
    return record


def test_a_segment_goes_to_another_process_and_its_translation_to_a_file():
    marked = TaggedText("a b\n\u2028", (Mark(0, "<b>", Side.opens, 0), Mark(1, "</b>", Side.closes, 0), Mark(3, "%s")))
    kept = replace(
        marked, marks=(*marked.marks, KeptElement(4, "<i>2</i>", parts=("2",))), syntax=PlaceholderSyntax.printf
    )
    record = pickle.loads(pickle.dumps(record_of(Segment(kept, "line 1", longest=3))))
    assert (record.source.max_length, record.source.text.syntax) == (3, PlaceholderSyntax.printf)
    assert record.source.text == replace(kept, marks=(*marked.marks, Mark(4, "<i>2</i>")))
    target = Target(marked, "memory", 0.5, ("lost: x",), (NearMatch(83, "a", "b"),))
    line = line_of(target)
    assert line.isascii() and "\n" not in line and target_of(line.encode()) == target


@pytest.mark.parametrize(
    "other",
    [TaggedText("b"), TaggedText("a", (Mark(0, "%s"),)), TaggedText("a", syntax=PlaceholderSyntax.printf)],
)
def test_other_segments_are_noticed(other):
    records = [record_of(Segment(TaggedText(text), "line 1")) for text in "aba"]
    first, second = RecordReader(records, 2).windows()
    assert (first.complete, second.complete, list(second.lines)) == (True, False, records[2:])
    again = RecordReader(records, 2)
    assert again.skip_to(first.after) and list(again.windows()) == [second]
    changed = RecordReader([record_of(Segment(other, "line 1")), *records[1:]], 2)
    assert not changed.skip_to(first.after)
    assert not RecordReader(records[:1], 2).skip_to(first.after)
