"""XML in requests: its segments, and the bytes that are kept."""

import pytest

from bitext.documents.document import Target
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_fragment import Elements, XmlFragment
from tests.documents.changing import changed
from translucid.ground.errors import UserError


def texts(text, **options):
    options |= {name: frozenset(value) for name, value in options.items() if isinstance(value, set)}
    fragment = XmlFragment(text, Elements(**options))
    assert fragment.filled({}) == text.encode()
    return [segment.source.full_text for segment in fragment.segments]


BOOK = """<?xml version="1.0"?>
<book><head><title>A title</title></head>
  <body><par>One <b>word</b>. Two.</par><par>Three.</par></body></book>
"""


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("plain text", {}, ["plain text"]),
        ("One <b>two</b> three", {}, ["One <b>two</b> three"]),
        (BOOK, {}, ["A title", "One <b>word</b>. Two.", "Three."]),
        (BOOK, {"outline": False, "splitting": {"par", "title"}}, ["A title", "One <b>word</b>. Two.", "Three."]),
        (BOOK, {"splitting": {"b"}}, ["A title", "One", "word", ". Two.", "Three."]),
        ("<i>One</i><i>two</i>", {}, ["One", "two"]),
        ("<i>One</i><i>two</i>", {"inline": {"i"}}, ["<i>One</i><i>two</i>"]),
        ("<i>One</i><i>two</i>", {"outline": False}, ["<i>One</i><i>two</i>"]),
        ('Open <x id="3"></x>!', {"ignored": {"x"}}, ['Open <x id="3"></x>!']),
        ("<x>Stays</x>", {"ignored": {"x"}}, []),
        ("a &lt; b &amp; c<!-- d --><br/>e", {}, ["a < b & c<!-- d --><br/>e"]),
        ("<p>One <?now go?>two<!--x--></p>", {}, ["One <?now go?>two<!--x-->"]),
        ("<!-- a -->One<b><!-- b --></b>", {}, ["<!-- a -->One<b><!-- b --></b>"]),
        ("<p><!-- One --></p><?two?>", {}, []),
        ("", {}, []),
        ("<r>in</r> one", {}, ["<r>in</r> one"]),
    ],
)
def test_segments(text, options, expected):
    assert [segment for segment in texts(text, **options) if any(map(str.isalpha, segment))] == expected


def test_what_is_written_is_escaped_and_the_rest_stays():
    fragment = XmlFragment('<a k="&quot;">One</a>\n<a>two &amp; <b>three</b></a>', Elements())
    (source,) = (segment.source for segment in fragment.segments[1:])
    filled = fragment.filled({0: Target(TaggedText("1 < 2")), 1: Target(TaggedText("& dos ", source.marks))})
    assert filled.startswith(b'<a k="&quot;">1 &lt; 2</a>\n<a>&amp; dos ')
    assert filled.endswith(b"</a>") and filled.count(b"<b>") == filled.count(b"</b>") == 1


def test_sections_stay_sections():
    fragment = XmlFragment("One <![CDATA[two & < three]]> &lt; four", Elements())
    (source,) = (segment.source for segment in fragment.segments)
    assert source.text == "One two & < three < four"
    filled = fragment.filled({0: Target(changed(source))})
    assert filled == b"ONE <![CDATA[TWO & < THREE]]> &lt; FOUR"


@pytest.mark.parametrize(
    "text",
    ["<b>one", "one</b>", "a & b", "&nbsp;", "</r><r>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "<a>" * 300],
)
def test_invalid_xml_is_refused(text):
    with pytest.raises(UserError):
        XmlFragment(text, Elements())
