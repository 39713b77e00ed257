"""Messages are read alike in each format: placeholders, ICU syntax, and values that are no language."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from bitext.protected_spans import PlaceholderSyntax
from tests.documents.changing import all_changed
from tests.probes.samples import STRINGS, XLIFF

PO = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n{}msgid "{}"\nmsgstr "{}"\n'
FORMATS = [name for name in STRINGS if name not in ("a.resx", "a.ts", "a.xcstrings")]


def read(name, text):
    return read_document(name, STRINGS[name](text).encode(), ("en", "es"))


def sources(document):
    return [segment.source.full_text for segment in document.segments]


@pytest.mark.parametrize("name", FORMATS)
def test_strings_have_the_placeholders_of_programs(name):
    (segment,) = read(name, "see :name here").segments
    assert segment.source.syntax is PlaceholderSyntax.message


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "value",
    ["#aabbcc", "photo.jpg", "yyyy-MM-dd", "%d.%m.%Y", "Asia/Tokyo", "=SUM(A1:A9)", "%u%n", "color: red;", "en-US"],
)
def test_what_is_no_language_stays(name, value):
    assert sources(read(name, value)) == []


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", ["Save", "May", "add", "2nd", "Note: this;", "50 % off"])
def test_words_are_translated(name, value):
    assert sources(read(name, value)) == [value]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("a.xml", "a.csv")])
def test_plurals_in_the_syntax_of_icu_are_translated_case_by_case(name):
    text = "{n, plural, =1 {one cat} other {# cats}}"
    document = read(name, text)
    assert sources(document) == ["one cat", "# cats"]
    assert "{n, plural, =1 {ONE CAT} other {# CATS}}" in document.filled(all_changed(document)).decode()


def test_also_in_a_table():
    document = read_document("a.csv", b'source,target\n"{n, plural, =1 {one} other {# cats}}",\n', ("en", "es"))
    assert sources(document) == ["one", "# cats"]
    assert b'"{n, plural, =1 {ONE} other {# CATS}}"\n' in document.filled(all_changed(document))


def po(text, flag="", existing=""):
    return read_document("a.po", PO.format(flag and f"#, {flag}\n", text, existing).encode(), ("en", "es"))


def test_the_flag_of_an_entry_says_what_its_placeholders_are():
    (segment,) = po("%1 of %2", "qt-format").segments
    assert segment.source.syntax is PlaceholderSyntax.numbered
    assert po("%1, %2", "qt-format").segments == []


def test_a_translation_of_icu_that_is_there_is_kept_where_a_case_has_none():
    document = po("{n, plural, one {a} other {b}}", "icu-format", "{n, plural, one {x} other {y}}")
    assert [segment.existing and segment.existing.text for segment in document.segments] == ["x", "y"]
    assert "{n, plural, one {x} other {z}}" in document.filled({1: Target(TaggedText("z"), "person")}).decode()
    targets = {0: Target(TaggedText("v"), "person"), 1: Target(TaggedText("w"), "person")}
    assert "{n, plural, one {v} other {w}}" in document.filled(targets).decode()


def test_one_of_other_shape_is_not_mixed_with_the_source():
    document = po("{n, plural, one {a} other {b}}", "icu-format", "old")
    assert [segment.existing and segment.existing.text for segment in document.segments] == ["old", "old"]


def test_cases_in_xliff_keep_their_tags_and_entities():
    text = '{V, plural, =0 {no &lt; cats} other {<x id="I" equiv-text="{{n}}"/> cats <g id="2">left</g>} }'
    document = read_document("a.xlf", XLIFF.format(text).encode(), ("en", "es"))
    assert sources(document) == ["no < cats", '<x id="I" equiv-text="{{n}}"/> cats <g id="2">left</g>']
    filled = document.filled(all_changed(document)).decode()
    assert text.replace("no &lt; cats", "NO &lt; CATS").replace("cats <g", "CATS <g").replace("left", "LEFT") in filled
    assert 'state="needs-review-translation"' in filled
    assert 'state="needs-translation"' in document.filled({0: Target(TaggedText("x"))}).decode()


def test_text_beside_cases_in_xliff_is_a_segment_too():
    document = read("a.xlf", "It has {n, plural, one {one} other {many}} here")
    assert sources(document) == ["It has {n, plural, one {one} other {many}} here", "one", "many"]
    filled = document.filled(all_changed(document)).decode()
    assert "IT HAS {n, plural, one {ONE} other {MANY}} HERE" in filled


def test_apostrophes_of_messages_for_java_are_written_twice():
    document = read_document("a.properties", b"a=it''s '{'0'}' of {0}\n", ("en", "es"))
    (segment,) = document.segments
    assert segment.source.full_text == "it's '{'0'}' of {0}"
    target = Target(TaggedText("l'a de {0}", segment.source.marks))
    assert b"l''" in document.filled({0: target})


@pytest.mark.parametrize("source", ["<style>p { color: red }</style> go", "<script>if (a) b()</script> go"])
def test_style_sheets_and_scripts_in_strings_are_marks(source):
    document = read_document(
        "a.xml", f'<resources><string name="a"><![CDATA[{source}]]></string></resources>'.encode(), ("en", "es")
    )
    (segment,) = document.segments
    assert segment.source.text.strip() == "go"
    assert source.replace("go", "GO").encode() in document.filled(all_changed(document))


def test_the_key_tells_a_language():
    document = read_document("a.json", b'{"lang": "no", "answer": "no", "form": {"locale": "pt_br"}}', ("en", "es"))
    assert [segment.note for segment in document.segments] == ["answer"]


def test_bars_between_plural_forms_stay():
    document = read("a.json", "no cats | one cat | {n} cats")
    assert b"NO CATS | ONE CAT | {n} CATS" in document.filled(all_changed(document))
