"""Properties of all documents: kinds, and limits of segments and sizes."""

from dataclasses import FrozenInstanceError

import pytest

from bitext.cancellation import Cancelled, call_between_steps
from bitext.documents import document
from bitext.documents.document import (
    ENDINGS,
    KINDS,
    Segment,
    SegmentList,
    Target,
    kind_of,
    limit_of_flags,
    limit_segments,
    max_segments,
    read_document,
)
from bitext.documents.office.ooxml import Dialect
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_fragment import Elements
from bitext.readers.file_kinds import names_file
from tests.growth import assert_linear
from translucid.ground.errors import UserError

ONE = Segment(TaggedText("One"), "line 1")


def test_the_ending_determines_the_kind():
    assert kind_of("A.Docx").name == "Word" and kind_of("a/b.tar.htm").name == "HTML"
    assert kind_of("a.docx.b") is None and kind_of("docx") is None
    assert {ending for kind in KINDS for ending in kind.endings} == ENDINGS
    assert sum(len(kind.endings) for kind in KINDS) == len(ENDINGS)
    packed = {ending for kind in KINDS if kind.packed for ending in kind.endings}
    assert packed == {".docx", ".pptx", ".xlsx", ".odt", ".ods", ".epub"}
    assert [kind.name for kind in KINDS if kind.near_matches] == ["XLIFF"]
    with pytest.raises(
        UserError, match=r"^a\.xyz: is not a document that can be translated\. Supported: \.po \.pot .*\.csv"
    ):
        read_document("a.xyz", b"")
    with pytest.raises(UserError, match=r"^a\.PDF: is a PDF, .* save it as \.docx, and translate that\."):
        read_document("a.PDF", b"")


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("a.doc", "docx"),
        ("a.RTF", "docx"),
        ("a.xls", "xlsx"),
        ("a.fods", "xlsx"),
        ("a.ppt", "pptx"),
        ("a.mobi", "epub"),
        ("a.ass", "srt"),
    ],
)
def test_kinds_that_can_be_saved_as_others_are_named(name, ending):
    with pytest.raises(UserError, match=rf"is not a document .*\. Save it as \.{ending}, and translate that\.$"):
        read_document(name, b"")
    assert document.unknown_kind(name).endswith(f"Save it as .{ending}, and translate that.")
    assert names_file(name, ())


def test_a_document_has_a_largest_size(monkeypatch):
    monkeypatch.setattr(document, "LARGEST", 3 << 20)
    assert not read_document("a.txt", b" " * (3 << 20)).segments
    with pytest.raises(UserError, match=r"^a\.txt: has more than 3 MiB"):
        read_document("a.txt", b" " * ((3 << 20) + 1))


def test_records_are_values():
    dialect = Dialect("a", lambda element: "alone", lambda file, element: "", space="")
    for record in (ONE, Target(TaggedText("One")), Elements(), dialect):
        with pytest.raises(FrozenInstanceError):
            setattr(record, next(iter(record.__dataclass_fields__)), None)
    assert not any(hasattr(record, "__dict__") for record in (ONE, Target(TaggedText("One"))))


def test_segments_are_numbered_and_limited():
    assert max_segments() == document.MOST_SEGMENTS == 250_000
    assert (document.LARGEST, document.MOST_PARTS) == (64 << 20, 200_000)
    with limit_segments(2):
        assert max_segments() == 2
        with limit_segments(1):
            assert max_segments() == 1
        segments = SegmentList("a.txt")
        with limit_segments(document.MOST_SEGMENTS + 1):
            assert max_segments() == document.MOST_SEGMENTS
    with pytest.raises(ZeroDivisionError), limit_segments(1):
        raise ZeroDivisionError
    assert max_segments() == document.MOST_SEGMENTS
    assert [segments.add(ONE), segments.add(ONE)] == [0, 1] and segments == [ONE, ONE]
    segments.need_room(2)
    with pytest.raises(UserError, match=r"^a\.txt: has more than 2 texts"):
        segments.need_room(3)
    with pytest.raises(UserError, match=r"^a\.txt: has more than 2 texts"):
        segments.add(ONE)
    assert len(segments) == 2


def test_reading_stops_when_it_is_cancelled():
    def cancel():
        raise Cancelled

    with call_between_steps(cancel), pytest.raises(Cancelled):
        SegmentList("a.txt").add(ONE)


def test_a_translation_that_is_too_long_is_doubted():
    target = Target(TaggedText("three"), doubts=("loop: a",))
    assert target.within(None) is target and target.within(5) is target
    assert target.within(4).doubts == ("loop: a", "length: 5 characters, 4 at most")


@pytest.mark.parametrize(
    ("name", "content", "limits"),
    [
        (
            "a.po",
            '#, c-format, max-length:12\nmsgid "Save <b>%s</b>"\nmsgstr ""\n\n#. A button. [CHAR LIMIT=9]\n'
            'msgid "Stop"\nmsgstr ""\n\n#, max-length:4\n#. [CHAR LIMIT=9]\nmsgid "Go"\nmsgstr ""\n',
            [5, 9, 4],  # the tags count too
        ),
        (
            "strings.xml",
            "<resources><!-- A title [CHAR LIMIT = 30] --><string name='a'>Save now</string>"
            "<!-- [CHAR LIMIT=NONE] --><string name='b'>Stop now</string>"
            "<!-- [CHAR_LIMIT=7] --><string-array name='c'><item>Go on</item><item>Go back</item></string-array>"
            "</resources>",
            [30, None, 7, 7],
        ),
        ("a.strings", '/* char limit: 8 */\n"a" = "Save";\n', [8]),
        ("a.csv", "source,Max. Length,target\nSave,6,\nStop,,\nGo,x,\n", [None, None, None]),
        ("a.csv", "source,max_length,target\nSave,6,\nStop,,\nGo,0,\n", [6, None, None]),
        ("a.tsv", "en\tCharacter limit\tes\nSave\t12\t\n", [12]),
    ],
)
def test_limits_of_characters(name, content, limits):
    segments = read_document(name, content.encode(), ("en", "es")).segments
    assert [segment.longest for segment in segments] == limits


def test_the_sheet_of_a_workbook_may_have_a_column_with_limits(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["source", "max length", "target"], ["Save the file", 9, None], ["Stop it", None, None]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    segments = read_document("a.xlsx", (tmp_path / "a.xlsx").read_bytes(), ("en", "es")).segments
    assert {segment.source.text: segment.longest for segment in segments} == {"Save the file": 9, "Stop it": None}


def test_finding_limits_in_notes_is_linear():
    note = "char limit " * 3
    segments = [Segment(TaggedText("a"), "line 1", note=note)]

    def read(count):
        found = SegmentList("a.po")
        return lambda: [found.add(segments[0]) for _ in range(count)]

    assert_linear(read, 1000, 10_000)
    assert_linear(lambda n: lambda: [limit_of_flags("max-length: " * n)], 10_000, 100_000)
