"""The files of a document job, also on a full disk."""

import io
import sqlite3

import pytest

from bitext.documents.document import Segment, Target
from bitext.documents.tagged_text import Mark, Side, TaggedText
from translucid.serving import job_files
from translucid.serving.edge.failures import GoneError
from translucid.serving.job_files import Counts, JobFiles, Row


class FullDisk(io.BytesIO):
    """An upload during which the disk becomes full."""

    def read(self, size=-1):
        """Return some bytes, once."""
        if self.tell():
            raise OSError(28, "No space left on device")
        return super().read(2)


def test_a_document_that_can_not_be_kept_whole_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="No space left"):
        JobFiles(tmp_path / "job", FullDisk(b"a document"))
    assert not [*tmp_path.iterdir()]


def test_a_result_that_can_not_be_kept_whole_leaves_the_one_before(tmp_path, monkeypatch):
    files = JobFiles(tmp_path / "job", io.BytesIO(b"a document"))
    files.store_result(b"first")
    write = type(tmp_path).write_bytes

    def write_half(path, content):
        write(path, content[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", write_half)
    with pytest.raises(OSError, match="No space left"):
        files.store_result(b"second")
    assert files.result.read_bytes() == b"first"
    assert sorted(file.name for file in (tmp_path / "job").iterdir()) == ["document", "result-1"]


@pytest.mark.parametrize(
    ("confidence", "doubts", "accepted", "doubtful"),
    [
        (0.49, (), False, True),
        (0.5, (), False, False),
        (0.99, (), False, False),
        (None, (), False, False),
        (0.99, ("lost: 1",), False, True),
        (0.1, ("lost: 1",), True, False),
    ],
)
def test_a_translation_of_little_confidence_wants_a_look(confidence, doubts, accepted, doubtful):
    target = Target(TaggedText("Canto."), "model", confidence=confidence, doubts=doubts)
    assert Row(0, Segment(TaggedText("I sing."), "line 1"), target, accepted).is_doubtful is doubtful


BOLD = (Mark(0, "<b>", Side.opens, 3), Mark(1, "</b>", Side.closes, 3), Mark(1, "<br>"))
SEGMENTS = [
    Segment(TaggedText("a", BOLD), "line 1", TaggedText("b", BOLD), "a note", 9),
    Segment(TaggedText("bb"), "line 2"),
    Segment(TaggedText("ccc"), "line 3"),
    Segment(TaggedText("dddd"), "line 4"),
    Segment(TaggedText("eeeee"), "line 5"),
]


@pytest.fixture
def files(tmp_path):
    files = JobFiles(tmp_path / "job", io.BytesIO(b"a document"))
    files.store_segments(SEGMENTS)
    return files


def test_segments_and_translations_come_back_as_they_were_stored(files):
    assert files.content == b"a document" and files.folder.stat().st_mode & 0o777 == 0o700
    assert files.rows() == [Row(i, segment, None, accepted=False) for i, segment in enumerate(SEGMENTS)]
    assert files.targets() == {} and files.counts() == Counts(0, 0)
    marked = Target(TaggedText("A", BOLD), "memory", 0.75, ("lost: 1", "numbers: 2"))
    plain = Target(TaggedText("BB"))
    files.store([(0, marked), (1, plain)])
    assert files.rows(0, 2) == [Row(0, SEGMENTS[0], marked, accepted=False), Row(1, SEGMENTS[1], plain, accepted=False)]
    assert files.targets() == {0: marked, 1: plain}
    correction = Target(TaggedText("yo"), "person")
    files.store({1: correction}.items(), accepted=True)
    files.store([(1, plain), (2, plain)])  # corrections by people are kept
    assert files.targets() == {0: marked, 1: correction, 2: plain}
    # Unchanged: its origin and its warnings stay, but the document has a person's translation.
    files.store({0: marked}.items(), accepted=True)
    assert files.rows(0, 1) == [Row(0, SEGMENTS[0], marked, accepted=True)]
    assert files.targets()[0] == Target(marked.marked, "person")
    assert [row.accepted for row in files.rows()] == [True, True, False, False, False]


def test_doubtful_segments_are_counted_and_returned_alone(files):
    text = TaggedText("x")
    doubts = [
        Target(text, "model", 0.49),
        Target(text, "model", 0.5),
        Target(text, "model", None, ("lost: 1",)),
        Target(text),
    ]
    files.store(list(enumerate(doubts)))
    assert files.counts() == Counts(accepted=0, doubtful=2)
    assert [row.number for row in files.rows(doubtful=True)] == [0, 2]
    assert [row.number for row in files.rows(1, doubtful=True)] == [2]
    assert [row.number for row in files.rows() if row.is_doubtful] == [0, 2]
    files.store({0: doubts[0], 1: doubts[1]}.items(), accepted=True)
    assert files.counts() == Counts(accepted=2, doubtful=1)


def test_some_segments_from_a_number_on(files, monkeypatch):
    assert job_files.MOST_CHARACTERS == 200_000

    def numbers(*arguments):
        return [row.number for row in files.rows(*arguments)]

    assert (numbers(0, 2), numbers(3, 9), numbers(2, 0), numbers(5, 2)) == ([0, 1], [3, 4], [], [])
    monkeypatch.setattr(job_files, "MOST_CHARACTERS", 21)
    assert numbers(1) == [1, 2, 3, 4]
    # The place counts ("line 2"), the source, and the JSON of the marks ([]): 6 + 2 + 2, then 6 + 3 + 2.
    assert numbers(1, 4) == [1, 2, 3]
    monkeypatch.setattr(job_files, "MOST_CHARACTERS", 20)
    assert numbers(1, 4) == [1, 2]


def test_each_result_replaces_the_one_before(files):
    assert files.result.name == "result-0" and not files.result.exists()
    for number, content in ((1, b"first"), (2, b"second")):
        files.store_result(content)
        parts, size = files.open_result()
        assert (files.result.name, b"".join(parts), size) == (f"result-{number}", content, len(content))
    assert sorted(file.name for file in files.folder.iterdir()) == ["document", "result-2", "segments.sqlite"]
    assert files.size == sum(file.stat().st_size for file in files.folder.iterdir()) > 16


def test_a_long_result_is_sent_in_parts(files):
    files.store_result(bytes(range(256)) * 600)
    parts, size = files.open_result()
    assert [len(part) for part in parts] == [65_536, 65_536, 600 * 256 - 131_072] and size == 600 * 256


def test_nothing_is_there_after_it_was_deleted(files, tmp_path):
    files.store_result(b"result")
    files.delete()
    files.delete()
    assert files.size == 0 and not list(tmp_path.iterdir())
    for work in (
        files.rows,
        files.targets,
        files.counts,
        files.open_result,
        lambda: files.content,
        lambda: files.store_result(b"x"),
    ):
        with pytest.raises(GoneError):
            work()


def test_an_error_of_the_database_is_no_missing_document(files):
    (files.folder / "segments.sqlite").write_bytes(b"no database" * 99)
    with pytest.raises(sqlite3.Error):
        files.rows()
