"""Spans: the words and marks of a segment, without the marks around them."""

import re

import pytest

from bitext.documents.spans import Part, margins, spanned
from bitext.documents.tagged_text import Side

_TAG = re.compile(r"<(/?)(\w+)(/?)>")


def parts_of(text):
    """Yield the words and tags of a text; <br/> separates words, and <code/> acts as a word."""
    position = 0
    for tag in _TAG.finditer(text):
        yield Part(position, tag.start())
        side = Side.alone
        if not tag[3]:
            side = Side.closes if tag[1] else Side.opens
        yield Part(tag.start(), tag.end(), side, tag[2], word=tag[2] == "code", spaces=tag[2] == "br")
        position = tag.end()
    yield Part(position, len(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" one <b>two</b> \n", "one <b>two</b>"),
        ("<p><b>one two</b></p>", "one two"),  # around the whole text
        ("<b>one</b> <i>two</i>", "<b>one</b> <i>two</i>"),
        ("<b></b>one <i>two</i> three", "one <i>two</i> three"),  # an empty element at either end
        ("one <i>two</i> three<b></b>", "one <i>two</i> three"),
        ("<b></b><u></u>one <i>two</i><b></b>", "one <i>two</i>"),
        ("<b> </b>one", "<b> </b>one"),
        ("one <b></b>two", "one <b></b>two"),
        ("<img/> one <img/> two <img/>", "one <img/> two"),
        ("<code/> one <code/>", "<code/> one <code/>"),  # it is part of the sentence
        ("</b>one <i>two", "one <i>two"),  # neither has a partner, and the second is not at an end
    ],
)
def test_marks_at_the_ends_are_outside_of_the_span(text, expected):
    span = spanned(text, parts_of(text))
    assert span.marked.full_text == expected
    assert text[span.start : span.end] == expected
    assert [text[start:end] for start, end in span.mark_spans] == [mark.raw for mark in span.marked.marks]


def test_a_pair_has_one_number_and_what_has_no_partner_stands_alone():
    text = "a <b>b <i>c</b> d</i> <u>e</u> f"
    marks = spanned(text, parts_of(text)).marked.marks
    described = [(mark.raw, mark.side, mark.pair) for mark in marks]
    assert described == [
        ("<b>", Side.opens, 0),
        ("<i>", Side.alone, None),  # an enclosing element is closed first
        ("</b>", Side.closes, 0),
        ("</i>", Side.alone, None),
        ("<u>", Side.opens, 1),
        ("</u>", Side.closes, 1),
    ]


@pytest.mark.parametrize("text", ["", " \n ", "<b></b>", "<b> <i/> </b>", "<img/>", "12 <b>3</b>"])
def test_where_nothing_is_to_be_translated_there_is_no_span(text):
    assert spanned(text, parts_of(text)) is None


def test_white_space_is_folded_where_it_counts_as_one_space():
    text = "one\n  two <b> three</b> four<br/> five"
    assert spanned(text, parts_of(text), folds=True).marked.text == "one two three four five"
    assert spanned(text, parts_of(text)).marked.text == "one\n  two  three four  five"


@pytest.mark.parametrize(
    ("text", "sizes"), [("one", (0, 0)), (" \u200fone. \u200e", (2, 2)), ("\tone two ", (1, 1)), ("  ", (2, 2))]
)
def test_margins(text, sizes):
    assert margins(text) == sizes
