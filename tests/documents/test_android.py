"""Android strings as documents."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.strings.plural_forms import categories
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import all_changed
from translucid.ground.errors import UserError

FILE = '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">{}</resources>'
PLURALS = (
    '<plurals name="a">\n  <item quantity="one">%d cat</item>\n'
    '  <item quantity="other">%d <b>cats</b></item>\n</plurals>'
)


def read(content, target="es"):
    return read_document("strings.xml", FILE.format(content).encode(), ("en", target))


def filled(content, target="es", **texts):
    document = read(content, target)
    text = document.filled(all_changed(document)).decode()
    return text.removeprefix(FILE.partition("{}")[0]).removesuffix("</resources>")


@pytest.mark.parametrize(
    ("source", "text", "target"),
    [
        (r"Don\'t \"go\" \@ \\ \u00e9", r"""Don't "go" @ \ é""", r"DON\'T \"GO\" @ \\ É"),
        (r"\@ home", "@ home", r"\@ HOME"),
        (r"\na\t", "a", r"\nA\t"),
        (r"a\u0020b", "ab", r"A\u0020B"),
        ('"  two  spaces "', "two  spaces", '"  TWO  SPACES "'),
        ("\n   one\n   two\n", "one two", "\n   ONE TWO\n"),
        ("&lt;b>bold&lt;/b> &amp; so", "bold & so", "&lt;b&gt;BOLD&lt;/b&gt; &amp; SO"),
        ("<b>all</b>", "all", "<b>ALL</b>"),
        (" <![CDATA[<p>It\\'s & <br>]]> ", "It's &", " <![CDATA[<p>IT\\'S & <br>]]> "),
        ("a <xliff:g id='x'>b</xliff:g> c", "a  c", "A <xliff:g id='x'>b</xliff:g> C"),
    ],
)
def test_texts_are_read_and_written_as_android_does(source, text, target):
    content = f'<string name="a">{source}</string>'
    assert [segment.source.text.strip() for segment in read(content).segments] == [text]
    assert filled(content) == f'<string name="a">{target}</string>'


def test_lines_in_an_element_are_segments():
    content = r'<string name="a"><b>One cat\n<i>Two</i> dogs</b> and more</string>'
    texts = [segment.source.full_text for segment in read(content).segments]
    assert texts == ["One cat", "<i>Two</i> dogs</b> and more"]
    assert filled(content) == r'<string name="a"><b>ONE CAT\n<i>TWO</i> DOGS</b> AND MORE</string>'


@pytest.mark.parametrize(
    "source",
    [
        '<string name="a" translatable="false">a</string>',
        '<string name="a">@string/b</string>',
        '<string name="a">?attr/b</string>',
        '<string name="a">%1$s</string>',
        '<string name="a"/>',
        '<color name="a">red</color>',
        '<string-array name="a" translatable="false"><item>a</item></string-array>',
    ],
)
def test_values_that_are_not_text_are_unchanged(source):
    assert not read(source).segments


@pytest.mark.parametrize(
    ("target", "forms"),
    [
        ("de", {"one": "%d CAT", "other": "%d <b>CATS</b>"}),
        ("ru", {"one": "%d CAT", **dict.fromkeys(("few", "many", "other"), "%d <b>CATS</b>")}),
        ("ja", {"other": "%d <b>CATS</b>"}),
        (None, {"one": "%d CAT", "other": "%d <b>CATS</b>"}),
    ],
)
def test_plurals_get_the_forms_of_the_target_language(target, forms):
    items = "".join(f'\n  <item quantity="{form}">{text}</item>' for form, text in forms.items())
    assert filled(PLURALS, target) == f'<plurals name="a">{items}\n</plurals>'


def test_forms_are_those_of_cldr():
    assert list(categories("ar")) == ["zero", "one", "two", "few", "many", "other"]
    assert list(categories("zh-Hant")) == ["other"]
    assert categories("nonsense") is categories(None) is None


def test_a_form_that_the_source_lacks_has_a_translation_of_its_own():
    document = read(PLURALS, "ru")
    places = [segment.place for segment in document.segments]
    assert places == ["line 2", "line 3", "line 3, for 2, 3, 4 …", "line 3, for 0, 5, 6 …"]
    targets = all_changed(document)
    few = TaggedText("%d кота", document.segments[2].source.marks)
    with_few = document.filled({**targets, 2: Target(few)}).decode()
    assert '<item quantity="few">%d <b>кота</b></item>' in with_few
    partial = document.filled({1: targets[1]}).decode()
    assert partial.count("<b>CATS</b>") == 3
    cdata = PLURALS.replace("%d <b>cats</b>", "<![CDATA[<i>cats</i> & %d]]>")
    document = read(cdata, "ru")
    assert document.filled(all_changed(document)).decode().count("<![CDATA[<i>CATS</i> & %d]]>") == 3


def test_half_of_a_plural_can_be_filled():
    document = read(PLURALS, "ru")
    partial = document.filled({0: Target(TaggedText("%d кот"))}).decode()
    assert ">%d кот<" in partial and partial.count("<item") == 2


def test_another_xml_file_is_refused():
    with pytest.raises(UserError, match=r"strings.xml:2: begins with <manifest>, not with <resources>"):
        read_document("strings.xml", b"<?xml version='1.0'?>\n<manifest/>", ("en", "es"))
