"""E-books and other zip files, member by member."""

import struct
import zipfile
import zlib
from io import BytesIO
from random import Random

import pytest

from bitext.documents.document import SegmentList, Target, limit_segments, read_document
from bitext.documents.tagged_text import TaggedText
from bitext.documents.zip_container import LARGEST_RATIO, SMALL, ZipContainer, member_name
from tests.documents.changing import all_changed
from tests.probes.packed import packed
from translucid.ground.errors import UserError

HEAD = '<html xmlns="http://www.w3.org/1999/xhtml"><body>'
BOOK = '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
ABOUT = """
<dc:title>A cat</dc:title>
<dc:creator>no one</dc:creator>
<dc:description>It is &amp; was</dc:description>
<dc:subject/><dc:subject>cats</dc:subject>
<dc:language> en-US </dc:language><dc:language>fr</dc:language>
"""
MEMBERS = {
    "mimetype": "application/epub+zip\n",
    "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="other.pdf" media-type="application/pdf"/>'
    '<rootfile full-path="missing.opf" media-type="application/oebps-package+xml"/>'
    '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/>'
    '<rootfile full-path="OPS/second.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
    "OPS/book.opf": f"{BOOK}{ABOUT}</metadata><manifest>"
    '<item id="x" href="x.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    '<item id="i" href="i.png" media-type="image/png"/>'
    '<item id="b" href="text/b.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="a" href="../a%20a.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="b2" href="text/b.xhtml" media-type="application/xhtml+xml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
    "OPS/second.opf": f"{BOOK}<dc:title>no</dc:title></metadata></package>",
    "OPS/x.xhtml": f"{HEAD}<p>last</p></body></html>",
    "OPS/i.png": "no",
    "OPS/text/b.xhtml": f"{HEAD}\n<p>second <b>one</b></p></body></html>",
    "a a.xhtml": f"{HEAD}<p>first</p></body></html>",
    "OPS/toc.ncx": '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/">\n<navLabel><text>first</text></navLabel>'
    "<navLabel><text></text></navLabel><navLabel><text>second</text></navLabel></ncx>",
}


def read(languages=("en", "es"), **members):
    return read_document("a.epub", packed({**MEMBERS, **members}), languages)


def members_of(content):
    archive = zipfile.ZipFile(BytesIO(content))
    return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_book_is_read_in_reading_order():
    document = read()
    assert [(segment.source.full_text, segment.place) for segment in document.segments] == [
        ("first", "a a.xhtml, line 1"),
        ("second <b>one</b>", "b.xhtml, line 2"),
        ("last", "x.xhtml, line 1"),
        ("first", "contents, line 2"),
        ("second", "contents, line 2"),
        ("A cat", "about the book, title"),
        ("It is & was", "about the book, description"),
        ("cats", "about the book, subject"),
    ]
    assert document.filled({}) == packed(MEMBERS)
    expected = {**MEMBERS}
    expected["a a.xhtml"] = expected["a a.xhtml"].replace("first", "FIRST")
    expected["OPS/text/b.xhtml"] = expected["OPS/text/b.xhtml"].replace("second <b>one", "SECOND <b>ONE")
    expected["OPS/x.xhtml"] = expected["OPS/x.xhtml"].replace("last", "LAST")
    expected["OPS/toc.ncx"] = expected["OPS/toc.ncx"].replace("first", "FIRST").replace("second", "SECOND")
    about = expected["OPS/book.opf"].replace("A cat", "A CAT").replace("It is &amp; was", "IT IS &amp; WAS")
    expected["OPS/book.opf"] = about.replace(">cats", ">CATS").replace("> en-US <", ">es<")
    assert members_of(document.filled(all_changed(document))) == expected


