"""E-books (EPUB): their pages, the titles in the table of contents, and the metadata that a library shows."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from urllib.parse import unquote

from bitext.documents.markup import html
from bitext.documents.spans import is_numeral
from bitext.documents.xml.xml_file import Inline, SlottedXml, add_text, written_in_cdata
from bitext.documents.zip_container import Bundle, ZipContainer, member_name
from bitext.languages import Languages, new_direction, same_language, short_code, usual_code
from bitext.readers.xml_elements import Element

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_SPACES = {
    "urn:oasis:names:tc:opendocument:xmlns:container": "",
    "http://www.w3.org/2001/04/xmlenc#": "",
    "http://www.idpf.org/2007/opf": "",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.daisy.org/z3986/2005/ncx/": "",
}
_PAGE, _CONTENTS = "application/xhtml+xml", "application/x-dtbncx+xml"
_BOOK = "application/oebps-package+xml"
_PEOPLE = "dc:creator", "dc:contributor", "dc:publisher"
_METADATA = "dc:title", "dc:description", "dc:subject"


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a book: its pages in reading order, then pages outside of that order, then the metadata.

    Raises:
        UserError: the file is not an e-book, or is invalid, protected or harmful.
    """
    archive = ZipContainer(name, content)
    if "mimetype" not in archive.names or archive.read("mimetype").strip() != b"application/epub+zip":
        raise archive.error("is another kind of document than its name says")
    bundle, members = Bundle(archive), dict(_members(archive))
    is_kept = _BookTexts(_people(archive, members))
    encrypted = set()
    for reference in _units(archive, _ENCRYPTION, "CipherReference"):
        encrypted.add(_path("", reference.attributes.get("URI", "")))
    for member, kind in members.items():
        if member in encrypted:
            raise archive.error("is protected against copying", member)
        if kind == _PAGE:
            page = archive.read(member)
            if b"<!ENTITY" in page:
                raise archive.error("declares entities of its own, which is refused", member)
            document = html.read(archive.display_name(member), page, languages, is_kept)
            bundle.add(member, document, posixpath.basename(member))
        elif kind == _CONTENTS:
            bundle.add(member, _labels(archive, member, "ncx", ["text"], languages, is_kept), "contents")
        else:
            bundle.add(member, _labels(archive, member, "package", _METADATA, languages, is_kept), "about the book")
    return bundle


class _BookTexts:
    """The texts of a book that stay: its people, and numbers of pages and chapters."""

    def __init__(self, people: Iterable[str]) -> None:
        self.people = frozenset(map(_plain, people))

    def __call__(self, text: str) -> bool:
        return is_numeral(text, in_book=True) or _plain(text) in self.people


def _plain(name: str) -> str:
    return " ".join(name.split()).strip(" ,.").casefold()


def _people(archive: ZipContainer, members: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of the authors and others who made the book."""
    for member, kind in members.items():
        if kind == _BOOK:
            for person in _units(archive, member, *_PEOPLE):
                yield person.text
                yield " ".join(reversed(person.text.split(",", 1)))  # `Lee, Ann`


def _members(archive: ZipContainer) -> Iterator[tuple[str, str]]:
    """Yield the members with texts, and their media types."""
    for book in _units(archive, _CONTAINER, "rootfile"):
        root = member_name(book.attributes.get("full-path", ""))
        if book.attributes.get("media-type") != _BOOK or root not in archive.names:
            continue
        elements = _units(archive, root, "item", "itemref")
        reading_order: dict[str | None, int] = {}  # in reading order, by the item's identifier
        items: list[Element] = []
        for position, element in enumerate(elements):
            if element.name == "itemref":
                reading_order[element.attributes.get("idref")] = position
            elif element.attributes.get("media-type") in (_PAGE, _CONTENTS):
                items.append(element)
        for item in sorted(items, key=lambda item: reading_order.get(item.attributes.get("id"), len(elements))):
            yield _path(posixpath.dirname(root), item.attributes.get("href", "")), item.attributes["media-type"]
        yield root, _BOOK
        return
    raise archive.error("has no book in it")


def _path(folder: str, reference: str) -> str:
    """Return the name of the member that a reference from a folder means."""
    return member_name(posixpath.normpath(posixpath.join(folder, unquote(reference))))


def _units(archive: ZipContainer, member: str, *names: str) -> list[Element]:
    if member not in archive.names:
        return []
    return list(archive.xml(member).file.units((), names, _SPACES))


def _labels(
    archive: ZipContainer,
    member: str,
    root: str,
    names: Collection[str],
    languages: Languages,
    is_kept: Callable[[str], bool],
) -> SlottedXml:
    """Parse a table of contents of EPUB 2, or the metadata of a book.

    The source language among the languages of the book becomes the target language.
    """
    document = archive.xml(member)
    inline = Inline(document.file, lambda element: "alone", edges=True, write_cdata=written_in_cdata)
    declared = list[Element]()
    for element in document.file.units({root}, {*names, "dc:language"}, _SPACES):
        if element.name == "dc:language":
            declared.append(element)
        elif element.parts and not is_kept(element.text) and not _is_of_author(element):
            place = f"line {element.line}" if element.name == "text" else element.name.removeprefix("dc:")
            add_text(document, inline, element.parts, place)
    code = usual_code(languages[1] or "")
    for element in declared:
        is_only = languages[0] is None and len(declared) == 1
        if code and (is_only or short_code(element.text.strip()) == short_code(languages[0] or "")):
            document.add_slot(element.inner, element.inner_end, None, code)
    _adapt(document, [root, *names, "spine"], languages)
    return document


def _adapt(document: SlottedXml, names: Sequence[str], languages: Languages) -> None:
    """Give elements of some names the target language instead of the source language, and the new direction."""
    code, direction = usual_code(languages[1] or ""), new_direction(languages)
    seen = set[int]()
    for unit in document.file.units((), set(names) - {names[0]}, _SPACES):
        for element in chain([unit], unit.ancestors()):
            if element.start in seen:  # and so are the elements around it
                break
            seen.add(element.start)
            attributes: dict[str, str | None] = {}
            current = element.attributes.get("xml:lang", "")
            is_source = languages[0] is None or same_language(current, short_code(languages[0]))
            if code and current and is_source:
                attributes["xml:lang"] = code
            if direction and element.attributes.get("dir", direction) != direction:
                attributes["dir"] = direction
            progression = element.attributes.get("page-progression-direction")
            if element.name == "spine" and direction and (progression or "ltr") != direction:
                attributes["page-progression-direction"] = direction
            if attributes:
                document.set_attributes(element, attributes)


def _is_of_author(label: Element) -> bool:
    return label.parent is not None and label.parent.name == "docAuthor"
