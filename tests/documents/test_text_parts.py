"""Parts of a text that are turned into marks during translation."""

import pytest

from bitext.documents.kept_elements import (
    Edit,
    Part,
    absorbed,
    are_nested,
    edited,
    tag_of,
    with_direction_signs,
    with_edges,
    with_key,
    with_separate_words,
    with_wordless_elements,
)
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.protected_spans import Edit as TextEdit

XYZ = TaggedText("abcdef", (Mark(1, "<x>"), Mark(3, "<y>"), Mark(6, "<z>")))


def listed(marked):
    return [(mark.offset, mark.raw) for mark in marked.marks]


def pairs(marked):
    return [(mark.raw, mark.side, mark.pair) for mark in marked.marks]


@pytest.mark.parametrize(
    ("text", "position"),
    [("_File", 0), ("é_Ñu", 1), ("E_xit", 1), ("x_y", 1), ("%(a)s _File", 6), ("Save &As", 5), ("&File", 0), ("A&b", 1)]
    + [("a &b", 2), ("x &Y", 2), ("&ßx", 0), ("Ab&c", 2), ("ab_cd", 2)],
)
def test_the_marker_of_an_access_key_is_a_part(text, position):
    marked = with_key(TaggedText(text))
    assert (listed(marked), marked.text) == ([(position, text[position])], text[:position] + text[position + 1 :])


@pytest.mark.parametrize(
    "text",
    ["a_", "_a _b", "Eab_xit", "&amp; &x", "{_a} b", "_1", "a&B", "a& b", "a _ b", "_a b_c", "x_a b_c", "see x/_a"],
)
def test_other_signs_are_no_markers(text):
    source = TaggedText(text)
    assert with_key(source) is source


OPENS, CLOSES, ALONE = Side.opens, Side.closes, Side.alone


@pytest.mark.parametrize(
    ("text", "words", "marks"),
    [
        ("m<sup>2</sup> x", "m2 x", [("<sup>", OPENS, -1), ("</sup>", CLOSES, -1)]),
        (
            "<b><i>1</i></b> a",
            "1 a",
            [("<b>", OPENS, -1), ("<i>", OPENS, -2), ("</i>", CLOSES, -2), ("</b>", CLOSES, -1)],
        ),
        (
            "<b>{x}</b> <i>1</i>",
            "{x} 1",
            [("<b>", OPENS, -1), ("</b>", CLOSES, -1), ("<i>", OPENS, -3), ("</i>", CLOSES, -3)],
        ),
        ("<u>1</u><b>a</b>", "1<b>a</b>", [("<u>", OPENS, -1), ("</u>", CLOSES, -1)]),
        (
            "<a>1<b>2</b>3</a>",
            "123",
            [("<a>", OPENS, -1), ("<b>", OPENS, -2), ("</b>", CLOSES, -2), ("</a>", CLOSES, -1)],
        ),
        ("<a>1<b>x</b>3</a>", "<a>1<b>x</b>3</a>", []),
        ("<b>1", "<b>1", []),
        ("<b></b>a", "<b></b>a", []),
        ("<b> </b>a", "<b> </b>a", []),
        ("<b>1</i>", "<b>1</i>", []),
        ("1 < 2", "1 < 2", []),
    ],
)
def test_elements_without_letters_are_parts(text, words, marks):
    marked = with_wordless_elements(TaggedText(text))
    assert (marked.text, pairs(marked)) == (words, marks)


def test_controls_of_writing_direction_are_parts():
    marked = with_direction_signs(TaggedText("a\u200eb\u2066"))
    assert (marked.text, listed(marked)) == ("ab", [(1, "\u200e"), (2, "\u2066")])


@pytest.mark.parametrize(
    ("tag", "side", "name"),
    [
        ("<b>", OPENS, "b"),
        ("</b>", CLOSES, "b"),
        ("<b/>", None, ""),
        ("<br />", None, ""),
        ('<b x="y">', OPENS, "b"),
        ("<1>", OPENS, "1"),
        ("{{#if x}}", OPENS, "{{if"),
        ("{{/if}}", CLOSES, "{{if"),
        ("{{^x}}", OPENS, "{{x"),
        ("{{x}}", None, ""),
        ("x", None, ""),
    ],
)
def test_sides_and_names_of_tags(tag, side, name):
    assert tag_of(tag) == (side, name)


def test_nested_tags():
    nested_well = "", "<b> </b>", "<b> <i> </i> %s </b> <u> </u>"
    nested_badly = "<b>", "</b>", "<b> <i> </b> </i>", "<b> </i>", "<b> </b> </b>"
    assert [are_nested(tags.split()) for tags in (*nested_well, *nested_badly)] == [True] * 3 + [False] * 5


