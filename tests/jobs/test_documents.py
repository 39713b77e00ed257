"""A document is written when it is whole, and a job that was killed goes on. No model is needed to see that."""

import json
from contextlib import contextmanager

import pytest

from translucid.documents.document import NearMatch, Segment
from translucid.documents.kinds import read_document
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.jobs.documents import segments_to_translate, translate_document
from translucid.jobs.job import Done
from translucid.jobs.segments import marked_lines, target_of

CONTENT = b"".join(b"  line %s\r\n\n" % bytes([97 + i]) for i in range(10)) + b"the end"
SIZE = 4


class Shouting:
    """A job that writes in capitals."""

    wrapped = False
    window = SIZE

    def __init__(self, **identity):
        self.made_of = identity

    def identity(self, device):
        return self.made_of


class Crash(BaseException):
    """The plug is pulled."""


@contextmanager
def shouting(stop_before=None):
    class Way:
        device = "cpu"

        def __call__(self, windows):
            for number, window in enumerate(windows):
                if number == stop_before:
                    raise Crash
                yield window, answered(window)

    yield Way()


def answered(window):
    lines, doubts = [], []
    for i, line in enumerate(window.lines):
        record = json.loads(line)
        record["text"] = record["text"].upper()
        doubts += [(i, "odd: an end")] * ("END" in record["text"])
        told = {"origin": "model", "confidence": None, "doubts": [], "matches": []}
        lines.append(json.dumps({"marked": record, **told}) + "\n")
    return Done("".join(lines).encode(), doubts)


def translate(output, stop_before=None, numbers=None, said=None, **identity):
    document = read_document("a.txt", CONTENT)
    numbers = segments_to_translate(document, again=False) if numbers is None else numbers
    advanced = []
    say = (said if said is not None else []).append
    way = shouting(stop_before)
    translate_document(Shouting(**identity), document, numbers, output, way, say=say, advance=advanced.append)
    return sum(advanced)


def test_a_whole_document_and_nothing_beside_it(tmp_path):
    said = []
    assert translate(tmp_path / "b.txt", said=said) == 11
    assert (tmp_path / "b.txt").read_bytes() == CONTENT.upper()
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]
    assert said == ["warning: 1 of 11 segments looks wrong. 1 warning (odd): line 21."]


def test_to_standard_output(capfdbinary):
    translate(None)
    assert capfdbinary.readouterr().out == CONTENT.upper()


def test_only_the_segments_that_are_asked_for(tmp_path):
    translate(tmp_path / "b.txt", numbers=[1, 10])
    wanted = CONTENT.replace(b"line b", b"LINE B").replace(b"the end", b"THE END")
    assert (tmp_path / "b.txt").read_bytes() == wanted


def test_a_job_that_was_killed_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(Crash):
        translate(tmp_path / "b.txt", stop_before=2, model=1)
    assert not (tmp_path / "b.txt").exists()
    assert translate(tmp_path / "b.txt", model=1) == 11 - 2 * SIZE
    assert (tmp_path / "b.txt").read_bytes() == CONTENT.upper()
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]


def test_another_job_starts_over_and_says_why(tmp_path):
    with pytest.raises(Crash):
        translate(tmp_path / "b.txt", stop_before=2, model=1)
    said = []
    assert translate(tmp_path / "b.txt", said=said, model=2) == 11
    assert "thrown away: model was 1 and is 2" in said[0]


def test_a_segment_goes_to_another_process_and_back():
    marked = TaggedText("a b\n\u2028", (Mark(0, "<b>", Side.opens, 0), Mark(1, "</b>", Side.closes, 0), Mark(3, "%s")))
    (line,) = marked_lines([Segment(marked, "line 1", longest=3)]).splitlines()
    record = json.loads(line)
    assert record.pop("longest") == 3
    told = {"origin": "memory", "confidence": 0.5, "doubts": ["lost: x"], "matches": [[83, "a", "b"]]}
    target = target_of(json.dumps({"marked": record, **told}).encode())
    assert target.marked == marked and (target.origin, target.confidence, target.doubts) == (
        "memory",
        0.5,
        ("lost: x",),
    )
    assert target.matches == (NearMatch(83, "a", "b"),)
