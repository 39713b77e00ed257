"""The content of XML elements as tagged text: the extent of a text, and how it is written."""

from xml.etree import ElementTree

import pytest

from bitext.documents.document import Segment, Target
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.documents.xml.xml_file import (
    WORD_BREAK,
    Content,
    Inline,
    SlottedXml,
    XmlFile,
    add_text,
    by_line,
    ends_line,
    escaped,
    joined,
    line_so_far,
    paired,
    separated,
    written_in_cdata,
)

ROLES = {"b": "pair", "i": "pair", "br": "break", "x": "alone", "s": "none", "g": "gone"}


def role(element):
    if element.name in ("open", "shut"):
        return (Side.opens if element.name == "open" else Side.closes), int(element.attributes.get("n", 7))
    return ROLES[element.name]


def read(inside, **options):
    """Return a document of one text, the added text, and the reader of inline content."""
    file = XmlFile("a.xml", f"<root><u>{inside}</u></root>".encode())
    (unit,) = file.units((), {"u"}, {})
    document = SlottedXml(file)
    inline = Inline(file, role, edges=options.pop("edges", False), **options)
    added = add_text(document, inline, unit.parts, "place", note="note")
    return document, added, inline


def filled_content(document, marked):
    text = document.filled({0: Target(marked)}).decode()
    return text[len("<root><u>") : -len("</u></root>")]


@pytest.mark.parametrize(
    ("inside", "edges", "expected", "after"),
    [
        (" \r\n One two\r\n\t", False, "One two", " \r\n [One two]\r\n\t"),
        ("\u200f One.\u200e", False, "One.", "\u200f [One.]\u200e"),
        ("<b>One</b>", False, "One", "<b>[One]</b>"),
        ("<b> <i>One</i> </b>", False, "One", "<b> <i>[One]</i> </b>"),
        ("<b>One</b> two", False, "<b>One</b> two", "[<b>One</b> two]"),
        ("<b>One</b><i>two</i>", True, "<b>One</b><i>two</i>", "[<b>One</b><i>two</i>]"),
        ("<x/> One<br/>", True, "One", "<x/> [One]<br/>"),
        ("<x/> One<br/>", False, "<x/> One<br/>", "[<x/> One<br/>]"),
        ("<b><g/></b>One<i><g/></i>", True, "One", "<b></b>[One]<i></i>"),
        ("<b><g/></b>One<i><g/></i>", False, "<b></b>One<i></i>", "[<b></b>One<i></i>]"),
        ("<b><g/></b> <i>One</i><x/>", True, "One", "<b></b> <i>[One]</i><x/>"),
        ("<b/>One<i/>", True, "One", "<b/>[One]<i/>"),
        ("One<g/><s> two <g>no</g></s>six", False, "One two six", "[One two six]"),
        ("<s/>One<br/>two", False, "One <br/>two", "[One <br/>two]"),
        ("One<x/>two<br/>.", False, "One<x/>two<br/>.", "[One<x/>two<br/>.]"),
        ("<open/>One<shut/>", False, "One", "<open/>[One]<shut/>"),
        ("One <shut/>two<open/> six", False, "One <shut/>two<open/> six", "[One <shut/>two<open/> six]"),
        ("a<!-- b -->c<?d e?>&lt;", False, "a<!-- b -->c<?d e?><", "[a<!-- b -->c<?d e?>&lt;]"),
        ("One <![CDATA[<two>]]>", False, "One <two>", "[One &lt;two&gt;]"),
    ],
)
def test_what_belongs_to_a_text(inside, edges, expected, after):
    document, added, _ = read(inside, edges=edges)
    source = added.contents[0].source
    assert (source.full_text, document.segments) == (expected, [Segment(source, "place", note="note")])
    bracketed = TaggedText(f"[{source.text}]", tuple(Mark(m.offset + 1, m.raw, m.side, m.pair) for m in source.marks))
    assert filled_content(document, bracketed) == after
    assert document.filled({}) == document.file.content
    assert document.file.raw(added.start, added.end) == inside.strip(" \r\n\t")


