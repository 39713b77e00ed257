"""Ruby base text is translated and its annotation kept; direction marks stay at the ends of a text."""

from io import BytesIO
from zipfile import ZipFile

import pytest

from bitext.documents.document import read_document
from bitext.documents.placeholders import PlaceholderStrategy
from bitext.documents.tagged_text import Mark, Side, TaggedText
from tests.documents.changing import all_changed
from tests.documents.test_odt_epub import body, changed_book, of_odt
from tests.documents.test_office import BOLD, of_word, paragraph, run
from tests.documents.test_office_packages import presentation, slide
from tests.documents.test_workbooks import workbook

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


@pytest.mark.parametrize(
    ("languages", "text", "after"),
    [
        (("en", "ar"), '<html lang="en"><p>One', '<html dir="rtl" lang="ar"><p>ONE'),
        (("en", "he"), '<html lang="en" dir=ltr><p dir="auto">One', '<html lang="he" dir=rtl><p dir="auto">ONE'),
        (("en", "fa"), '<p dir="ltr" lang="en-GB">One', '<p dir="rtl" lang="fa">ONE'),
        (("en", "ur"), '<p>One<p><code dir="ltr">x</code><input dir="ltr">', None),
        (("ar", "es"), '<html dir="rtl"><p dir="rtl">One', '<html dir="ltr"><p dir="ltr">ONE'),
        (("ar", "fa"), '<html dir="rtl" lang="ar">One', '<html dir="rtl" lang="fa">ONE'),
        (("en", "es"), '<html><p dir="rtl">One', '<html><p dir="rtl">ONE'),
        ((None, "ar"), '<html dir="ltr">One', '<html dir="rtl">ONE'),
        # Text in another language stays; that of the root is often wrong.
        (
            ("en", "es"),
            '<p>One <i lang="fr">deux</i></p><p lang="es">tres',
            '<p>ONE <i lang="fr">deux</i></p><p lang="es">tres',
        ),
        (
            ("en", "es"),
            '<div lang="fr">un <p lang="en-US">two</div><p>Six',
            '<div lang="fr">un <p lang="es">TWO</div><p>SIX',
        ),
        (("en", "es"), '<html lang="de"><p lang="de">One', '<html lang="es"><p lang="es">ONE'),
        (("en", "es"), '<p translate="no"><b lang="en">a</b></p><img lang="fr" alt="un"><p lang="">One', None),
        (("en", "es"), '<meta name="Generator" content="Microsoft Word 15"><p><span lang="DE">One</span>', None),
    ],
)
def test_pages_state_the_language_and_direction_of_the_translation(languages, text, after):
    document = read_document("a.html", text.encode(), languages)
    expected = after or text.replace("One", "ONE")
    assert document.filled(all_changed(document)).decode() == expected
    assert document.filled({}) == text.encode()


def office_part(name, member, content, languages):
    document = read_document(name, content, languages)
    assert document.filled({}) == content
    return ZipFile(BytesIO(document.filled(all_changed(document)))).read(member).decode()


PARAGRAPH = "<w:pPr><w:jc/></w:pPr>"
RTL_RUN = '<w:rPr><w:b/><w:bCs/><w:sz w:val="9"/><w:szCs w:val="9"/><w:rtl/><w:lang w:bidi="ar-EG"/></w:rPr>'


def test_word_turns_paragraphs_runs_tables_and_sections():
    inside = PARAGRAPH + run("One", '<w:rPr><w:b/><w:sz w:val="9"/></w:rPr>') + "</w:p><w:p><w:pPr/>" + run("Two")
    layout = "<w:p/><w:tbl><w:tblPr><w:tblStyle/><w:tblW/></w:tblPr></w:tbl><w:sectPr><w:docGrid/></w:sectPr><w:p>"
    content = of_word(f"{inside}</w:p>{layout}")
    after = office_part("a.docx", "word/document.xml", content, ("en", "ar"))
    assert f"<w:pPr><w:bidi/><w:jc/></w:pPr><w:r>{RTL_RUN}<w:t>ONE" in after
    assert '<w:pPr><w:bidi/></w:pPr><w:r><w:rPr><w:rtl/><w:lang w:bidi="ar-EG"/></w:rPr><w:t>TWO' in after
    assert "<w:tblStyle/><w:bidiVisual/><w:tblW/>" in after and "<w:bidi/><w:docGrid/>" in after and "<w:p/>" in after
    back = office_part(
        "a.docx", "word/document.xml", of_word(after[after.index("<w:p>") + 5 : after.rindex("</w:p>")]), ("ar", "en")
    )
    assert not any(name in back for name in ("bidi/", "bidiVisual", "rtl")) and "<w:pPr><w:jc/></w:pPr>" in back


