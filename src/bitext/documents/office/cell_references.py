"""What refers to the values of cells in a workbook: lists of choices, filters, rules, formulas and pivot tables.

A list, a filter or a formula that names a value must name its translation once the cell has it. So must the cache of a
pivot table, to whose items its filters and slicers refer by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bitext.documents.document import Segment
from bitext.documents.office.ooxml import NAMESPACES
from bitext.documents.xml.xml_file import SlottedXml, Targets, XmlFile, escaped
from bitext.readers.xml_elements import Element

LONGEST_LIST = 255
"""The largest number of characters of a list of choices that Excel accepts."""
LONGEST_ITEM = 255
"""The largest number of characters of an item of a pivot table; longer ones need a mark."""
_EXCEL = "http://schemas.microsoft.com/office"
SPACES = {
    **NAMESPACES,
    f"{_EXCEL}/spreadsheetml/2009/9/main": "x14",
    f"{_EXCEL}/spreadsheetml/2011/1/ac": "x12ac",
    f"{_EXCEL}/excel/2006/main": "xm",
}
"""The prefixes by their namespaces, with those of Excel's extensions."""
VALIDATIONS = frozenset({"s:dataValidation", "x14:dataValidation"})
_ATTRIBUTES = {
    "s:filter": ("val", "stringValue1", "stringValue2"),
    "s:customFilter": ("val",),
    "s:cfRule": ("text",),
    "x14:filter": ("val",),
    "x14:customFilter": ("val",),
    "x14:cfRule": ("text",),
    "s:item": ("n",),  # of a pivot table
}
"""The attributes that name values, by the names of their elements."""
_NAMING = frozenset(_ATTRIBUTES) - {"s:item"}
_FORMULAS = ("s:f", "s:formula", "s:formula1", "s:formula2", "xm:f", "x12ac:list")
_WHOLE = frozenset({"s:f", "s:definedName"})
"""The elements that are formulas themselves; others have formulas in them."""
_CACHED = "s:s"
"""A text in the cache of a pivot table: of an item, or of a record."""
_UNITS = VALIDATIONS | frozenset(_ATTRIBUTES) | _WHOLE | {_CACHED, "s:rangePr", "s:calculatedItem"}
_REFERRING = re.compile(rb"<(?:\w+:)?(?:dataValidation|filter|customFilter|cfRule|f|definedName)[\s>]")
_LITERAL = re.compile(r'"([^"]*+(?:""[^"]*+)*)"(?!")')
_TOKEN = re.compile(
    rf"{_LITERAL.pattern}|'[^']*+'|(?:(?<![\w.])(?P<name>[A-Za-z_][\w.]*+))?(?P<open>[({{])|(?P<next>,)|(?P<close>[)}}])"
)
_CHOICE = re.compile(r'(?:\A|,)\s*(?:"([^"]*+(?:""[^"]*+)*)"|([^,]*))')
"""A choice of a list with quotes around choices that have commas."""
_NAMES_OTHERS = frozenset(
    ("ADDRESS", "CELL", "CONVERT", "DATEDIF", "DATEVALUE", "GETPIVOTDATA", "HYPERLINK", "INDIRECT", "INFO")
    + ("TEXT", "TIMEVALUE")
)
"""Functions whose texts name sheets, formats, units and the like."""
_ITEM_NAME = re.compile(r"(?:'([^']*+(?:''[^']*+)*)'|(?<![\w.])([^\W\d][\w.]*+))(?P<other>\s*[\[(])?")
"""The name of an item in the formula of a calculated item; a bracket follows names of fields and functions."""


def refers_to_values(content: bytes) -> bool:
    """Whether a part of a workbook may refer to values of cells."""
    return _REFERRING.search(content) is not None


def plain_value(text: str) -> str:
    """Return a value for comparisons, in which Excel ignores capitals."""
    return text.strip().casefold()


def translated_values(segments: Sequence[Segment], numbers: Iterable[int], targets: Targets) -> dict[str, str]:
    """Return the translations of cells without marks by their plain values; `numbers`: the segments of cells."""
    values: dict[str, str] = {}
    for number in numbers:
        source = segments[number].source
        if number in targets and not source.marks:
            values.setdefault(plain_value(source.text), targets[number].marked.full_text.strip())
    return values


def choices(validation: Element) -> list[str]:
    """Return the choices of a list that are written in the rule itself; none for other rules."""
    if validation.attributes.get("type") != "list":
        return []
    for alternative in validation.within("x12ac:list"):  # for choices that have commas
        return list(map(_choice, _CHOICE.finditer(alternative.text.strip())))
    for formula in validation.within("s:formula1", "xm:f"):
        if literal := _LITERAL.fullmatch(formula.text.strip()):
            return [choice.strip() for choice in literal[1].replace('""', '"').split(",")]
    return []


def _choice(match: re.Match[str]) -> str:
    quoted: str | None = match[1]
    return match[2].strip() if quoted is None else quoted.replace('""', '"')


def named_texts(document: SlottedXml) -> Iterator[str]:
    """Yield the texts that filters and formatting rules name."""
    for element in document.file.units((), _NAMING, SPACES):
        for attribute in _ATTRIBUTES[element.name]:
            text = element.attributes.get(attribute, "").strip("*?")
            if text:
                yield text


def cached_texts(document: SlottedXml) -> Iterator[str]:
    """Yield the texts of the items in the cache of pivot tables."""
    for element in document.file.units((), {_CACHED}, SPACES):
        if element.parent and element.parent.name == "s:sharedItems":
            yield element.attributes.get("v", "")


