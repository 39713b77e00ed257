"""XML syntax in Android strings: entities, CDATA sections and items with a type."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import Mark, TaggedText
from tests.documents.changing import all_changed
from translucid.ground.errors import UserError

DECLARED = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE resources [
  <!ENTITY shop "Corner Shop">
  <!ENTITY about 'About &shop;'>
]>
"""


def read(content, target="es", before=""):
    return read_document("strings.xml", f"{before}<resources>{content}</resources>".encode(), ("en", target))


def filled(document):
    assert document.filled({})
    text = document.filled(all_changed(document)).decode()
    return text[text.index("<resources>") + len("<resources>") : text.index("</resources>")]


@pytest.mark.parametrize(
    ("source", "text", "after"),
    [
        ("Visit &shop; today", "Visit  today", "VISIT &shop; TODAY"),
        ("&about; &amp; more", " & more", "&about; &amp; MORE"),
        ("<b>Visit</b> &shop;", "Visit ", "<b>VISIT</b> &shop;"),
    ],
)
def test_entities_stay_as_they_are(source, text, after):
    document = read(f'<string name="a">{source}</string>', before=DECLARED)
    (segment,) = document.segments
    assert segment.source.text == text and "Corner" not in segment.source.full_text
    assert filled(document) == f'<string name="a">{after}</string>'
    assert document.filled(all_changed(document)).decode().startswith(DECLARED)


def test_an_entity_alone_is_no_text():
    assert not read('<string name="a">&shop;</string>', before=DECLARED).segments


def chain(length):
    """Return declarations of entities, each of which refers to the next."""
    return "".join(f'<!ENTITY a{i} "&a{i + 1};">' for i in range(length))


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ('<!ENTITY a SYSTEM "file:///etc/passwd">', "no texts"),
        ('<!ENTITY a PUBLIC "b" "http://a.example/">', "no texts"),
        ('<!ENTITY % a "b">', "no texts"),
        ('<!ENTITY a SYSTEM "b" NDATA c>', "no texts"),
        ("<!ELEMENT string (#PCDATA)>", "elements or attributes"),
        ('<!ATTLIST string name CDATA "b">', "elements or attributes"),
        ('<!NOTATION a SYSTEM "b">', "elements or attributes"),
        ('<!ENTITY a "&b;"><!ENTITY b "&a;">', "contains itself"),
        (f'<!ENTITY a "{"x" * 10_001}">', "10,000 characters"),
        (f'<!ENTITY a "{"x" * 1_000}"><!ENTITY b "{"&a;" * 10}"><!ENTITY c "{"&b;" * 10}">', "10,000 characters"),
        ("".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 9}">' for i in range(60)), "10,000 characters"),
        (chain(52), "is nested in more than 50 others"),
    ],
)
def test_other_declarations_are_refused(declaration, message):
    before = f"<!DOCTYPE resources [{declaration}]>"
    with pytest.raises(UserError, match=message):
        read('<string name="a">b</string>', before=before)


@pytest.mark.parametrize(
    ("accepted", "rejected"),
    [
        (f'<!ENTITY a "{"x" * 10_000}">', f'<!ENTITY a "{"x" * 10_001}">'),
        (
            f'<!ENTITY a "{"x" * 5000}"><!ENTITY b "{"y" * 4997}&a;">',
            f'<!ENTITY a "{"x" * 5000}"><!ENTITY b "{"y" * 4998}&a;">',
        ),
        (chain(50), chain(51)),
        (f'<!ENTITY a "&#38;"><!ENTITY a "{"x" * 10_001}">', f'<!ENTITY b "&#38;"><!ENTITY a "{"x" * 10_001}">'),
    ],
)
def test_the_limits_of_declarations(accepted, rejected):
    content = '<string name="a">b</string>'
    assert read(content, before=f"<!DOCTYPE resources [{accepted}]>").segments
    with pytest.raises(UserError):
        read(content, before=f"<!DOCTYPE resources [{rejected}]>")