@pytest.mark.parametrize("inside", ["", " ", "<x/>", "12 %", "<b> </b><br/>", "%s", "<b><i>…</i></b>", "\u200f"])
def test_nothing_to_translate(inside):
    file = XmlFile("a.xml", f"<root><u>{inside}</u></root>".encode())
    (unit,) = file.units((), {"u"}, {})
    assert Inline(file, role, edges=True).content(unit.parts) is None
    if unit.parts:
        document, added, _ = read(inside)
        assert added is None and not document.segments


def test_the_texts_of_several_pieces_have_pairs_of_their_own():
    quoted = {"texts": lambda text: [Mark(0, "(", Side.opens, -3), text, Mark(0, ")", Side.closes, -3)]}
    _, added, _ = read("<b>One</b><b>two</b>", **quoted)
    source = added.contents[0].source
    assert source.full_text == "<b>(One)</b><b>(two)</b>"
    assert [mark.pair for mark in source.marks] == [0, 1, 1, 0, 2, 3, 3, 2]


SECTION = Mark(0, "<![CDATA[", Side.opens, 5), Mark(0, "]]>", Side.closes, 5)


def test_sections_are_closed_for_tags_and_never_nested():
    document, added, inline = read("One <![CDATA[two & <x>]]> &lt;", write_cdata=written_in_cdata)
    assert added.contents[0].source.full_text == "One <![CDATA[two & <x>]]> <"
    assert filled_content(document, added.contents[0].source) == "One <![CDATA[two & <x>]]> &lt;"
    opens, closes = SECTION
    parts = ["<", opens, "a<", opens, "b]]>", closes, Mark(0, "<x/>"), Mark(0, "&shop;"), Mark(0, "&amp;"), closes, "&"]
    after = "&lt;<![CDATA[a<b]]]]><![CDATA[>]]><x/><![CDATA[]]>&shop;<![CDATA[&]]>&amp;"
    assert inline.written([Content([], TaggedText(""), [])], [TaggedText.of(parts)]) == after
    without_cdata = Inline(document.file, role, edges=False)
    assert without_cdata.written([Content([opens], TaggedText(""), [closes])], [TaggedText("<")]) == "<![CDATA[&lt;]]>"


def test_equal_marks_hold_their_texts_in_order():
    first, second = "<x><p>1</p></x>", "<x><p>2</p></x>"
    file = XmlFile("a.xml", f"<root><u>a{first}<s><b>{second}</b></s>{first}<x><i/></x></u></root>".encode())
    (unit,) = file.units((), {"u"}, {})
    inline = Inline(file, role, edges=False, subflow_names=("p",))
    content = inline.content(unit.parts)
    starts = [i for i in range(len(file.content)) if file.content.startswith(b"<x><p>", i)]
    assert content.subflows.keys() == {first, second}
    assert [element.start for element in content.subflows[first]] == [starts[0], starts[2]]
    assert [element.start for element in content.subflows[second]] == [starts[1]]
    marks = [Mark(0, first), "!", Mark(0, second), Mark(0, first), Mark(0, first)]
    assert inline.written([content], [TaggedText.of(marks)], lambda start, end: f"({start})") == (
        f"({starts[0]})!({starts[1]})({starts[2]}){first}"
    )


A, B = Mark(0, "<a>"), Mark(0, "<b>")


@pytest.mark.parametrize(
    ("items", "after"),
    [
        (["One", WORD_BREAK, A, "two"], ["One", " ", A, "two"]),
        (["One", A, WORD_BREAK, B, "two"], ["One", A, " ", B, "two"]),
        (["One", WORD_BREAK, A, WORD_BREAK, B, "two"], ["One", " ", A, B, "two"]),
        (["2", WORD_BREAK, A, "_"], ["2", " ", A, "_"]),
        (["One ", WORD_BREAK, A, "two"], ["One ", A, "two"]),
        (["One", WORD_BREAK, A, " two"], ["One", A, " two"]),
        (["One.", WORD_BREAK, A, "two"], ["One.", A, "two"]),
        (["One", A, "two"], ["One", A, "two"]),
        ([WORD_BREAK, A, "One", "", WORD_BREAK, A], [A, "One", A]),
        (["One", WORD_BREAK, "", A, "two", B, "six"], ["One", " ", A, "two", B, "six"]),
    ],
)
def test_a_break_between_letters_is_a_space(items, after):
    assert list(separated(items)) == after


