"""Excel: texts of cells, notes, text boxes and charts.

Formulas, their cached results, numbers, formats and names stay. So do the headings of tables and of the sources of
pivot tables: Excel repairs a file whose table has other headings than its cells, and formulas name them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from translucid.data.languages import Languages
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.data.readers.xml_elements import Element
from translucid.documents.limits import LONGEST_PLACE, shortened
from translucid.documents.office.drawings import read_drawing
from translucid.documents.office.package_parts import CHARTS, NAMESPACES, parts, related
from translucid.documents.office.runs import Dialect, add_paragraph
from translucid.documents.strings.messages import is_language
from translucid.documents.xml.slots import SlottedXml
from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.xml.xml_inline import WORD_BREAK, Inline, Item, Role, add_text, escaped, unplaced
from translucid.documents.zip_container import Bundle, ZipContainer

_MAIN = "spreadsheetml.sheet.main+xml"
_STRINGS, _SHEET, _NOTES, _DRAWING, _TABLE, _PIVOT = "strings", "sheet", "notes", "drawing", "table", "pivot"
_KINDS = {
    _MAIN: "",
    "spreadsheetml.sharedStrings+xml": _STRINGS,
    "spreadsheetml.worksheet+xml": _SHEET,
    "spreadsheetml.comments+xml": _NOTES,
    "openxmlformats-officedocument.drawing+xml": _DRAWING,
    **CHARTS,
    "spreadsheetml.table+xml": _TABLE,
    "spreadsheetml.pivotCacheDefinition+xml": _PIVOT,
}
_CELL = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")
_SPECIAL = re.compile(r"\n|_x[0-9A-Fa-f]{4}_")
"""A line end, or the escape of a UTF-16 unit that XML or Excel would not keep."""
_SPACED = re.compile(rf" (?:{_SPECIAL.pattern})|(?:{_SPECIAL.pattern}) ")
_LINE_ENDS = {"\n", "_x000D_", "_x000d_", "_x000A_", "_x000a_"}
_LIKE_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_THREADED = "[Threaded comment]"
"""The beginning of a note that Excel generates from a conversation."""


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a workbook.

    Raises:
        UserError: the file is not a workbook, is invalid or harmful, or has macros.
    """
    return _Workbook(ZipContainer(name, content)).bundle


