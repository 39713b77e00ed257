"""Ruby base text is translated and its annotation kept; direction marks stay at the ends of a text."""

from io import BytesIO
from zipfile import ZipFile

import pytest

from tests.documents.changing import all_changed
from tests.documents.test_odt_epub import body, changed_book, of_odt
from tests.documents.test_office import BOLD, of_word, paragraph, run
from translucid.documents.kinds import read_document
from translucid.documents.placeholders import PlaceholderStrategy
from translucid.documents.tagged_text import Mark, Side, TaggedText

RUBY = "<w:ruby><w:rubyPr/><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby>"
R, L = "\u200f", "\u200e"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (run("A") + "<w:r>" + RUBY.format(run("x"), run("cat")) + "</w:r>" + run("sat"), "Acatsat"),
        (f"<w:r>{BOLD}" + RUBY.format(run("x"), run("cat", BOLD)) + "</w:r>" + run("and dogs"), "catand dogs"),
        ("<w:r>" + RUBY.format(run("x"), "") + "</w:r>" + run("cat"), "cat"),
    ],
)
def test_words_under_ruby_are_text_in_word(inside, text):
    content = of_word(inside)
    document = read_document("a.docx", content)
    assert [segment.source.text for segment in document.segments] == [text]
    assert document.filled({}) == content
    words = ("A", "cat", "sat", "and dogs")
    expected = inside
    for word in words:
        expected = expected.replace(f">{word}<", f">{word.upper()}<")
    assert paragraph(document.filled(all_changed(document))) == expected


@pytest.mark.parametrize("around", ["{}", "<text:span text:style-name='T2'>{}</text:span>"])
def test_and_in_open_document(around):
    ruby = "<text:ruby><text:ruby-base>cat</text:ruby-base><text:ruby-text>x</text:ruby-text></text:ruby>"
    inside = f"<text:p>A {around.format(ruby)} sat</text:p>"
    document = read_document("a.odt", of_odt(inside))
    (segment,) = document.segments
    assert segment.source.text == "A cat sat"
    filled = body(document.filled(all_changed(document)))
    assert "A " in filled and ruby.replace("cat", "CAT") in filled


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.html", "<p><ruby>cat<rt>x</rt></ruby> sat</p>", "<p><ruby>CAT<rt>x</rt></ruby> SAT</p>"),
        ("a.html", "<p>&rlm;One.&lrm;</p>", "<p>&rlm;ONE.&lrm;</p>"),
        ("a.html", "<p>&#x200F; <b>One</b>&#8206;</p>", "<p>&#x200F; <b>ONE</b>&#8206;</p>"),
        ("a.html", f"<p>{R}One &rlm;two{L}</p>", f"<p>{R}ONE &rlm;TWO{L}</p>"),
        ("a.html", '<img alt="&rlm;One&lrm;">', '<img alt="&rlm;ONE&lrm;">'),
        ("a.md", "&rlm;One.&lrm;\n", "&rlm;ONE.&lrm;\n"),
        ("a.txt", f"{R}One.{L}\n", f"{R}ONE.{L}\n"),
        ("a.json", f'{{"a": "{R}One two.{L}"}}', f'{{"a": "{R}ONE TWO.{L}"}}'),
        ("a.csv", f"en,es\n{R}One.{L},\n", f"en,es\n{R}One.{L},{R}ONE.{L}\n"),
        ("a.xml", f"<resources><string name='a'>{R}One.{L}</string></resources>", f">{R}ONE.{L}</string>"),
        ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{R}One.{L}\n", f"\n{R}ONE.{L}\n"),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n&rlm;One.&lrm;\n", "\n&rlm;ONE.&lrm;\n"),
        (
            "a.vtt",
            "WEBVTT\n\n00:01.000 --> 00:02.000\nA <ruby>cat<rt>x</rt></ruby> sat\n",
            "\nA <ruby>CAT<rt>x</rt></ruby> SAT\n",
        ),
    ],
)
def test_direction_marks_are_unchanged_and_outside_of_texts(name, before, after):
    document = read_document(name, before.encode(), ("en", "es"))
    assert document.filled({}) == before.encode()
    assert not any(sign in segment.source.text for segment in document.segments for sign in (R, L))
    assert after in document.filled(all_changed(document)).decode()


def test_signs_within_a_text_are_put_where_its_words_are():
    strategy = PlaceholderStrategy.first(
        TaggedText(f"See {R}HTML{L} now", (Mark(4, "<b>", Side.opens, 0), Mark(9, "</b>", Side.closes, 0)))
    )
    assert strategy.text == "See HTML now" and strategy.after("VER HTML YA") is None and not strategy.doubts
    target = strategy.target("VER HTML YA", [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)])
    assert target.text == f"VER {R}HTML{L} YA" and len(target.marks) == 2


def test_sections_of_a_book_s_description_stay():
    root = '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
    before = "<dc:description><![CDATA[One & two]]></dc:description>"
    content = changed_book(**{"OEBPS/book.opf": f"{root}{before}</metadata></package>"})
    document = read_document("a.epub", content, ("en", "es"))
    filled = ZipFile(BytesIO(document.filled(all_changed(document)))).read("OEBPS/book.opf").decode()
    assert before.replace("One & two", "ONE & TWO") in filled