def test_only_members_with_translations_change():
    document = read()
    after = members_of(document.filled({3: Target(TaggedText("uno")), 1: Target(TaggedText("dos"))}))
    changed = {"OPS/toc.ncx", "OPS/text/b.xhtml", "OPS/book.opf"}  # the last for the language of the book
    assert {name for name in MEMBERS if after[name] != MEMBERS[name]} == changed
    assert "<p>dos<b></b></p>" in after["OPS/text/b.xhtml"]  # with the tag that is missing in the translation
    assert "<text>uno</text>" in after["OPS/toc.ncx"]


@pytest.mark.parametrize(
    ("languages", "declared", "after"),
    [
        (("en", "es"), "<dc:language>en</dc:language>", "<dc:language>es</dc:language>"),
        (("en", "es"), "<dc:language>fr</dc:language>", "<dc:language>fr</dc:language>"),
        ((None, "es"), "<dc:language>fr</dc:language>", "<dc:language>es</dc:language>"),
        ((None, "es"), "<dc:language>fr</dc:language><dc:language>en</dc:language>", None),
        (("en", None), "<dc:language>en</dc:language>", None),
    ],
)
def test_the_language_of_a_book(languages, declared, after):
    document = read(languages, **{"OPS/book.opf": f"{BOOK}<dc:title>One</dc:title>{declared}</metadata></package>"})
    book = members_of(document.filled(all_changed(document)))["OPS/book.opf"]
    assert book == f"{BOOK}<dc:title>ONE</dc:title>{after or declared}</metadata></package>"


def encryption(*names):
    references = "".join(f'<CipherReference URI="{name}"/>' for name in names)
    return f'<e xmlns="http://www.w3.org/2001/04/xmlenc#">{references}</e>'


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"mimetype": "application/zip"}, "a.epub: is another kind of document than its name says"),
        (
            {"META-INF/encryption.xml": encryption("OPS/i.png", "OPS/text/b.xhtml")},
            "a.epub/OPS/text/b.xhtml: is protected",
        ),
        ({"META-INF/encryption.xml": encryption("a%20a.xhtml")}, "a.epub/a a.xhtml: is protected against copying"),
        ({"OPS/x.xhtml": '<!DOCTYPE html [<!ENTITY a "b">]>'}, "a.epub/OPS/x.xhtml: declares entities of its own"),
        ({"META-INF/container.xml": "<container/>"}, "a.epub: has no book in it"),
    ],
)
def test_books_that_cannot_be_translated(members, message):
    with pytest.raises(UserError) as error:
        read(**members)
    assert str(error.value).startswith(message)


def test_the_number_of_segments_is_limited_over_all_members():
    with limit_segments(7), pytest.raises(UserError, match=r"^a\.epub: has more than 7 texts"):
        read()
    with limit_segments(8):
        assert len(read().segments) == 8
    segments = SegmentList("a.txt")
    segments.need_room(segments.limit)
    with pytest.raises(UserError, match=r"^a\.txt: has more than 250,000 texts\. Split it\.$"):
        segments.need_room(segments.limit + 1)


@pytest.mark.parametrize("program", ["/bin/sh", ".."])
def test_a_member_may_be_replaced_by_one_of_another_size(program):
    content = packed({"a": "1" * 500, "b": program, "c": "x" * 300}, Random(3))
    container = ZipContainer("a.zip", content)
    for replacement in (b"", b"y", b"z" * 5000):
        filled = container.filled({"b": replacement, "a": b"2"})
        archive = zipfile.ZipFile(BytesIO(filled))
        assert [archive.read(name) for name in "abc"] == [b"2", replacement, b"x" * 300]
        reopened = ZipContainer("b.zip", filled)
        assert (reopened.read("b"), reopened.read("c"), reopened.names) == (replacement, b"x" * 300, ["a", "b", "c"])


def central(content, offset, layout, value):
    """Return a zip file with another value of a field in the first entry of its central directory."""
    result = bytearray(content)
    struct.pack_into(layout, result, content.index(b"PK\1\2") + offset, value)
    return bytes(result)


