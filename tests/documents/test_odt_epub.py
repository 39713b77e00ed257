"""Texts of OpenDocument files and e-books."""

from io import BytesIO
from random import Random
from xml.etree import ElementTree
from zipfile import ZIP_STORED, ZipFile

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from tests.probes.packed import epub, odt, packed
from translucid.ground.errors import UserError

OASIS = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
NAMES = " ".join(f'xmlns:{name}="{OASIS.format(name)}"' for name in ("office", "text", "style"))
STYLES = '<style:style style:name="R" style:family="text"><style:text-properties o:rsid="1"/></style:style>'


def of_odt(text, styles=STYLES, **members):
    xml = (
        f'<office:document-content {NAMES} xmlns:o="http://openoffice.org/2009/office">'
        f"<office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body>{text}</office:body></office:document-content>"
    )
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": "<m/>",
            "content.xml": xml,
            **members,
        }
    )


def read(content, name="a.odt"):
    return read_document(name, content, ENGLISH_SPANISH)


def body(content):
    text = ZipFile(BytesIO(content)).read("content.xml").decode()
    return text[text.index("<office:body>") + 13 : text.index("</office:body>")]


@pytest.mark.parametrize(
    ("content", "texts", "after"),
    [
        ("<text:p>One\n   cat</text:p>", ["One cat"], "<text:p>ONE CAT</text:p>"),
        ("<text:h> One </text:h>", ["One"], "<text:h> ONE </text:h>"),
        ('<text:p>a<text:span text:style-name="R">b</text:span>c</text:p>', ["abc"], "<text:p>ABC</text:p>"),
        (
            '<text:p><text:span text:style-name="B">b</text:span></text:p>',
            ["b"],
            '<text:p><text:span text:style-name="B">B</text:span></text:p>',
        ),
        ("<text:p>a<text:soft-page-break/>b</text:p>", ["ab"], "<text:p>AB</text:p>"),
        ("<text:p>a<text:s/>b</text:p>", ["a b"], "<text:p>A <text:s/>B</text:p>"),
        ("<text:p>a<text:tab/>b</text:p>", ["a", "b"], "<text:p>A<text:tab/>B</text:p>"),
        ("<text:p>a.<text:line-break/>b</text:p>", ["a.", "b"], "<text:p>A.<text:line-break/>B</text:p>"),
        ("<text:p>a<text:line-break/>b</text:p>", ["a b"], "<text:p>A <text:line-break/>B</text:p>"),
        ("<text:tracked-changes><text:p>a</text:p></text:tracked-changes>", [], None),
        ("<text:p><text:page-number>1</text:page-number></text:p><text:p/>", [], None),
    ],
)
def test_paragraphs_are_read_and_written(content, texts, after):
    document = read(of_odt(content))
    assert [segment.source.text for segment in document.segments] == texts
    assert body(document.filled(all_changed(document))) == (after or content)


def test_notes_and_frames_are_translated_in_their_paragraph():
    content = "<text:note-citation>1</text:note-citation><text:note-body><text:p>Inside</text:p></text:note-body>"
    note = f"<text:note>{content}</text:note>"
    document = read(of_odt(f"<text:p>Before{note} after</text:p>"))
    assert [segment.source.text for segment in document.segments] == ["Before after", "Inside"]
    for numbers in ((0,), (1,), (0, 1)):
        targets = {i: target for i, target in all_changed(document).items() if i in numbers}
        after = body(document.filled(targets))
        assert ("INSIDE" in after, "AFTER" in after) == (1 in numbers, 0 in numbers)
        assert after.lower().count("inside") == 1


def test_breaks_of_a_translation_become_elements():
    document = read(of_odt("<text:p>a</text:p>"))
    assert (
        body(document.filled({0: Target(TaggedText("a\tb\nc"))})) == "<text:p>a<text:tab/>b<text:line-break/>c</text:p>"
    )


def test_headers_stand_in_the_styles():
    styles = f"<office:document-styles {NAMES}><text:p>Header</text:p></office:document-styles>"
    document = read(of_odt("<text:p>a</text:p>", **{"styles.xml": styles}))
    assert [segment.place for segment in document.segments] == ["paragraph 1", "headers and footers, paragraph 1"]
    assert b"HEADER" in ZipFile(BytesIO(document.filled(all_changed(document)))).read("styles.xml")


