"""The writing direction of Word and PowerPoint, where the target language has another one than the source."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, TypeAlias

from bitext.documents.office.package_parts import NAMESPACES
from bitext.documents.xml.xml_file import SlottedXml
from bitext.documents.xml.xml_inline import opened, prefix, with_attributes
from bitext.readers.xml_elements import Element

Direction: TypeAlias = Literal["ltr", "rtl"] | None
"""The new direction; None if nothing changes."""
_AFTER_BIDI = frozenset(
    f"w:{name}"
    for name in (
        *("adjustRightInd", "snapToGrid", "spacing", "ind", "contextualSpacing", "mirrorIndents", "suppressOverlap"),
        *("jc", "textDirection", "textAlignment", "textboxTightWrap", "outlineLvl", "divId", "cnfStyle", "rPr"),
        *("sectPr", "pPrChange"),
    )
)
"""The properties of a paragraph that the schema requires after its direction."""
_BEFORE_VISUAL = frozenset(["w:tblStyle", "w:tblpPr", "w:tblOverlap"])
"""The properties of a table that the schema requires before its direction."""
_AFTER_SECTION_BIDI = frozenset(["w:rtlGutter", "w:docGrid", "w:printerSettings", "w:sectPrChange"])
_COMPLEX = re.compile(r"<([^<>\s:]+:)(b|i|sz)\b(?![^<>]*>\s*<\1\2Cs\b)([^<>]*)/>")
"""A property of a run whose variant for scripts from right to left does not follow."""
_AFTER_RTL = re.compile(r"<[^<>\s:]+:(?:cs|em|lang|eastAsianLayout|specVanish|oMath|rPrChange)\b")
"""The properties of a run that the schema requires after its direction."""
_LEVELS = frozenset([*(f"a:lvl{level}pPr" for level in range(1, 10)), "a:defPPr"])
_MIRRORED = {"l": "r", "r": "l"}


def turn_paragraph(document: SlottedXml, paragraph: Element, numbers: range, direction: Direction) -> None:
    """Change the direction of a paragraph of Word, if one of its segments has a translation."""
    if not direction or not numbers:
        return
    properties = paragraph.child("w:pPr")
    if properties is None:
        if direction == "rtl":
            name = prefix(document.file.raw(paragraph.start, paragraph.inner))
            content = f"<{name}pPr><{name}bidi/></{name}pPr>"
            document.add_slot(paragraph.inner, paragraph.inner, numbers, content)
        return
    _set_child(document, properties, "bidi", numbers, direction, after=_AFTER_BIDI)


def turn_layout(document: SlottedXml, direction: Direction) -> None:
    """Change the direction of the tables and sections of a part of Word."""
    for element in document.file.units((), {"w:tblPr", "w:sectPr"}, NAMESPACES) if direction else ():
        if element.name == "w:sectPr":
            _set_child(document, element, "bidi", None, direction, after=_AFTER_SECTION_BIDI)
        else:
            after = {child.name for child in element.children} - _BEFORE_VISUAL
            _set_child(document, element, "bidiVisual", None, direction, after=after)


def _set_child(
    document: SlottedXml,
    properties: Element,
    name: str,
    numbers: range | None,
    direction: Direction,
    *,
    after: Collection[str],
) -> None:
    """Set or remove a property of Word that is an empty element; `after`: the properties that belong after it."""
    raw = document.file.raw
    tag = raw(properties.start, properties.inner)
    new = f"<{prefix(tag)}{name}/>" * (direction == "rtl")
    current = properties.child(f"w:{name}")
    if current:
        document.add_slot(current.start, current.end, numbers, new)
    elif new and tag.endswith("/>"):
        whole = re.match(r"<([^\s/>]+)", tag)
        assert whole
        document.add_slot(properties.start, properties.inner, numbers, f"{opened(tag)}{new}</{whole[1]}>")
    elif new:
        later = [child.start for child in properties.children if child.name in after]
        offset = min(later, default=properties.inner_end)
        document.add_slot(offset, offset, numbers, new)


def turned_run(name: str, properties: str, direction: Direction) -> str:
    """Return the properties of a run of Word with a direction; `name` is the prefix of their elements."""
    if direction != "rtl" or not name:
        return properties
    if not properties:
        return f"<{name}rPr><{name}rtl/></{name}rPr>"
    # Bold, italic and the size have variants for text from right to left, and only these apply to it.
    properties = _COMPLEX.sub(r"\g<0><\1\2Cs\3/>", properties)
    later = _AFTER_RTL.search(properties)
    offset = later.start() if later else properties.rindex("</")
    return f"{properties[:offset]}<{name}rtl/>{properties[offset:]}"


def turn_drawing(document: SlottedXml, paragraph: Element, numbers: range, direction: Direction) -> None:
    """Change the direction of a paragraph of a drawing, if one of its segments has a translation."""
    if not direction or not numbers:
        return
    properties = paragraph.child("a:pPr")
    if properties:
        _turn_tag(document, properties, numbers, direction)
    elif direction == "rtl":
        name = prefix(document.file.raw(paragraph.start, paragraph.inner))
        document.add_slot(paragraph.inner, paragraph.inner, numbers, f'<{name}pPr rtl="1"/>')


def turn_styles(document: SlottedXml, direction: Direction) -> None:
    """Change the direction of the levels of lists and of tables in a part of PowerPoint."""
    for element in document.file.units((), {*_LEVELS, "a:tblPr"}, NAMESPACES) if direction else ():
        _turn_tag(document, element, None, direction)


def _turn_tag(document: SlottedXml, properties: Element, numbers: range | None, direction: Direction) -> None:
    """Change the direction of a paragraph, a level or a table; alignment names the sides of the page."""
    goes_left = properties.attributes.get("rtl") in ("1", "true")
    if goes_left == (direction == "rtl"):
        return
    attributes: dict[str, str | None] = {"rtl": "1" if direction == "rtl" else "0"}
    alignment = properties.attributes.get("algn", "")
    if alignment in _MIRRORED:
        attributes["algn"] = _MIRRORED[alignment]
    tag = document.file.raw(properties.start, properties.inner)
    document.add_slot(properties.start, properties.inner, numbers, with_attributes(tag, attributes))