def test_edits_keep_the_marks_at_their_words():
    edits = [Edit(2, 4, "XYZ"), Edit(0, 1, Part(0, "<p>")), Edit(5, 6, Part(0, "</p>"))]
    marked = edited(XYZ, edits)
    assert (marked.text, listed(marked)) == ("bXYZe", [(0, "<p>"), (0, "<x>"), (4, "<y>"), (5, "</p>"), (5, "<z>")])
    assert pairs(marked)[0][1:] == (OPENS, -1) and pairs(marked)[3][1:] == (CLOSES, -1)
    assert edited(XYZ, []) is XYZ
    emptied, inserted = edited(XYZ, [Edit(0, 6, "")]), edited(XYZ, [Edit(1, 1, "+")])
    assert (emptied.text, listed(emptied)) == ("", [(0, "<x>"), (0, "<y>"), (0, "<z>")])
    assert (inserted.text, listed(inserted)) == ("a+bcdef", [(1, "<x>"), (4, "<y>"), (7, "<z>")])


def test_tags_that_cross_are_no_pairs():
    tags = "<a>", "<b>", "</a>", "</b>", "<b>", "<a/>", "</b>"
    marked = edited(TaggedText("1234567"), [Edit(i, i + 1, Part(0, tag)) for i, tag in enumerate(tags)])
    assert pairs(marked) == [
        ("<a>", OPENS, -1),
        ("<b>", ALONE, None),
        ("</a>", CLOSES, -1),
        ("</b>", ALONE, None),
        ("<b>", OPENS, -5),
        ("<a/>", ALONE, None),
        ("</b>", CLOSES, -5),
    ]


def test_parts_become_text_again_apart_from_addresses():
    marked = absorbed(TaggedText("ab", (Part(0, "a@b.c"), Part(1, "x"), Mark(2, "<b>"), Part(2, "y"))))
    assert (marked.text, listed(marked)) == ("a@b.c axby", [(9, "<b>")])
    marked = absorbed(TaggedText("xb", (Part(1, "a@b.c"), Mark(1, "<i>"), Part(2, "!"))))
    assert (marked.text, listed(marked)) == ("x a@b.cb!", [(7, "<i>")])


def test_text_and_marks_in_order():
    pair = Mark(0, "<b>", OPENS, 0), Mark(2, "</b>", CLOSES, 0)
    assert list(TaggedText("ab c", pair).parts) == [pair[0], "ab", pair[1], " c"]
    assert (TaggedText("ab c", pair).full_text, TaggedText("ab c", pair).mark_offsets) == ("<b>ab</b> c", [0, 2])
    assert list(TaggedText("").parts) == []
    assert [side.depth for side in (OPENS, CLOSES, ALONE)] == [1, -1, 0]
    assert (Side.of_tag(closes=""), Side.of_tag(closes="/")) == (OPENS, CLOSES)


def test_a_mark_within_an_edited_range_goes_before_it():
    marked = TaggedText("abcdef", tuple(Mark(at, str(at)) for at in (1, 2, 3, 4, 5, 6)))
    spliced = marked.spliced([TextEdit(2, 4, "X"), TextEdit(5, 5, "YY")])
    assert (spliced.text, listed(spliced)) == ("abXeYYf", [(1, "1"), (2, "2"), (2, "3"), (3, "4"), (6, "5"), (7, "6")])


@pytest.mark.parametrize(
    ("text", "marks", "stripped", "in_one_line"),
    [
        ("  a \xa0 ", (3,), "a| \xa0", "a| \xa0"),
        (" a ", (0, 3), "| a |", "| a |"),
        (" a ", (1, 2), "|a|", "|a|"),
        ("   ", (), "", ""),
        ("   ", (1,), "|", "|"),
        ("\n a\n\nb \r\n c\u2028", (), "a\n\nb \r\n c", "a b c"),
    ],
)
def test_white_space_at_the_ends(text, marks, stripped, in_one_line):
    marked = TaggedText(text, tuple(Mark(at, "|") for at in marks))
    assert (marked.stripped.full_text, marked.in_one_line.full_text) == (stripped, in_one_line)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("• One two.", "•"),
        ("“One.” — ", "“ ” —"),
        ("( «One» )", "« »"),  # the bracket is known, so what is in it stays
        ("One • two", ""),
        ("• — •", ""),
        ("•", ""),
    ],
)
def test_signs_at_the_ends_that_the_model_cannot_read_are_parts(text, parts):
    marked = with_edges(TaggedText(text), "•“”—«»".__contains__)
    expected = "" if text.startswith("(") else parts
    assert " ".join(mark.raw for mark in marked.marks) == expected
    assert absorbed(marked).full_text == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('<x id="1"/>', "soon one twothree"),
        ('<x:ph id="1"/>', "soon one twothree"),
        ("<br/>", "soonone twothree"),  # is read as a space in any case
    ],
)
def test_a_code_between_two_words_gets_a_space(raw, text):
    source = TaggedText("soonone twothree", tuple(Mark(offset, raw) for offset in (4, 11)))
    parted = with_separate_words(source, lambda start, end: start + end == "twothree")
    assert parted.text == text
    assert parted.marks[0].offset == len(parted.text.partition("one")[0])
    single = TaggedText("vone", (Mark(1, raw),))
    assert with_separate_words(single, lambda start, end: False) is single