@pytest.mark.parametrize("has_own_table", [True, False])
def test_titles_labels_and_own_tables_of_charts_are_translated(has_own_table):
    address = "local-table.$B$1" if has_own_table else "Sheet1.$B$1"
    text = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    number = '<table:table-cell office:value-type="float" office:value="3"><text:p>3 cats</text:p></table:table-cell>'
    names = f'{NAMES} xmlns:table="{OASIS.format("table")}"'
    chart = (
        f"<office:document-content {names}><style:style><text:p>and</text:p></style:style><text:p>Sales</text:p>"
        f'<series address="{address}"><text:p>The year</text:p></series><table:table table:name="local-table">'
        f"<table:table-row>{text.format('Cats')}{number}</table:table-row></table:table></office:document-content>"
    )
    entry = '<e media-type="application/vnd.oasis.opendocument.{}" full-path="{}/"/>'
    manifest = "".join(entry.format(*pair) for pair in (("text", ""), ("chart", "Obj 10"), ("chart", "Obj 9")))
    manifest = f"<!DOCTYPE m><m>{manifest}{entry.format('formula', 'Obj 1')}</m>"
    members = {"META-INF/manifest.xml": manifest, "Obj 1/content.xml": chart, "Obj 10/content.xml": chart}
    content = of_odt("<text:p>a</text:p>", **members, **{"Obj 9/content.xml": chart.replace("Sales", "Prices")})
    document = read(content)
    assert document.filled({}) == content
    texts = [segment.source.text for segment in document.segments]
    labels = ["The year", "Cats"] if has_own_table else ["The year"]
    assert texts == ["a", "Prices", *labels, "Sales", *labels]
    assert document.segments[1].place == "chart, text 1"
    archive = ZipFile(BytesIO(document.filled(all_changed(document))))
    after = chart.replace("Sales", "SALES").replace("The year", "THE YEAR")
    if has_own_table:
        after = after.replace("Cats", "CATS")
    assert archive.read("Obj 10/content.xml").decode() == after
    assert archive.read("Obj 9/content.xml").decode() == after.replace("SALES", "PRICES")
    assert archive.read("Obj 1/content.xml").decode() == chart


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed({"a": ""}), "a.odt: is another kind of document"),
        (packed({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}), "a.odt: is another kind of document"),
        (of_odt("", **{"Basic/script-lc.xml": ""}), "a.odt: has macros"),
        (of_odt("", **{"META-INF/manifest.xml": "<m><encryption-data/></m>"}), "a.odt: is encrypted"),
        (of_odt("\n<text:p>"), "a.odt/content.xml:2: is no XML"),
    ],
)
def test_unreadable_files_are_one_line(content, message):
    with pytest.raises(UserError, match=f"^{message}"):
        read(content)


def test_a_book_is_read_in_its_order_and_the_first_member_stays_as_it_must_be():
    content = epub(Random(1))
    document = read(content, "a.epub")
    pages = list(dict.fromkeys(segment.place.partition(",")[0] for segment in document.segments))
    assert pages == ["a.xhtml", "b b.xhtml", "nav.xhtml", "contents"]
    filled = document.filled(all_changed(document))
    first = ZipFile(BytesIO(filled)).infolist()[0]
    assert (first.filename, first.compress_type, filled[30:58]) == (
        "mimetype",
        ZIP_STORED,
        b"mimetypeapplication/epub+zip",
    )
    archive = ZipFile(BytesIO(filled))
    assert b"<text>CHAPTER ONE</text>" in archive.read("OEBPS/toc.ncx")
    assert b">CHAPTER ONE</a>" in archive.read("OEBPS/nav.xhtml")
    for name in archive.namelist()[1:]:
        ElementTree.fromstring(archive.read(name))


def changed_book(**members):
    archive = ZipFile(BytesIO(epub(Random(1))))
    return packed({**{name: archive.read(name) for name in archive.namelist()}, **members})


ABOUT = "".join(
    f"<dc:{name}>{text}</dc:{name}>"
    for name, text in (("title", "The cat"), ("language", "en-GB"), ("creator", "Ann Lee"), ("identifier", "a b"))
)


@pytest.mark.parametrize("language", ["en", None])
def test_what_a_library_shows_of_a_book_is_translated(language):
    archive = ZipFile(BytesIO(epub(Random(1))))
    root = archive.read("OEBPS/book.opf").decode()
    about = f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{ABOUT}</metadata>'
    content = changed_book(**{"OEBPS/book.opf": root.replace("<manifest>", f"{about}<manifest>")})
    document = read_document("a.epub", content, (language, "es"))
    last = document.segments[-1]
    assert (last.source.text, last.place) == ("The cat", "about the book, title")
    assert document.filled({}) == content
    changed = ABOUT.replace("The cat", "THE CAT").replace("en-GB", "es")
    assert changed in ZipFile(BytesIO(document.filled(all_changed(document)))).read("OEBPS/book.opf").decode()


def test_another_language_of_a_book_stays():
    root = '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
    metadata = "<dc:title>The cat</dc:title><dc:language>en</dc:language><dc:language>la</dc:language>"
    document = read(changed_book(**{"OEBPS/book.opf": f"{root}{metadata}</metadata></package>"}), "a.epub")
    after = ZipFile(BytesIO(document.filled(all_changed(document)))).read("OEBPS/book.opf").decode()
    assert "<dc:language>es</dc:language><dc:language>la</dc:language>" in after


