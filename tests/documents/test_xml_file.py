"""Places in XML files, and files that are refused."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.documents.document import Segment, Target, limit_segments
from bitext.documents.tagged_text import Mark, Side, TaggedText, complete
from bitext.documents.xml.xml_file import Inline, SlottedXml, XmlFile
from bitext.readers.xml_elements import CHUNK, DEEPEST
from tests.growth import assert_linear
from translucid.ground.errors import UserError

SPACES = {"urn:a": "a", "urn:b": ""}


def units(content, *names, name="a.xml"):
    content = content.encode() if isinstance(content, str) else content
    file = XmlFile(name, content)
    return file, list(file.units({"a:root", "root"}, names, SPACES))


def raw(file, part):
    return file.raw(part.start, part.end)


def test_every_part_of_a_unit_is_where_it_says():
    inside = "é<b x='1'/>t&amp;<!-- c -->u<![CDATA[<v>]]><?p i?><c>w\r\n</c>"
    file, (unit,) = units(f"<root>\n<!-- before --><u>{inside}</u ></root>", "u")
    assert (unit.line, unit.comment, raw(file, unit)) == (2, "before", f"<u>{inside}</u >")
    assert file.raw(unit.inner, unit.inner_end) == inside
    assert [raw(file, part) for part in unit.parts] == [
        *("é", "<b x='1'/>", "t&amp;", "<!-- c -->", "u", "<![CDATA[<v>]]>", "<?p i?>", "<c>w\r\n</c>")
    ]
    assert [getattr(part, "kind", "element") for part in unit.parts] == [
        *("text", "element", "text", "other", "text", "cdata", "other", "element")
    ]
    assert unit.text == "ét&u<v>w\n"
    assert "".join(raw(file, part) for part in unit.parts) == inside


def test_names_have_the_prefixes_of_the_reader():
    _, (unit,) = units('<x:root xmlns:x="urn:a" xmlns="urn:b" xmlns:y="urn:c"><u x:k="1" y:k="2" k="3"/></x:root>', "u")
    assert unit.attributes == {"a:k": "1", "?:k": "2", "k": "3"}
    assert unit.parent is not None and unit.parent.name == "a:root"


def test_inherited_attributes_are_those_of_the_innermost():
    _, (unit,) = units('<root k="1"><g k="2"><u/></g></root>', "u")
    assert (unit.inherited("k"), unit.inherited("j")) == ("2", None)


_PART = st.sampled_from(
    ["é", "&lt;", "<b/>", "<b>x</b>", "<!--é-->", "<![CDATA[é]]>", "<?é?>", "\r\n", "日本", "&#233;"]
)


@given(st.lists(_PART, max_size=20).map("".join), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_parts_are_the_whole_of_it(inside, chunks):
    padding = "x" * (chunks * CHUNK - 7) if chunks else ""  # so that the unit crosses the boundary between chunks
    file, (unit,) = units(f"<root>{padding}<u>{inside}</u></root>", "u")
    assert "".join(raw(file, part) for part in unit.parts) == inside


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1", "cp1252", "shift_jis"])
def test_files_of_any_encoding_keep_it(encoding):
    letter = "日" if encoding == "shift_jis" else "é"
    declared = "UTF-8" if encoding.startswith("utf-8") else "UTF-16" if encoding.startswith("utf-16") else encoding
    content = f'<?xml version="1.0" encoding="{declared}"?><root><u>{letter}</u></root>'.encode(encoding)
    file, (unit,) = units(content, "u")
    assert unit.text == letter
    document = SlottedXml(file)
    document.add_slot(unit.inner, unit.inner_end, range(1), lambda targets, original: f"{letter}ü☃")
    assert document.filled({}) == content
    document.segments = [Segment(TaggedText(letter), "")]
    filled = document.filled({0: Target(TaggedText(""))})
    assert XmlFile("a.xml", filled).file.encoding == file.file.encoding
    assert units(filled, "u")[1][0].text == f"{letter}ü☃"


def test_what_an_encoding_lacks_is_written_as_a_number():
    file, _ = units('<?xml version="1.0" encoding="ascii"?><root/>')
    assert file.filled("<root>é</root>".encode()) == b"<root>&#233;</root>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.xml: is empty"),
        (" ", r"a.xml:1: is no XML \(no element found\)"),
        ("<root>\n\n<u></root>", r"a.xml:3: is no XML \(mismatched tag\)"),
        ("<root>\n&nbsp;</root>", r"a.xml:2: is no XML \(undefined entity\)"),
        ("<root>\n<x:u/></root>", r"a.xml:2: is no XML \(unbound prefix\)"),
        ("<other/>", "a.xml:1: begins with <other>, not with <a:root> or <root>"),
        ('<!DOCTYPE root [<!ENTITY a "aaaa">]><root>&a;</root>', "a.xml:1: declares entities"),
        ('<!DOCTYPE root [<!ENTITY % a SYSTEM "file:///etc/passwd">%a;]><root/>', "a.xml:1: declares entities"),
        ("<root>" + "<u>" * DEEPEST, "elements nested more than"),
        (b"<root>\n\xff</root>", "a.xml:2: is not UTF-8"),
        (b'<?xml version="1.0" encoding="x-no"?><root/>', "in an encoding that is not known, x-no"),
        (b'<?xml version="1.0" encoding="zlib_codec"?><root/>', "in an encoding that is not known, zlib_codec"),
        (b'<?xml version="1.0" encoding="UTF-16"?><root/>', "is not UTF-16"),
    ],
)
def test_harmful_and_broken_files_are_one_line(content, message):
    with pytest.raises(UserError, match=message) as error:
        units(content, "u")
    assert "\n" not in str(error.value)


def test_a_unit_of_too_many_parts_is_refused(monkeypatch):
    monkeypatch.setattr("bitext.readers.xml_elements.MOST_PARTS", 10)
    assert len(units(f"<root><u>{'<b/>' * 10}</u><u/></root>", "u")[1]) == 2
    with pytest.raises(UserError, match=r"a.xml:1: has more than 10 elements and texts in one unit"):
        units(f"<root><u>{'<b/>' * 11}</u></root>", "u")


def test_a_long_text_of_many_lines_takes_no_longer_than_it_is_long():
    assert_linear(lambda lines: lambda: units(f"<root><u>{chr(10) * lines}</u></root>", "u"), 50_000, 1_000_000)


@pytest.mark.parametrize("inside", ["<b/>", "a<!---->", "<b>a</b>", " <b/>"])
def test_a_text_of_many_parts_takes_no_longer_than_it_is_long(inside):
    def prepare(count):
        file, (unit,) = units(f"<root><u>word{inside * count}</u></root>", "u")
        inline = Inline(file, lambda element: "pair" if element.parts else "alone", edges=True)
        content = inline.content(unit.parts)
        assert content is not None and content.source.text.startswith("word")
        return lambda: inline.content(unit.parts)

    assert_linear(prepare, 400, 3_200)


@pytest.mark.parametrize("before", ["a", ""])
def test_slots_may_lie_in_one_another(before):
    text = f"<root><u>{before}<b>c</b>d</u></root>"
    file, (unit,) = units(text, "u")
    inner = unit.children[0]
    document = SlottedXml(file)
    document.add_slot(
        unit.inner, unit.inner_end, range(1), lambda targets, content_of: f"[{content_of(inner.start, inner.end)}]"
    )
    document.add_slot(inner.inner, inner.inner_end, range(1, 2), lambda targets, content_of: "C")
    document.add_slot(unit.end, unit.end, range(2), lambda targets, content_of: "+")
    document.segments = [Segment(TaggedText(text), "") for text in "ac"]
    a, c = {0: Target(TaggedText("a"))}, {1: Target(TaggedText("c"))}
    assert document.filled({}).decode() == text
    assert document.filled(a) == b"<root><u>[<b>c</b>]</u>+</root>"
    assert document.filled(c).decode() == text.replace("c", "C").replace("</u>", "</u>+")
    assert document.filled({**a, **c}) == b"<root><u>[<b>C</b>]</u>+</root>"


def test_too_many_segments_are_refused():
    with limit_segments(2):
        document = SlottedXml(units("<root/>")[0])
    document.segments.add(Segment(TaggedText("a"), ""))
    document.segments.add(Segment(TaggedText("a"), ""))
    with pytest.raises(UserError, match="has more than 2 texts"):
        document.segments.add(Segment(TaggedText("a"), ""))


B, END, BR = Mark(0, "<b>", Side.opens, 0), Mark(0, "</b>", Side.closes, 0), Mark(0, "<br/>")


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ((B, END, BR), "<b></b><br/>x"),
        ((BR, B, END), "<br/><b></b>x"),
        ((B, BR), "<br/>x<b></b>"),
        ((END, B, BR), "<br/>x<b></b>"),
        ((BR, BR, B, END), "<br/>x<b></b>"),
        ((), "x<b></b><br/>"),
        ((Mark(0, "<other/>"),), "x<b></b><br/>"),
    ],
)
def test_marks_that_are_lost_or_doubled_are_mended(marks, expected):
    assert complete(TaggedText("x", (B, END, BR)), TaggedText("x", marks)).full_text == expected


def test_slots_are_written_in_the_order_of_their_places():
    document = SlottedXml(units("<root>abcdefghi</root>")[0])
    document.segments = [Segment(TaggedText(text), "") for text in "abcdef"]
    offset = len("<root>")

    def add(start, end, first, stop, template):
        def write(targets, content_of):
            return re.sub(r"(\d)(\d)", lambda span: content_of(offset + int(span[1]), offset + int(span[2])), template)

        document.add_slot(offset + start, offset + end, range(first, stop), write)

    add(8, 9, 4, 5, "Z")
    add(5, 8, 3, 4, "Y")
    add(3, 5, 2, 4, "X")
    add(2, 8, 1, 2, "[35|58]")
    add(5, 5, 3, 4, "-")
    add(2, 2, 0, 1, "+")

    def filled(*numbers):
        return document.filled({number: Target(TaggedText("")) for number in numbers})[
            offset : -len("</root>")
        ].decode()

    assert filled() == filled(5) == "abcdefghi"
    assert filled(0) == "ab+cdefghi"
    assert filled(1) == "ab[de|fgh]i"
    assert filled(2) == "abcXfghi"
    assert filled(3) == "abcX-Yi"
    assert filled(4) == "abcdefghZ"
    assert filled(4, 3, 0, 1, 2) == "ab+[X|-Y]Z"