def test_pairs_are_complete_and_numbered():
    def mark(side, pair):
        return Mark(0, f"{side.value} {pair}", side, pair)

    opens, closes = Side.opens, Side.closes
    items = [
        *(mark(opens, 9), "a", mark(closes, 9), mark(closes, 4), mark(opens, 4), A, mark(opens, 5)),
        *(mark(opens, 8), mark(opens, 0), mark(closes, 0), mark(closes, 8), mark(opens, 5), mark(closes, 5)),
    ]

    def side_and_pair(item):
        return (item.side.value, item.pair) if isinstance(item, Mark) else item

    assert list(map(side_and_pair, paired(items))) == [
        *(("opens", 0), "a", ("closes", 0), ("alone", None), ("alone", None), ("alone", None), ("alone", None)),
        *(("opens", 1), ("opens", 2), ("closes", 2), ("closes", 1), ("alone", None), ("alone", None)),
    ]
    assert [item.raw for item in paired(items) if item != "a"] == [item.raw for item in items if item != "a"]


def test_adjacent_texts_are_one():
    assert joined(["a", "", "b", A, "", A, "c"]) == ["ab", A, A, "c"]
    assert list(by_line("a\n\nb")) == ["a", WORD_BREAK, Mark(0, "\n"), "", WORD_BREAK, Mark(0, "\n"), "b"]


@pytest.mark.parametrize(
    ("before", "raw", "ends"),
    [
        ("One", "<w:br/>", False),
        ("One", "<w:tab/>", True),
        ("One", "<w:ptab w:x='1'/>", True),
        ("One", "<w:table/>", False),
        ("\tOne", "<w:br/>", True),
        (" \u3000", "<w:br/>", True),
        ("One. ", "<w:br/>", True),
        ('(One?)" ', "<w:br/>", True),
        ("One;»", "<w:br/>", True),
        ("Two, (one)", "<w:br/>", False),
        ("一。", "<w:br/>", True),
    ],
)
def test_breaks_that_end_a_line(before, raw, ends):
    assert ends_line(before, raw) is ends


def test_of_a_long_line_its_first_character_and_its_end_are_kept():
    assert line_so_far("\t" + "a" * 198, "b") == "\t" + "a" * 198 + "b"
    assert line_so_far("\t" + "a" * 198, "bc") == "\t" + "a" * 98 + "bc"
    assert line_so_far("a" * 300, ". " + " " * 300) == "a" + "a" * 99 + "."
    assert line_so_far(" " * 150, " " * 150) == " "


def in_xml(character):
    """Return a character, or the replacement character for one that XML does not allow."""
    allowed = character in "\t\n\r" or " " <= character < "\ufffe" or character > "\uffff"
    return character if allowed else "\ufffd"


def test_what_is_escaped_is_read_again():
    text = "".join(map(chr, [*range(1, 0xD800, 7), *range(32), *range(0xE000, 0x10000), 0x10000, 0x10FFFF])) + "<&>]]>"
    assert ElementTree.fromstring(f"<a>{escaped(text)}</a>").text == "".join(map(in_xml, text))
    assert written_in_cdata("a\0]]>\r") == "a\ufffd]]]]><![CDATA[>\r"


def test_an_empty_element_is_one_mark():
    _, added, _ = read("One <b></b> two <i/> six")
    assert [(mark.raw, mark.pair) for mark in added.contents[0].source.marks] == [("<b></b>", None), ("<i/>", None)]
