"""OpenDocument text: the paragraphs and headings of the body, of notes, frames, headers and footers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Literal

from translucid.data.languages import (
    Languages,
    code_with_region,
    new_direction,
    same_language,
    script_of,
    short_code,
)
from translucid.data.readers.xml_elements import Element, Piece
from translucid.documents.office.docx import COMPLEX_SCRIPTS, EAST_ASIAN_SCRIPTS
from translucid.documents.xml.slots import SlottedXml
from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.xml.xml_inline import Inline, Role, add_text, ends_line, escaped, folded, is_tab, line_so_far
from translucid.documents.xml.xml_tags import prefix, with_attributes
from translucid.documents.zip_container import Bundle, ZipContainer, revision_remarks

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_SPACES = {
    **{_OASIS.format(name): name for name in ("office", "style", "text")},
    "http://openoffice.org/2009/office": "officeooo",
    _OASIS.format("xsl-fo-compatible"): "fo",
}
_STYLES = frozenset(
    f"style:{name}-properties" for name in ("text", "paragraph", "page-layout", "table", "section", "graphic")
)
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
    bundle, revisions = Bundle(archive), Counter[str]()
    for member, label in (("content.xml", ""), ("styles.xml", "headers and footers")):
        if member in archive.names:
            part = _read_part(archive, member, revisions)
            _adapt_styles(part, languages)
            bundle.add(member, part, label)
    bundle.segments.remarks += revision_remarks(revisions)
    return bundle


def _read_part(archive: ZipContainer, member: str, revisions: Counter[str]) -> SlottedXml:
    """Parse a part; its tracked changes are counted in `revisions`."""
    document = SlottedXml(XmlFile(archive.display_name(member), archive.read(member)))
    invisible = set[str]()
    number = 0
    for unit in document.file.units((), {"style:style", "text:changed-region", *_PARAGRAPHS}, _SPACES):
        if unit.name == "style:style":
            if _is_invisible(unit):
                invisible.add(unit.attributes.get("style:name", ""))
        elif unit.name == "text:changed-region":
            revisions.update(change.name.removeprefix("text:") for change in unit.children)
        elif not _is_deleted(unit):
            number += 1
            _add_paragraph(document, invisible, unit, f"paragraph {number}")
    return document


def _adapt_styles(document: SlottedXml, languages: Languages) -> None:
    """Give styles the target language instead of the source language, and the new direction."""
    code, direction = code_with_region(languages[1] or ""), new_direction(languages)
    declares_prefixes = all(f'xmlns:{name}="'.encode() in document.file.content for name in ("fo", "style"))
    if code is None or not declares_prefixes:
        return
    for properties in document.file.units((), _STYLES, _SPACES):
        style = properties.parent
        is_default = style is not None and style.name == "style:default-style"
        tag = document.file.raw(properties.start, properties.inner)
        attributes = _language(properties, code, languages, is_default=is_default)
        if direction and properties.name != "style:text-properties":
            is_base = is_default or properties.name == "style:page-layout-properties"
            attributes |= _direction(properties, direction, is_base=is_base)
        if tag.startswith("<style:") and attributes:
            document.add_slot(properties.start, properties.inner, None, with_attributes(tag, attributes))


def _language(properties: Element, code: str, languages: Languages, *, is_default: bool) -> dict[str, str | None]:
    """Return the attributes of a style's target language; none if the style is in another language."""
    current = properties.attributes.get("fo:language", "")
    is_source = bool(languages[0]) and same_language(current, short_code(languages[0] or ""))
    if properties.name != "style:text-properties" or not current or not (is_source or is_default):
        return {}
    language, _, country = code.partition("-")
    prefix, suffix = "fo", ""
    script = script_of(languages[1] or "")
    if script in EAST_ASIAN_SCRIPTS or script in COMPLEX_SCRIPTS:
        prefix, suffix = "style", "-asian" if script in EAST_ASIAN_SCRIPTS else "-complex"
    return {f"{prefix}:language{suffix}": language, f"{prefix}:country{suffix}": country or "none"}


def _direction(properties: Element, direction: Literal["ltr", "rtl"], *, is_base: bool) -> dict[str, str | None]:
    """Return the attributes of a style's direction; `is_base`: whether others inherit it, so that it must be stated."""
    attributes: dict[str, str | None] = {}
    new, old = ("rl", "lr") if direction == "rtl" else ("lr", "rl")
    mode = properties.attributes.get("style:writing-mode", "")
    if mode.startswith(old) or (direction == "rtl" and is_base and not mode):
        attributes["style:writing-mode"] = f"{new}-tb"
    alignment = properties.attributes.get("fo:text-align", "")
    if alignment in ("left", "right"):  # These name sides of the page; the others follow the direction.
        attributes["fo:text-align"] = "start" if (alignment == "left") == (direction == "rtl") else "end"
    return attributes


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