def test_slides_turn_with_their_masters():
    main = "ppt/presentation.xml"
    style = '<a:defPPr algn="l" rtl="0"/>'
    text = "<a:r><a:t>One</a:t></a:r>"
    shape = f'<a:lstStyle><a:lvl1pPr algn="r"/></a:lstStyle><a:p><a:pPr algn="l"/>{text}</a:p><a:p>{text}</a:p>'
    content = presentation(slide(1, shape), relations={}, slide_ids=(), styles=style)
    after = office_part("a.pptx", "ppt/slides/slide1.xml", content, ("en", "he"))
    assert '<a:lvl1pPr algn="l" rtl="1"/>' in after and '<a:p><a:pPr algn="r" rtl="1"/><a:r>' in after
    assert '<a:p><a:pPr rtl="1"/><a:r><a:rPr lang="he-IL"/><a:t>ONE' in after
    assert '<a:defPPr algn="r" rtl="1"/>' in office_part("a.pptx", main, content, ("en", "he"))
    assert style in office_part("a.pptx", main, content, ("en", "es"))


@pytest.mark.parametrize(
    ("view", "after"),
    [
        ('<sheetViews><sheetView tabSelected="1"/></sheetViews>', '<sheetView tabSelected="1" rightToLeft="1"/>'),
        ("", '<sheetViews><sheetView rightToLeft="1" workbookViewId="0"/></sheetViews><sheetData>'),
        ("<cols/>", '<sheetViews><sheetView rightToLeft="1" workbookViewId="0"/></sheetViews><cols/>'),
    ],
)
def test_sheets_begin_on_the_side_of_the_language(view, after):
    content = workbook('<row><c t="s"><v>0</v></c></row>', "<si><t>One</t></si>", before=view)
    member = "xl/worksheets/sheet1.xml"
    turned = office_part("a.xlsx", member, content, ("en", "ar"))
    assert after in turned
    assert view in office_part("a.xlsx", member, content, ("en", "es"))
    if view:
        again = workbook("", "<si><t>One</t></si>", **{member: turned})
        assert "rightToLeft" not in office_part("a.xlsx", member, again, ("ar", "en"))


def test_open_document_states_direction_and_language_in_styles():
    fo = 'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'
    style = '<style:style style:name="P" style:family="paragraph"><style:paragraph-properties {}/></style:style>'
    language = '<style:text-properties fo:language="en" fo:country="US"/>'
    styles = f"<style:default-style><style:paragraph-properties/>{language}</style:default-style>"
    styles += style.format('fo:text-align="left" style:writing-mode="lr-tb"') + style.format('fo:text-align="center"')
    styles = f"<office:s {fo}>{styles}</office:s>"
    content = of_odt("<text:p>One</text:p>", styles)
    after = office_part("a.odt", "content.xml", content, ("en", "ar"))
    assert '<style:paragraph-properties style:writing-mode="rl-tb"/>' in after
    assert (
        'fo:text-align="start" style:writing-mode="rl-tb"' in after
        and '<style:paragraph-properties fo:text-align="center"/>' in after
    )
    assert 'style:language-complex="ar" style:country-complex="EG"' in after
    spanish = office_part("a.odt", "content.xml", content, ("en", "es"))
    assert 'fo:language="es" fo:country="ES"' in spanish and "rl-tb" not in spanish


@pytest.mark.parametrize(
    ("spine", "languages", "after"),
    [
        ("<spine>", ("en", "ar"), '<spine page-progression-direction="rtl">'),
        ('<spine page-progression-direction="rtl">', ("ar", "en"), '<spine page-progression-direction="ltr">'),
        ('<spine page-progression-direction="rtl">', ("ja", "en"), '<spine page-progression-direction="rtl">'),
    ],
)
def test_books_turn_their_pages(spine, languages, after):
    source, target = languages
    opf = ZipFile(BytesIO(changed_book())).read("OEBPS/book.opf").decode()
    opf = opf.replace("<package ", f'<package xml:lang="{source}" dir="ltr" ').replace("<spine>", spine)
    filled = office_part("a.epub", "OEBPS/book.opf", changed_book(**{"OEBPS/book.opf": opf}), languages)
    assert after in filled and f'xml:lang="{target}" dir="{"rtl" if target == "ar" else "ltr"}"' in filled
