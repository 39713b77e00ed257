"""Names in zip files: UTF-8 with or without its flag, in composed or decomposed form."""

import unicodedata
from io import BytesIO
from random import Random
from zipfile import ZipFile

import pytest

from bitext.documents.document import read_document
from bitext.documents.zip_container import ZipContainer
from tests.documents.changing import all_changed
from tests.probes.packed import epub, packed
from translucid.ground.errors import UserError

_FLAG = 0x800


def without_flag(content):
    """Remove the UTF-8 flag of all names in a zip file, as Info-ZIP does."""
    content = bytearray(content)
    for signature, flag_offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        position = content.find(signature)
        while position >= 0:
            content[position + flag_offset + 1] &= ~(_FLAG >> 8)
            position = content.find(signature, position + 4)
    return bytes(content)


def book(member, reference):
    """Return a book whose first chapter has this member name and reference."""
    archive = ZipFile(BytesIO(epub(Random(1))))
    members = {name: archive.read(name) for name in archive.namelist()}
    members[f"OEBPS/text/{member}"] = members.pop("OEBPS/text/a.xhtml")
    root = members["OEBPS/book.opf"].decode()
    members["OEBPS/book.opf"] = root.replace("text/a.xhtml", f"text/{reference}").encode()
    return packed(members)


NAME = "pâté über.xhtml"
DECOMPOSED = unicodedata.normalize("NFD", NAME)


@pytest.mark.parametrize("member", [NAME, DECOMPOSED])
@pytest.mark.parametrize("reference", [NAME, DECOMPOSED, "p%C3%A2t%C3%A9%20%C3%BCber.xhtml"])
@pytest.mark.parametrize("has_flag", [True, False])
def test_a_book_finds_its_pages(member, reference, has_flag):
    content = book(member, reference)
    if not has_flag:
        content = without_flag(content)
        assert NAME not in "".join(ZipFile(BytesIO(content)).namelist())
    document = read_document("a.epub", content, ("en", "es"))
    assert document.segments[0].place.startswith(NAME)
    assert document.filled({}) == content
    before, after = (ZipFile(BytesIO(value)) for value in (content, document.filled(all_changed(document))))
    assert before.namelist() == after.namelist()
    name = next(value for value in after.namelist() if value.startswith("OEBPS/text/p"))
    assert before.read(name) != after.read(name)


def test_a_locked_page_is_found_by_its_address():
    content = book("é.xhtml", "é.xhtml")
    archive = ZipFile(BytesIO(content))
    lock = '<e xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherReference URI="OEBPS/text/%C3%A9.xhtml"/></e>'
    members = {name: archive.read(name) for name in archive.namelist()}
    with pytest.raises(UserError, match="protected"):
        read_document("a.epub", packed({**members, "META-INF/encryption.xml": lock}))


def test_names_of_an_old_encoding_are_read_as_such():
    content = packed({"b\xfc.txt": "x"})
    old = content.replace("\xfc".encode(), b"\x81x")  # one byte, and another to keep the length
    assert ZipContainer("a.zip", without_flag(old)).names == ["b\xfcx.txt"]


def test_two_forms_of_one_name_are_refused():
    with pytest.raises(UserError, match="same name"):
        ZipContainer("a.zip", packed({NAME: "", DECOMPOSED: ""}))