PLAIN = packed({"a": "1" * 500, "b": "2"}, Random(1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (central(PLAIN, 10, "<H", 9), "a.zip/a: is packed in a way that can't be read"),
        (central(PLAIN, 8, "<H", 0x2000), "a.zip/a: is encrypted"),
        (central(PLAIN, 24, "<L", SMALL + 1), "a.zip/a: is packed far too well to be harmless"),
        (central(PLAIN, 20, "<L", len(PLAIN)), "a.zip/a: is damaged"),
        (central(PLAIN, 42, "<L", 7), "a.zip/a: is damaged"),
        (packed({"a\tb": ""}), r"a.zip/a\tb: has a file in it whose name leads out of it"),
        (packed({"a/../../b": ""}), "a.zip/a/../../b: has a file in it whose name leads out of it"),
        (packed({"é": "", "e\u0301": ""}), "a.zip: has two files of the same name in it"),
    ],
)
def test_harmful_directories(content, message):
    with pytest.raises(UserError) as error:
        ZipContainer("a.zip", content)
    assert str(error.value).startswith(f"{message}. Save it again with the program that it is from.")


@pytest.mark.parametrize("name", ["a..b", "..a/b", "a/b..", "a.../c", "ab:c"])
def test_harmless_names(name):
    assert ZipContainer("a.zip", packed({name: "x"})).read(name) == b"x"


def test_compression_of_small_and_of_large_members():
    assert ZipContainer("a.zip", packed({"a": "\0" * SMALL}, Random(1))).read("a") == b"\0" * SMALL
    large = Random(1).randbytes(12_000) + b"\0" * SMALL
    assert len(zlib.compress(large)) > len(large) / LARGEST_RATIO
    assert ZipContainer("a.zip", packed({"a": large}, Random(1))).read("a") == large


def test_the_wrong_checksum_or_size_of_a_member_is_damage():
    for offset, value in ((16, 1), (24, 499), (24, 501)):
        container = ZipContainer("a.zip", central(PLAIN, offset, "<L", value))
        with pytest.raises(UserError, match=r"^a\.zip/a: is damaged"):
            container.read("a")
        assert container.read("b") == b"2"
    stored = central(packed({"a": "1" * 5}), 16, "<L", 1)
    with pytest.raises(UserError, match=r"^a\.zip/a: is damaged"):
        ZipContainer("a.zip", stored).read("a")


def test_names_with_separate_accents():
    assert member_name("e\u0301") == "é"
    assert ZipContainer("a.zip", packed({"e\u0301": "x"})).read("é") == b"x"


@pytest.mark.parametrize(
    ("text", "is_translated"),
    [
        *[
            ("IV", False),
            ("i", False),
            ("xii.", False),
            ("I", False),
            ("Chapter I", True),
            ("mix", True),
            ("civil", True),
        ],
        *[("Ann Lee", False), ("LEE, Ann", False), ("By Ann Lee", True), ("An Actor", False), ("The cat", True)],
    ],
)
def test_numerals_and_names_of_people_stay_in_a_book(text, is_translated):
    people = "<dc:creator>Lee, Ann</dc:creator><dc:contributor>An actor</dc:contributor><dc:title>Cats</dc:title>"
    labels = f"<docAuthor><text>The Author</text></docAuthor><navLabel><text>{text}</text></navLabel>"
    members = {
        "OPS/book.opf": MEMBERS["OPS/book.opf"].replace("</metadata>", f"{people}</metadata>"),
        "OPS/toc.ncx": f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/">{labels}</ncx>',
        "a a.xhtml": f"{HEAD}<h2>{text}</h2></body></html>",
    }
    document = read(**members)
    texts = [segment.source.text for segment in document.segments]
    assert texts.count(text) == 2 * is_translated and "The Author" not in texts


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.txt"])
def test_long_numerals_stay_in_every_document(name):
    texts = [segment.source.text for segment in read_document(name, b"XIV\n\nI\n\nCivil", ("en", "es")).segments]
    assert texts == (["XIV I Civil"] if name == "a.html" else ["I", "Civil"])
