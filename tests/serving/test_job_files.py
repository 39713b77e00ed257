"""What is kept of a document on the disk, where there may be no room for it."""

import io

import pytest

from translucid.documents.document import Segment, Target
from translucid.documents.tagged_text import TaggedText
from translucid.serving.queue.job_files import JobFiles, Row


class FullDisk(io.BytesIO):
    """An upload after whose first bytes the disk is full."""

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
    files.keep(b"first")
    write = type(tmp_path).write_bytes

    def half(path, content):
        write(path, content[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", half)
    with pytest.raises(OSError, match="No space left"):
        files.keep(b"second")
    assert files.result.read_bytes() == b"first"
    assert sorted(file.name for file in (tmp_path / "job").iterdir()) == ["document", "result-1"]


@pytest.mark.parametrize(
    ("confidence", "doubts", "accepted", "doubtful"),
    [
        (0.49, (), False, True),
        (0.51, (), False, False),
        (0.99, (), False, False),
        (None, (), False, False),
        (0.99, ("lost: 1",), False, True),
        (0.1, ("lost: 1",), True, False),
    ],
)
def test_a_translation_of_little_confidence_wants_a_look(confidence, doubts, accepted, doubtful):
    target = Target(TaggedText("Canto."), "model", confidence=confidence, doubts=doubts)
    assert Row(0, Segment(TaggedText("I sing."), "line 1"), target, accepted).is_doubtful is doubtful