@dataclass
class _Headings:
    """The cells with headings, by sheet and row: the first and the last column of each range."""

    ranges: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)
    _merged: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)
    """The same ranges in order, without overlaps."""

    def add(self, sheet: str, area: str) -> None:
        """Add the first row of an area such as `A1:C9`."""
        first_cell, _, last_cell = area.partition(":")
        start, end = _cell(first_cell), _cell(last_cell or first_cell)
        if start and end:
            self.ranges.setdefault((sheet, start[1]), []).append((start[0], end[0]))

    def contain(self, sheet: str, cell: tuple[int, int]) -> bool:
        """Whether a cell, given by its column and row, has a heading."""
        column, row = cell
        key = (sheet, row)
        if key not in self.ranges:
            return False
        if key not in self._merged:
            self._merged[key] = _merged(self.ranges[key])
        ranges = self._merged[key]
        index = bisect_right(ranges, column, key=itemgetter(0))
        return index > 0 and column <= ranges[index - 1][1]


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order; those that overlap become one.

    >>> _merged([(5, 9), (1, 3), (2, 4), (6, 7)])
    [(1, 4), (5, 9)]
    """
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        elif first <= last:
            merged.append((first, last))
    return merged


class _Workbook:
    """A workbook that is being read."""

    def __init__(self, archive: ZipContainer) -> None:
        """Read all texts, in the order of the parts."""
        self.archive, self.bundle = archive, Bundle(archive)
        members = list(parts(archive, _KINDS, _MAIN))
        self.sheets = self._sheet_names(members[0][0])
        self.owners: dict[str, str] = {}  # the sheet of each table, drawing and list of notes
        for member, sheet in self.sheets.items():
            self.owners.update(dict.fromkeys(related(archive, member).values(), sheet))
        self.headings = self._all_headings(members)
        self.places: dict[int, str] = {}  # the first cell of each shared string
        self.fixed = set[int]()  # the shared strings of headings and formulas
        # A shared string is translated once for all its cells, so the cells come first.
        documents = [(member, self._sheet(member)) for member, kind in members if kind == _SHEET]
        for member, kind in members:
            if kind == _STRINGS:
                self.bundle.add(member, self._shared_strings(member), "")
        for member, document in documents:
            self.bundle.add(member, document, "")
        for member, kind in members:
            owner = shortened(self.owners.get(member, ""), LONGEST_PLACE)
            if kind == _NOTES:
                self.bundle.add(member, self._notes(member, owner), "")
            elif kind == _DRAWING:
                drawing = read_drawing(archive, member, None, picture_tag="xdr:cNvPr")
                self.bundle.add(member, drawing, f"{owner}, drawing" if owner else "drawing")
            elif kind in CHARTS.values():
                self.bundle.add(member, read_drawing(archive, member, None), kind)

    def _open(self, member: str) -> SlottedXml:
        return SlottedXml(XmlFile(self.archive.display_name(member), self.archive.read(member)))

    def _units(self, member: str, root: str, name: str) -> Iterator[Element]:
        return self._open(member).file.units({root}, {name}, NAMESPACES)

    def _sheet_names(self, main: str) -> dict[str, str]:
        """Return the name of each sheet by its member."""
        members = related(self.archive, main)
        names: dict[str, str] = {}
        for sheet in self._units(main, "s:workbook", "s:sheet"):
            member = members.get(sheet.attributes.get("r:id", ""), "")
            names[member] = sheet.attributes.get("name", "")
        return names

    def _all_headings(self, members: Iterable[tuple[str, str]]) -> _Headings:
        headings = _Headings()
        for member, kind in members:
            if kind == _TABLE:
                for table in self._units(member, "s:table", "s:table"):
                    if table.attributes.get("headerRowCount") != "0":
                        headings.add(self.owners.get(member, ""), table.attributes.get("ref", ""))
            elif kind == _PIVOT:
                for source in self._units(member, "s:pivotCacheDefinition", "s:worksheetSource"):
                    headings.add(source.attributes.get("sheet", ""), source.attributes.get("ref", ""))
        return headings

    def _sheet(self, member: str) -> SlottedXml:
        """Read the cells of a sheet: remember the places of shared strings, and add strings in the sheet itself."""
        document, sheet = self._open(member), self.sheets.get(member, "")
        label = shortened(sheet, LONGEST_PLACE)
        row: Element | None = None
        column = row_number = 0
        for cell in document.file.units({"s:worksheet"}, {"s:c"}, NAMESPACES):
            if cell.parent is not row:
                row, column = cell.parent, 0
                number = row.attributes.get("r", "") if row else ""
                row_number = int(number) if _is_number(number) else row_number + 1
            # The reference may be missing: then the cell follows the one before.
            column, row_number = _cell(cell.attributes.get("r", "")) or (column + 1, row_number)
            kind = cell.attributes.get("t")
            if kind not in ("s", "inlineStr"):
                continue
            is_fixed = self.headings.contain(sheet, (column, row_number)) or cell.child("s:f") is not None
            place = f"{label}!{_letters(column)}{row_number}"
            if kind == "s":
                value = cell.child("s:v")
                if value and _is_number(index := value.text.strip()):
                    self.places.setdefault(int(index), place)
                    if is_fixed:
                        self.fixed.add(int(index))
                cell.release()
            elif not is_fixed and (item := cell.child("s:is")):
                _add(document, item, place)
        return document

    def _shared_strings(self, member: str) -> SlottedXml:
        document = self._open(member)
        for index, item in enumerate(document.file.units({"s:sst"}, {"s:si"}, NAMESPACES)):
            if index in self.places and index not in self.fixed:
                _add(document, item, self.places[index])
        return document

    def _notes(self, member: str, owner: str) -> SlottedXml:
        document = self._open(member)
        for note in document.file.units({"s:comments"}, {"s:comment"}, NAMESPACES):
            text = note.child("s:text")
            if text and not text.words().startswith(_THREADED):
                _add(document, text, f"{owner}!{note.attributes.get('ref', '')[:20]}, note")
        return document


def _add(document: SlottedXml, item: Element, place: str) -> None:
    """Add a string: a plain text, or runs with formats. A translation removes the pronunciation of its characters."""
    pronunciations = [child for child in item.children if child.name == "s:rPh"]
    runs, text = item.children_except("s:rPh", "s:phoneticPr"), item.child("s:t")
    words = ""
    for run in runs:
        words += run.text if run.name == "s:t" else _words_of(run)
    if not is_language(words):
        return
    first = len(document.segments)
    if text is None:
        add_paragraph(document, _RICH, runs, place)
    elif text.parts:
        # The space that the model reads for a line end is not written, unless the source has spaces there.
        write = _written if _SPACED.search(words) else _written_closely
        inline = Inline(document.file, _role, edges=False, texts=_items, write=write, syntax=PlaceholderSyntax.message)
        add_text(document, inline, text.parts, place)
    numbers = range(first, len(document.segments))
    for pronunciation in pronunciations if numbers else ():
        document.add_slot(pronunciation.start, pronunciation.end, numbers, "")


def _words_of(run: Element) -> str:
    return "".join(text.text for text in run.within("s:t"))


def _key(file: XmlFile, properties: Element) -> str:
    return file.raw(properties.start, properties.end)


def _role(element: Element) -> Role:
    return "alone"


def _items(text: str) -> Iterator[Item]:
    """Yield the texts of a cell, and its line ends and escapes as marks."""
    position = 0
    for match in _SPECIAL.finditer(text):
        yield text[position : match.start()]
        position = match.end()
        if match[0] in _LINE_ENDS:
            yield WORD_BREAK
        yield unplaced(match[0])
    yield text[position:]


def _written(text: str) -> str:
    r"""Return a text escaped for a cell.

    >>> _written("a < _x0041_")
    'a &lt; _x005F_x0041_'
    """
    return escaped(_LIKE_ESCAPE.sub("_x005F_", text))


def _written_closely(text: str) -> str:
    return _written(text.strip(" ") or text)


_RICH = Dialect("s", {}, _key, space='xml:space="preserve"', split=_items, write=_written)


def _cell(reference: str) -> tuple[int, int] | None:
    """Return the column and the row of a cell, from 1; None if it has no reference.

    >>> _cell("A1"), _cell("$AB$12"), _cell("")
    ((1, 1), (28, 12), None)
    """
    match = _CELL.fullmatch(reference)
    if not match:
        return None
    column = 0
    for letter in match[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    return column, int(match[2])


def _letters(column: int) -> str:
    """Return the name of a column.

    >>> _letters(1), _letters(28), _letters(702), _letters(703)
    ('A', 'AB', 'ZZ', 'AAA')
    """
    name = ""
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