def with_translated_values(name: str, content: bytes, values: Mapping[str, str]) -> bytes:
    """Return a part of a workbook that refers to the translations of values, given by `plain_value` of the source."""
    document = SlottedXml(XmlFile(name, content))
    items = _PivotItems(document, values)
    for element in document.file.units((), _UNITS, SPACES):
        if element.name in (_CACHED, "s:rangePr"):
            items.add(element)
            continue
        attributes: dict[str, str | None] = {}
        for attribute in _ATTRIBUTES.get(element.name, ()):
            _translate(element, attribute, values, attributes)
        if formula := element.attributes.get("formula"):  # of a calculated item
            attributes["formula"] = _calculated(formula, values)
        if attributes:
            document.set_attributes(element, attributes)
        _translate_formulas(document, element, values)
    items.end_field()
    return document.filled({}, is_translated=True)


def _translate(element: Element, attribute: str, values: Mapping[str, str], changed: dict[str, str | None]) -> None:
    """Add the translation of an attribute to the changed ones, if it names a value."""
    text = element.attributes.get(attribute, "")
    translation = values.get(plain_value(text))
    if translation is not None:
        changed[attribute] = text.replace(text.strip(), translation)


def _translate_formulas(document: SlottedXml, element: Element, values: Mapping[str, str]) -> None:
    items = choices(element)
    may_quote = next(element.within("x12ac:list"), None) is not None
    translated = _list(items, values, may_quote=may_quote)
    for formula in [element] if element.name in _WHOLE else element.within(*_FORMULAS):
        new = formula.text
        if not items:
            new = translated_formula(formula.text, values)
        elif translated and formula.name == "x12ac:list":
            new = ",".join(map(_field, translated))
        elif translated:
            new = f'"{_quoted(",".join(translated))}"'
        if new != formula.text:
            document.add_slot(formula.inner, formula.inner_end, None, escaped(new))


class _PivotItems:
    """The texts in the cache of a pivot table, whose items must stay different from each other."""

    def __init__(self, document: SlottedXml, values: Mapping[str, str]) -> None:
        self.document, self.values = document, values
        self.field: Element | None = None  # the list of the current items
        self.ranges: Element | None = None  # a group of numbers or dates, whose items are no values
        self.names: list[str] = []
        self.changes: list[tuple[Element, dict[str, str | None]]] = []

    def add(self, element: Element) -> None:
        if element.name == "s:rangePr":
            self.ranges = element.parent
            return
        if element.parent is not self.field:
            self.end_field()
            self.field = element.parent
        if self.field and self.field.parent is self.ranges and self.ranges:
            return
        changed: dict[str, str | None] = {}
        _translate(element, "v", self.values, changed)
        name = changed.get("v") or element.attributes.get("v", "")
        self.names.append(plain_value(name))
        if changed and len(name) <= LONGEST_ITEM:
            self.changes.append((element, changed))

    def end_field(self) -> None:
        """Translate the items of a field; all stay if two would become the same one."""
        is_record = self.field is not None and self.field.name == "s:r"
        if is_record or len(set(self.names)) == len(self.names):
            for element, attributes in self.changes:
                self.document.set_attributes(element, attributes)
        self.names, self.changes = [], []


def _list(items: list[str], values: Mapping[str, str], *, may_quote: bool) -> list[str] | None:
    """Return the translations of the choices of a list; None if a comma or the length makes that impossible."""
    translated = [values.get(plain_value(item), item) for item in items]
    has_commas = not may_quote and any("," in item for item in translated)
    return None if has_commas or len(",".join(translated)) > LONGEST_LIST else translated


def translated_formula(formula: str, values: Mapping[str, str]) -> str:
    """Return a formula whose texts that are values of cells are translated."""
    calls: list[_Call] = []

    def translated(match: re.Match[str]) -> str:
        call = calls[-1] if calls else None
        if match["open"]:
            name = (match["name"] or "").rpartition(".")[2].upper()
            calls.append(_Call(name, call is not None and call.names_other))
        elif match["close"]:
            del calls[-1:]
        elif match["next"] and call:
            call.argument += 1
        elif match[1] is not None and not (call and call.names_other):
            value = values.get(plain_value(match[1].replace('""', '"')))
            return match[0] if value is None else f'"{_quoted(value)}"'
        return match[0]

    return _TOKEN.sub(translated, formula)


@dataclass
class _Call:
    """The call of a function in a formula, or brackets, whose argument is being read."""

    name: str
    is_inside: bool
    """Whether it is in an argument that names something else than a value."""
    argument: int = 0

    @property
    def names_other(self) -> bool:
        """Whether a text in the current argument names something else than a value of a cell."""
        if self.name == "GETPIVOTDATA" and self.argument > 2 and self.argument % 2:
            return self.is_inside  # the name of an item
        return self.is_inside or self.name in _NAMES_OTHERS


def _calculated(formula: str, values: Mapping[str, str]) -> str:
    """Return the formula of a calculated item with the translations of the items that it names."""

    def translated(match: re.Match[str]) -> str:
        name = match[2] if match[1] is None else match[1].replace("''", "'")
        value = values.get(plain_value(name))
        return match[0] if match["other"] or value is None else "'" + value.replace("'", "''") + "'"

    return _ITEM_NAME.sub(translated, formula)


def _field(item: str) -> str:
    """Return a choice as a field of a list, which needs quotes if it has a comma."""
    return f'"{_quoted(item)}"' if "," in item or '"' in item else item


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def letters(column: int) -> str:
    """Return the name of a column.

    >>> letters(1), letters(28), letters(702), letters(703)
    ('A', 'AB', 'ZZ', 'AAA')
    """
    name = ""
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("A") + letter) + name
    return name
