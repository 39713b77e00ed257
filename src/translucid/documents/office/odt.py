"""OpenDocument text: the paragraphs and headings of the body, of notes, frames, headers and footers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from translucid.data.languages import Languages
from translucid.data.readers.xml_elements import Element, Piece
from translucid.documents.xml.slots import SlottedXml
from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.xml.xml_inline import Inline, Role, add_text, ends_line, escaped, folded, is_tab, line_so_far
from translucid.documents.xml.xml_tags import prefix
from translucid.documents.zip_container import Bundle, ZipContainer

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_SPACES = {
    **{_OASIS.format(name): name for name in ("office", "style", "text")},
    "http://openoffice.org/2009/office": "officeooo",
}
_TYPE = b"application/vnd.oasis.opendocument.text"
_PARAGRAPHS = ("text:p", "text:h")
_LINE_BREAKS = {"text:tab", "text:line-break"}
_ROLES: dict[str, Role] = {
    **dict.fromkeys(["text:span", "text:a", "text:meta", "text:ruby"], "pair"),
    **dict.fromkeys([*_LINE_BREAKS, "text:s"], "break"),
    "text:soft-page-break": "gone",
}


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a text document.

    Raises:
        UserError: the file is not a text document, is invalid, encrypted or harmful, or has macros.
    """
    archive = ZipContainer(name, content)
    if "mimetype" not in archive.names or not archive.read("mimetype").startswith(_TYPE):
        raise archive.error("is another kind of document than its name says")
    if any(member.startswith(("Basic/", "Scripts/")) for member in archive.names):
        raise archive.error("has macros, which is refused")
    if b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise archive.error("is encrypted")
    bundle = Bundle(archive)
    for member, label in (("content.xml", ""), ("styles.xml", "headers and footers")):
        if member in archive.names:
            bundle.add(member, _read_part(archive, member), label)
    return bundle


def _read_part(archive: ZipContainer, member: str) -> SlottedXml:
    document = SlottedXml(XmlFile(archive.display_name(member), archive.read(member)))
    invisible = set[str]()
    number = 0
    for unit in document.file.units((), {"style:style", *_PARAGRAPHS}, _SPACES):
        if unit.name == "style:style":
            if _is_invisible(unit):
                invisible.add(unit.attributes.get("style:name", ""))
        elif not _is_deleted(unit):
            number += 1
            _add_paragraph(document, invisible, unit, f"paragraph {number}")
    return document


def _add_paragraph(document: SlottedXml, invisible: set[str], paragraph: Element, place: str) -> None:
    """Add a paragraph, and the paragraphs in its notes and frames."""
    inline = Inline(
        document.file,
        partial(_role, invisible),
        edges=True,
        subflow_names=_PARAGRAPHS,
        texts=folded,
        write=partial(_written, prefix(document.file.raw(paragraph.start, paragraph.inner))),
    )
    for ruby in paragraph.within("text:ruby"):
        _keep_reading(ruby)
    for line in _lines(document.file, paragraph):
        add_text(document, inline, line, place)
    for inner in paragraph.within(*_PARAGRAPHS):
        _add_paragraph(document, invisible, inner, f"{place}, note or frame")


def _lines(file: XmlFile, paragraph: Element) -> Iterator[list[Element | Piece]]:
    """Split a paragraph at line breaks that are not within a sentence."""
    line, before = list[Element | Piece](), ""
    for part in paragraph.parts:
        raw = file.raw(part.start, part.end)
        if isinstance(part, Element) and part.name in _LINE_BREAKS and line and ends_line(before, raw):
            yield line
            line, before = [], "\t" * is_tab(raw)
        line.append(part)
        before = line_so_far(before, part.text)
    if line:
        yield line


def _role(invisible: set[str], element: Element) -> Role:
    if element.name == "text:span" and element.attributes.get("text:style-name") in invisible:
        return "none"
    return _ROLES.get(element.name, "alone")


def _keep_reading(ruby: Element) -> None:
    """Make the pronunciation of a word part of the tags around the word."""
    if base := ruby.child("text:ruby-base"):
        ruby.inner, ruby.inner_end, ruby.parts = base.inner, base.inner_end, base.parts


def _is_invisible(style: Element) -> bool:
    """Whether a text style only records in which session of LibreOffice the text was written."""
    if style.attributes.get("style:family") != "text" or "style:parent-style-name" in style.attributes:
        return False
    for child in style.children:
        for key in child.attributes:
            if not key.startswith("officeooo:"):
                return False
    return True


def _is_deleted(paragraph: Element) -> bool:
    ancestor = paragraph.parent
    while ancestor is not None and ancestor.name != "text:tracked-changes":
        ancestor = ancestor.parent
    return ancestor is not None


def _written(prefix: str, text: str) -> str:
    """Encode a text, with elements for its tabs and line ends."""
    return escaped(text).replace("\t", f"<{prefix}tab/>").replace("\n", f"<{prefix}line-break/>")
