"""Tags as the document editor and files for review show them."""

import pytest

from bitext.documents.shown_tags import read_shown, shown, tags_of
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.errors import UserError

BOLD, END = Mark(2, "<b>", Side.opens, 7), Mark(6, "</b>", Side.closes, 7)
SOURCE = TaggedText("I sing now", (Mark(0, "%s"), BOLD, END, Mark(7, "<br>"), Mark(10, "%s")))
SHOWN = "⟨1/⟩I ⟨2⟩sing⟨/2⟩ ⟨3/⟩now⟨4/⟩"


def test_marks_are_numbered_in_the_order_of_the_text():
    assert tags_of(SOURCE) == dict(zip(["⟨1/⟩", "⟨2⟩", "⟨/2⟩", "⟨3/⟩", "⟨4/⟩"], SOURCE.marks, strict=True))
    assert shown(SOURCE, SOURCE) == SHOWN
    assert read_shown(SOURCE, SHOWN) == SOURCE


def test_nested_and_repeated_elements_have_numbers_of_their_own():
    marks = (
        Mark(0, "<i>", Side.opens, 3),
        Mark(0, "<b>", Side.opens, 5),
        Mark(1, "</b>", Side.closes, 5),
        Mark(1, "</i>", Side.closes, 3),
        Mark(1, "<b>", Side.opens, 0),
        Mark(2, "</b>", Side.closes, 0),
    )
    nested = TaggedText("ab", marks)
    assert shown(nested, nested) == "⟨1⟩⟨2⟩a⟨/2⟩⟨/1⟩⟨3⟩b⟨/3⟩"
    assert read_shown(nested, "⟨3⟩b⟨/3⟩⟨1⟩⟨2⟩a⟨/2⟩⟨/1⟩").full_text == "<b>b</b><i><b>a</b></i>"


def test_a_translation_uses_the_tags_of_its_source():
    """Equal marks are matched in order, and marks that are not in the source are shown as they are."""
    moved = TaggedText("Canto ya", (BOLD, END, Mark(6, "%s"), Mark(6, "%d"), Mark(8, "%s"), Mark(8, "%s")))
    assert shown(SOURCE, moved) == "Ca⟨2⟩nto ⟨/2⟩⟨1/⟩%dya⟨4/⟩%s"


def test_tags_may_be_moved_and_other_brackets_are_text():
    text = "⟨0⟩ ⟨3/⟩Ya⟨9⟩ ⟨/3⟩⟨4/⟩⟨2⟩canto⟨/2⟩⟨ 1/⟩⟨1/⟩ ⟨02⟩⟨x⟩"
    read = read_shown(SOURCE, text)
    assert read.full_text == "⟨0⟩ <br>Ya⟨9⟩ ⟨/3⟩%s<b>canto</b>⟨ 1/⟩%s ⟨02⟩⟨x⟩"
    assert [mark.pair for mark in read.marks] == [None, None, 7, 7, None]
    assert [mark.side for mark in read.marks[2:4]] == [Side.opens, Side.closes]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SHOWN.replace("⟨3/⟩", ""), "⟨3/⟩ is missing. Put it where it belongs."),
        ("canto", "⟨1/⟩ is missing. Put it where it belongs."),
        (SHOWN + "⟨1/⟩", "⟨1/⟩ is there twice. Each stands once."),
        ("⟨/2⟩ ⟨2⟩", "⟨/2⟩ does not close what was opened last. Put it behind its beginning."),
    ],
)
def test_tags_that_do_not_fit(text, message):
    with pytest.raises(UserError) as error:
        read_shown(SOURCE, text)
    assert str(error.value) == message


def test_elements_do_not_overlap():
    marks = [
        (0, "<i>", Side.opens, 0),
        (1, "</i>", Side.closes, 0),
        (1, "<b>", Side.opens, 1),
        (2, "</b>", Side.closes, 1),
    ]
    siblings = TaggedText("ab", tuple(Mark(*mark) for mark in marks))
    assert read_shown(siblings, "⟨1⟩⟨2⟩a⟨/2⟩⟨/1⟩").full_text == "<i><b>a</b></i>"
    with pytest.raises(UserError, match="⟨/1⟩ does not close what was opened last"):
        read_shown(siblings, "⟨1⟩⟨2⟩a⟨/1⟩⟨/2⟩")


def test_a_number_has_at_most_six_digits():
    marks = tuple(Mark(0, f"{i}") for i in range(12))
    tagged = TaggedText("", marks)
    text = "".join(f"⟨{i}/⟩" for i in range(1, 13))
    assert shown(tagged, tagged) == text and read_shown(tagged, text) == tagged
    assert read_shown(TaggedText("a"), "⟨1234567/⟩⟨123456/⟩").text == "⟨1234567/⟩⟨123456/⟩"