@pytest.mark.parametrize("text", ["&{};", "x" * 10_001])
def test_of_a_long_name_the_beginning_is_in_the_message(text):
    name = "n" * 51
    with pytest.raises(UserError, match=rf"the entity {'n' * 50}, which (stands for more than 10,000|contains itself)"):
        read("", before=f'<!DOCTYPE resources [<!ENTITY {name} "{text.format(name)}">]>')


def test_other_files_may_declare_nothing():
    with pytest.raises(UserError, match="declares entities"):
        read_document("a.tmx", b'<!DOCTYPE tmx [<!ENTITY a "b">]><tmx><body/></tmx>', ("en", "es"))


@pytest.mark.parametrize(
    ("source", "text", "after"),
    [
        ("One <![CDATA[<b>two</b>]]> &amp; six", "One two & six", "ONE <![CDATA[<b>TWO</b>]]> &amp; SIX"),
        ("<![CDATA[A & <i>b</i>]]>", "A & b", "<![CDATA[A & <i>B</i>]]>"),
        ("<![CDATA[One]]> and <![CDATA[<u>two</u>]]>", "One and two", "<![CDATA[ONE]]> AND <![CDATA[<u>TWO</u>]]>"),
        ('a <![CDATA[<a href="x?y&z">b</a>]]> "c"', "a b c", 'A <![CDATA[<a href="x?y&z">B</a>]]> "C"'),
        ("It <![CDATA[isn\\'t<br>so]]>", "It isn't so", "IT <![CDATA[ISN\\'T <br>SO]]>"),
    ],
)
def test_sections_stay_sections(source, text, after):
    document = read(f'<string name="a">{source}</string>')
    assert [segment.source.text for segment in document.segments] == [text]
    assert filled(document) == f'<string name="a">{after}</string>'


def test_marks_that_a_person_moves_out_of_a_section_or_into_one_are_written_as_is_right_there():
    document = read('<string name="a">One <![CDATA[<br>two]]> <b>six</b></string>')
    (segment,) = document.segments
    section_start, line_break, section_end, bold_start, bold_end = segment.source.marks
    marks = [
        Mark(0, line_break.raw),
        Mark(0, section_start.raw, section_start.side, section_start.pair),
        Mark(3, bold_start.raw, bold_start.side, bold_start.pair),
    ]
    marks += [
        Mark(4, bold_end.raw, bold_end.side, bold_end.pair),
        Mark(5, section_end.raw, section_end.side, section_end.pair),
    ]
    text = document.filled({0: Target(TaggedText("a & b c", tuple(marks)))}).decode()
    assert ">&lt;br&gt;<![CDATA[a &]]><b><![CDATA[ ]]></b><![CDATA[b]]> c<" in text


def test_quotes_of_two_texts_are_pairs_of_their_own():
    document = read('<string name="a">x "a" <b>b</b> "c" y</string>')
    assert filled(document) == '<string name="a">X "A" <b>B</b> "C" Y</string>'
    assert all(mark.pair is not None for mark in document.segments[0].source.marks)


def test_items_that_are_strings_are_translated():
    content = (
        '<item type="string" name="a">One</item><item type="color" name="b">red</item>'
        '<style name="s"><item name="t">sans</item></style><item type="string" name="c" translatable="false">No</item>'
    )
    document = read(content)
    assert [segment.source.text for segment in document.segments] == ["One"]
    assert filled(document) == content.replace("One", "ONE")


@pytest.mark.parametrize(
    ("language", "places"),
    [
        ("es", ["for 1000000, 2000000, 3000000 …"]),
        ("cs", ["for 2, 3, 4", "for 0.5, 1.5, 2.5 …"]),
        ("pl", ["for 2, 3, 4 …", "for 0, 5, 6 …"]),
    ],
)
def test_forms_are_told_by_numbers(language, places):
    plurals = '<plurals name="a"><item quantity="one">%d cat</item><item quantity="other">%d cats</item></plurals>'
    all_places = [segment.place.partition(", ")[2] for segment in read(plurals, language).segments]
    assert [place for place in all_places if place] == places
