"""Plain text as a document."""

import codecs

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from translucid.ground.errors import UserError


@pytest.mark.parametrize("content", [b"", b"\n", b"a\r\n\r\n  b c \t\n1 2\nlast", codecs.BOM_UTF8 + "é\n".encode()])
def test_without_translations_it_is_the_same(content):
    assert read_document("a.txt", content).filled({}) == content


def test_only_words_change():
    document = read_document("a.txt", "  one é \r\n--\r\n\r\ntwo".encode())
    assert [(s.source.text, s.place) for s in document.segments] == [("one é", "line 1"), ("two", "line 4")]
    filled = document.filled({0: Target(TaggedText("uno")), 1: Target(TaggedText("dos"))})
    assert filled == b"  uno \r\n--\r\n\r\ndos"


def test_bytes_that_are_no_text_are_refused_with_their_line():
    with pytest.raises(UserError, match=r"^a.txt:2: is not UTF-8"):
        read_document("a.txt", b"one\n\xff")


def test_a_name_without_a_kind_is_refused():
    with pytest.raises(UserError, match=r"^a.exe: is not a document"):
        read_document("a.exe", b"")


@pytest.mark.parametrize("words", ["uno\ndos", "uno\r\n\r\n dos", "uno \rdos"])
def test_a_line_stays_one_line(words):
    document = read_document("a.txt", b"one\ntwo\n")
    assert document.filled({0: Target(TaggedText(words))}) == b"uno dos\ntwo\n"