def encrypted(member):
    reference = f'<CipherReference URI="{member}"/>'
    return changed_book(**{"META-INF/encryption.xml": f'<e xmlns="http://www.w3.org/2001/04/xmlenc#">{reference}</e>'})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (odt(Random(1)), "a.epub: is another kind of document"),
        (packed({"mimetype": "application/epub+zip"}), "a.epub: has no book in it"),
        (encrypted("OEBPS/text/a.xhtml"), "a.epub/OEBPS/text/a.xhtml: is protected against copying"),
        (changed_book(**{"OEBPS/book.opf": "<package>"}), "a.epub/OEBPS/book.opf:1: is no XML"),
    ],
)
def test_books_that_can_not_be_read_are_one_line(content, message):
    with pytest.raises(UserError, match=f"^{message}"):
        read(content, "a.epub")


def test_a_font_that_is_scrambled_is_no_lock():
    assert read(encrypted("OEBPS/font.otf"), "a.epub").segments


def test_spans_of_a_session_are_no_formatting_but_styles_derived_from_others_are():
    style = '<style:style style:name="{}" style:family="{}"{}><style:text-properties {}="1"/></style:style>'
    styles = (
        style.format("R", "text", "", "o:rsid")
        + style.format("E", "text", ' style:parent-style-name="Emphasis"', "o:rsid")
        + style.format("B", "text", "", 'o:rsid="1" style:x')
        + style.format("P", "paragraph", "", "o:rsid")
    )

    def spans_with(*texts):
        parts = [
            f'<text:span text:style-name="{name}">{text}</text:span>' for name, text in zip("EBP", texts, strict=True)
        ]
        return ", ".join(parts)

    session_span = '<text:span text:style-name="R">ne </text:span>'
    document = read(of_odt(f"<text:p>O{session_span}and {spans_with('two', 'six', 'ten')}.</text:p>", styles))
    assert document.segments[0].source.full_text == f"One and {spans_with('two', 'six', 'ten')}."
    filled = body(document.filled(all_changed(document)))
    assert filled == f"<text:p>ONE AND {spans_with('TWO', 'SIX', 'TEN')}.</text:p>"


def test_lines_places_and_changes_of_a_text():
    bold = '<text:span text:style-name="B">{}</text:span>'
    deleted = "<text:changed-region><text:deletion><text:p>No</text:p></text:deletion></text:changed-region>"
    content = (
        f"<text:tracked-changes>{deleted}</text:tracked-changes><text:p/><text:p> </text:p>"
        "<text:p><text:tab/>Name<text:tab/>Ann<text:line-break/>Lee</text:p>"
        f"<text:p>One{bold.format('.')}<text:line-break/>Two,<text:line-break/>six<text:s/>ten</text:p>"
        f"<text:h>At {bold.format('the')}<text:a>end</text:a><text:meta>ing</text:meta><text:x>no</text:x>.</text:h>"
    )
    document = read(of_odt(content))
    assert [(segment.source.full_text, segment.place) for segment in document.segments] == [
        ("Name", "paragraph 3"),
        ("Ann", "paragraph 3"),
        ("Lee", "paragraph 3"),
        (f"One{bold.format('.')}", "paragraph 4"),
        ("Two,<text:line-break/>six <text:s/>ten", "paragraph 4"),
        (
            f"At {bold.format('the')}<text:a>end</text:a><text:meta>ing</text:meta><text:x>no</text:x>.",
            "paragraph 5",
        ),
    ]
    after = content.replace("six<", "SIX <")
    for word in ("Name", "Ann", "Lee", "One", "Two", "ten", "At ", "the<", "end", "ing"):
        after = after.replace(f">{word}", f">{word.upper()}")
    assert body(document.filled(all_changed(document))) == after
    assert document.segments.remarks[0].startswith(
        "tracked changes: insertions are translated (0), deletions stay as they are (1)"
    )


def test_elements_for_breaks_have_the_prefix_of_their_paragraph():
    content = f'<text xmlns="{OASIS.format("text")}"><h>One</h><p>Two<note><p>Six</p></note></p></text>'
    document = read(of_odt("", **{"content.xml": content}))
    assert [segment.place for segment in document.segments] == [
        "paragraph 1",
        "paragraph 2",
        "paragraph 2, note or frame",
    ]
    targets = {number: Target(TaggedText("a\tb\nc&\t")) for number in range(3)}
    filled = ZipFile(BytesIO(document.filled(targets))).read("content.xml").decode()
    expected = "a<tab/>b<line-break/>c&amp;<tab/>"
    assert filled == content.replace("One", expected).replace("Two", expected).replace("Six", expected)
