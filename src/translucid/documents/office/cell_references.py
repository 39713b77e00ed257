"""What refers to the values of cells in a workbook: lists of choices, filters, formatting rules and formulas.

A list, a filter or a formula that names a value must name its translation once the cell has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from translucid.data.readers.xml_elements import Element
from translucid.documents.office.package_parts import NAMESPACES
from translucid.documents.xml.slots import SlottedXml
from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.xml.xml_inline import escaped
from translucid.documents.xml.xml_tags import with_attributes

LONGEST_LIST = 255
"""The largest number of characters of a list of choices that Excel accepts."""
_REFERRING = re.compile(rb"<(?:\w+:)?(?:dataValidation|filter|customFilter|cfRule|f)[\s>]")
_NAMES = frozenset(f"s:{name}" for name in ("dataValidation", "filter", "customFilter", "cfRule", "f"))
_LITERAL = re.compile(r'"([^"]*+(?:""[^"]*+)*)"(?!")')
_NAMES_OTHERS = re.compile(
    r"\b(?:INDIRECT|TEXT|CELL|HYPERLINK|GETPIVOTDATA|DATEVALUE|TIMEVALUE|INFO|ADDRESS)\(", re.IGNORECASE
)
"""Functions whose texts name sheets, formats and the like."""


def refers_to_values(content: bytes) -> bool:
    """Whether a part of a workbook may refer to values of cells."""
    return _REFERRING.search(content) is not None


def plain_value(text: str) -> str:
    """Return a value for comparisons, in which Excel ignores capitals."""
    return text.strip().casefold()


def choices(validation: Element) -> list[str]:
    """Return the choices of a list that are written in the rule itself; none for other rules."""
    formula = validation.child("s:formula1")
    literal = _LITERAL.fullmatch(formula.text.strip()) if formula else None
    if validation.attributes.get("type") != "list" or literal is None:
        return []
    return [choice.strip() for choice in literal[1].replace('""', '"').split(",")]


def named_texts(document: SlottedXml) -> Iterator[str]:
    """Yield the texts that filters and formatting rules name."""
    for element in document.file.units((), {"s:filter", "s:customFilter", "s:cfRule"}, NAMESPACES):
        text = element.attributes.get("text" if element.name == "s:cfRule" else "val", "")
        if text.strip("*?"):
            yield text.strip("*?")


def with_translated_values(name: str, content: bytes, values: Mapping[str, str]) -> bytes:
    """Return a part of a workbook that refers to the translations of values.

    Args:
        name: the name of the part for messages.
        content: the part.
        values: the translations by `plain_value` of the source.
    """
    document = SlottedXml(XmlFile(name, content))
    for element in document.file.units((), _NAMES, NAMESPACES):
        attribute = {"s:filter": "val", "s:customFilter": "val", "s:cfRule": "text"}.get(element.name, "")
        translation = values.get(plain_value(element.attributes.get(attribute, "")))
        if translation is not None:
            tag = document.file.raw(element.start, element.inner)
            document.add_slot(element.start, element.inner, None, with_attributes(tag, {attribute: translation}))
        for formula in [element] if element.name == "s:f" else element.children:
            if formula.name not in ("s:f", "s:formula", "s:formula1", "s:formula2"):
                continue
            new = _formula(formula.text, values)
            if formula.name == "s:formula1" and (items := choices(element)):
                new = _list(items, values) or formula.text
            if new != formula.text:
                document.add_slot(formula.inner, formula.inner_end, None, escaped(new))
    return document.filled({}, is_translated=True)


def _list(items: list[str], values: Mapping[str, str]) -> str | None:
    """Return a list with the translations of its choices; None if a comma or the length makes that impossible."""
    translated = [values.get(plain_value(item), item) for item in items]
    joined = ",".join(translated)
    if len(joined) > LONGEST_LIST or any("," in item for item in translated):
        return None
    return f'"{_quoted(joined)}"'


def _formula(formula: str, values: Mapping[str, str]) -> str:
    """Return a formula whose texts that are values of cells are translated."""
    if _NAMES_OTHERS.search(formula):
        return formula

    def translated(match: re.Match[str]) -> str:
        value = values.get(plain_value(match[1].replace('""', '"')))
        return match[0] if value is None else f'"{_quoted(value)}"'

    return _LITERAL.sub(translated, formula)


def _quoted(text: str) -> str:
    return text.replace('"', '""')
