"""Excel: texts of cells, notes, text boxes and charts.

A sheet with strings for translators is read as a table of columns, as a .csv is: `strings.table` chooses them.

Formulas, their cached results, numbers, formats and names stay. So do the headings of tables and of the sources of
pivot tables: Excel repairs a file whose table has other headings than its cells, and formulas name them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from bitext.documents.document import LONGEST_PLACE, Segment, SegmentList, Target, shortened
from bitext.documents.office.cell_references import (
    SPACES,
    VALIDATIONS,
    cached_texts,
    choices,
    letters,
    named_texts,
    plain_value,
    refers_to_values,
    translated_values,
    with_translated_values,
)
from bitext.documents.office.ooxml import (
    CHARTS,
    NAMESPACES,
    Dialect,
    add_attribute_texts,
    add_paragraph,
    parts,
    read_drawing,
    related,
)
from bitext.documents.office.string_tables import FIRST_ROWS, StringTable, has_head, is_number, string_table
from bitext.documents.strings.messages import add_message, is_language
from bitext.documents.strings.table import MOST_NAMED
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_file import (
    WORD_BREAK,
    Inline,
    Item,
    Render,
    Role,
    SlottedXml,
    Targets,
    XmlFile,
    add_text,
    escaped,
    message_items,
    opened,
    prefix,
    unplaced,
    with_attributes,
)
from bitext.documents.zip_container import Bundle, ZipContainer
from bitext.languages import Languages, new_direction
from bitext.protected_spans import PlaceholderSyntax
from bitext.readers.xml_elements import Element

_MAIN = "spreadsheetml.sheet.main+xml"
_STRINGS, _SHEET, _NOTES, _DRAWING, _TABLE = "strings", "sheet", "notes", "drawing", "table"
_PIVOT, _CACHE, _RECORDS = "pivot table", "cache of pivot tables", "records of pivot tables"
_KINDS = {
    _MAIN: "",
    "spreadsheetml.sharedStrings+xml": _STRINGS,
    "spreadsheetml.worksheet+xml": _SHEET,
    "spreadsheetml.comments+xml": _NOTES,
    "openxmlformats-officedocument.drawing+xml": _DRAWING,
    **CHARTS,
    "spreadsheetml.table+xml": _TABLE,
    "spreadsheetml.pivotCacheDefinition+xml": _CACHE,
    "spreadsheetml.pivotCacheRecords+xml": _RECORDS,
    "spreadsheetml.pivotTable+xml": _PIVOT,
}
_CELL = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")
_REFERENCE = r"\$?[A-Z]{1,3}\$?[0-9]{1,7}"
_AREA = re.compile(rf"(?:'([^']*+(?:''[^']*+)*)'|([^'!()]+))!({_REFERENCE}(?::{_REFERENCE})?)")
"""An area of a sheet, as a defined name has it."""
_SPECIAL = re.compile(r"\n|_x[0-9A-Fa-f]{4}_")
"""A line end, or the escape of a UTF-16 unit that XML or Excel would not keep."""
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_MESSAGES: dict[str, int | None] = {"promptTitle": 32, "prompt": 255, "errorTitle": 32, "error": 255}
"""The attributes with messages of a rule for the input, and the number of characters of each that Excel accepts."""
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
    return _Workbook(ZipContainer(name, content), languages).bundle


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


class _Cell(NamedTuple):
    """A cell of a sheet and its position, from 1."""

    element: Element
    column: int
    row: int


class _Workbook:
    """A workbook that is being read."""

    def __init__(self, archive: ZipContainer, languages: Languages) -> None:
        """Read all texts, in the order of the parts."""
        self.archive, self.bundle, self.languages = archive, _WorkbookBundle(archive), languages
        members = list(parts(archive, _KINDS, _MAIN))
        self.sheets = self._sheet_names(members[0][0])
        self.owners: dict[str, str] = {}  # the sheet of each table, drawing and list of notes
        for member, sheet in self.sheets.items():
            self.owners.update(dict.fromkeys(related(archive, member).values(), sheet))
        self.caches: list[str] = []  # the caches of pivot tables whose source is in the workbook
        self.headings = self._all_headings(members)
        self.strings: list[str] = []  # the text of each shared string
        for member, kind in members:
            if kind == _STRINGS:
                self.strings += self._texts_of_strings(member)
        self.places: dict[int, str] = {}  # the first cell of each shared string that is translated
        self.fixed = set[int]()  # the shared strings of cells that are not translated
        # A shared string is translated once for all its cells, so the cells come first.
        sheets = [member for member, kind in members if kind == _SHEET]
        tables = {member: table for member in sheets if (table := self._table(member))}
        for member in sheets:
            self._find_strings(member, tables.get(member))
        for member, kind in members:
            if kind == _STRINGS:
                self.bundle.add(member, self._shared_strings(member), "")
        cell_texts = {plain_value(self.strings[i]) for i in self.places.keys() - self.fixed if i < len(self.strings)}
        for member in sheets:
            table = tables.get(member)
            self.bundle.add(member, self._sheet(member, table, cell_texts), "")
        self.bundle.cell_segments = len(self.bundle.segments)
        self._find_referring(members, tables)
        self._remark_on_pivots(cell_texts)
        for member, kind in members:
            owner = shortened(self.owners.get(member, ""), LONGEST_PLACE)
            if kind == _NOTES:
                self.bundle.add(member, self._notes(member, owner), "")
            elif kind == _DRAWING:
                drawing = read_drawing(archive, member, (None, None), picture_tag="xdr:cNvPr")
                self.bundle.add(member, drawing, f"{owner}, drawing" if owner else "drawing")
            elif kind in CHARTS.values():
                self.bundle.add(member, read_drawing(archive, member, (None, None)), kind)

    def _units(self, member: str, root: str, name: str) -> Iterator[Element]:
        return self.archive.xml(member).file.units({root}, {name}, NAMESPACES)

    def _sheet_names(self, main: str) -> dict[str, str]:
        members = related(self.archive, main)
        names: dict[str, str] = {}
        for sheet in self._units(main, "s:workbook", "s:sheet"):
            member = members.get(sheet.attributes.get("r:id", ""), "")
            names[member] = sheet.attributes.get("name", "")
        return names

    def _all_headings(self, members: Sequence[tuple[str, str]]) -> _Headings:
        headings, areas = _Headings(), self._named_areas(members[0][0])
        for member, kind in members:
            if kind == _TABLE:
                for table in self._units(member, "s:table", "s:table"):
                    if table.attributes.get("headerRowCount") != "0":
                        headings.add(self.owners.get(member, ""), table.attributes.get("ref", ""))
            elif kind == _CACHE:
                for source in self._units(member, "s:pivotCacheDefinition", "s:worksheetSource"):
                    if "r:id" in source.attributes:
                        continue  # in another workbook
                    if member not in self.caches[-1:]:
                        self.caches.append(member)
                    headings.add(source.attributes.get("sheet", ""), source.attributes.get("ref", ""))
                    headings.add(*areas.get(source.attributes.get("name", "").casefold(), ("", "")))
        return headings

    def _named_areas(self, main: str) -> dict[str, tuple[str, str]]:
        """Return the sheet and the area of each defined name that stands for an area, by the name in lower case."""
        areas: dict[str, tuple[str, str]] = {}
        for name in self._units(main, "s:workbook", "s:definedName"):
            if area := _AREA.fullmatch(name.text.strip()):
                sheet = area[2] or area[1].replace("''", "'")
                areas[name.attributes.get("name", "").casefold()] = sheet, area[3]
        return areas

    def _find_referring(self, members: Sequence[tuple[str, str]], tables: Collection[str]) -> None:
        """Remember the members that refer to values of cells; a sheet with strings for translators does not."""
        caches = set(self.caches)
        for member, kind in members:
            if kind in ("", _SHEET, _TABLE):
                refers = member not in tables and refers_to_values(self.archive.read(member))
            else:
                refers = kind == _PIVOT and not caches.isdisjoint(related(self.archive, member).values())
            if refers:
                self.bundle.referring.append(member)
        records = {member for member, kind in members if kind == _RECORDS}
        for cache in self.caches:
            self.bundle.referring += [cache, *records.intersection(related(self.archive, cache).values())]

    def _remark_on_pivots(self, cell_texts: Collection[str]) -> None:
        """Remark on the items of pivot tables that stay, as no translated cell has them."""
        texts = set[str]()
        for cache in self.caches:
            texts.update(map(plain_value, cached_texts(self.archive.xml(cache))))
        _remark_on_texts(self.bundle.segments, "pivot tables", texts - self._kept_texts, cell_texts)

    def _cells(self, member: str, document: SlottedXml) -> Iterator[_Cell]:
        """Yield the cells of a sheet; they are emptied afterwards."""
        row: Element | None = None
        column = row_number = 0
        for cell in document.file.units({"s:worksheet"}, {"s:c"}, NAMESPACES):
            if cell.parent is not row:
                row, column = cell.parent, 0
                number = row.attributes.get("r", "") if row else ""
                row_number = int(number) if is_number(number) else row_number + 1
            # The reference may be missing: then the cell follows the one before.
            column, row_number = _cell(cell.attributes.get("r", "")) or (column + 1, row_number)
            yield _Cell(cell, column, row_number)

    def _text(self, cell: Element) -> str:
        kind, value = cell.attributes.get("t"), cell.child("s:v")
        if kind == "inlineStr":
            item = cell.child("s:is")
            return _text_of_item(item) if item else ""
        if value is None:
            return ""
        if kind == "s":
            index = value.text.strip()
            return self.strings[int(index)] if is_number(index) and int(index) < len(self.strings) else ""
        return value.text

    def _table(self, member: str) -> StringTable | None:
        """Return the table of strings that a sheet is, if it is one; one of its first rows names the columns."""
        document, candidates = self.archive.xml(member), dict[int, dict[int, str]]()
        for cell, column, row in self._cells(member, document):
            if row > FIRST_ROWS:
                break
            if text := self._text(cell):
                candidates.setdefault(row, {})[column - 1] = text
        if not has_head(candidates, self.languages):
            return None
        texts: dict[int, dict[int, str]] = {}
        for cell, column, row in self._cells(member, self.archive.xml(member)):
            if text := self._text(cell):
                texts.setdefault(row, {})[column - 1] = text
            cell.release()
        label = self._label(member)
        table = string_table(f"{self.archive.name}, {label}", texts, self.languages)
        if table:
            self.bundle.segments.remarks.append(f"{label}: {table.remark}")
        return table

    def _is_fixed(self, member: str, cell: _Cell, table: StringTable | None) -> bool:
        """Whether the text of a cell is not translated in place."""
        if table and not table.translates(cell.column, cell.row):
            return True
        is_heading = self.headings.contain(self.sheets.get(member, ""), (cell.column, cell.row))
        return is_heading or cell.element.child("s:f") is not None

    def _find_strings(self, member: str, table: StringTable | None) -> None:
        """Remember the places of shared strings, and those in cells that are not translated."""
        for cell in self._cells(member, self.archive.xml(member)):
            index = _index(cell.element)
            if index is not None:
                if self._is_fixed(member, cell, table):
                    self.fixed.add(index)
                else:
                    self.places.setdefault(index, self._place(member, cell))
            cell.element.release()

    def _place(self, member: str, cell: _Cell) -> str:
        return f"{self._label(member)}!{letters(cell.column)}{cell.row}"

    def _label(self, member: str) -> str:
        """Return the name of a sheet for people."""
        return shortened(self.sheets.get(member, ""), LONGEST_PLACE)

    def _sheet(self, member: str, table: StringTable | None, cell_texts: set[str]) -> SlottedXml:
        """Add the strings in a sheet itself, and shared strings of translated cells that other cells keep."""
        document = self.archive.xml(member)
        targets = _TargetCells(document, table, self._label(member)) if table else None
        for cell in self._cells(member, document):
            element, place = cell.element, self._place(member, cell)
            if targets:
                targets.add_cell(cell, self._text(element))
            if not self._is_fixed(member, cell, table):
                index, item = _index(element), element.child("s:is")
                if index in self.fixed and index is not None and index < len(self.strings):
                    _add_own(document, element, self.strings[index], place)
                elif element.attributes.get("t") == "inlineStr" and item:
                    _add(document, item, place)
                elif element.attributes.get("t") == "str" and (value := element.child("s:v")):
                    _add_own(document, element, value.text, place)
            if element.child("s:is") is None:
                element.release()
        if targets:
            targets.end_row()
        elif not table:
            cell_texts |= {plain_value(segment.source.text) for segment in document.segments}
            self._add_validations(document, self._label(member), cell_texts)
        self._turn(document)
        return document

    @cached_property
    def _kept_texts(self) -> set[str]:
        return {plain_value(self.strings[i]) for i in self.fixed if i < len(self.strings)}

    def _add_validations(self, document: SlottedXml, label: str, cell_texts: Collection[str]) -> None:
        """Add the messages of rules for the input, and choices that no cell has; remark on what stays."""
        if not refers_to_values(document.file.content):
            return
        for rule in document.file.units({"s:worksheet"}, VALIDATIONS, SPACES):
            cells = next(rule.within("xm:sqref"), None)
            place = f"{label}!{shortened(cells.text if cells else rule.attributes.get('sqref', ''), LONGEST_PLACE)}"
            for choice in choices(rule):
                value = plain_value(choice)
                if is_language(choice) and value not in cell_texts and value not in self._kept_texts:
                    document.segments.add(Segment(TaggedText(choice), f"{place}, list"))
            add_attribute_texts(document, rule, _MESSAGES, f"{place}, message")
        named = set(map(plain_value, named_texts(document)))
        _remark_on_texts(document.segments, f"{label}: filters or formatting rules", named, cell_texts)

    def _turn(self, document: SlottedXml) -> None:
        """Let the columns of a sheet begin on the side of the target language."""
        direction = new_direction(self.languages)
        raw, has_view = document.file.raw, False
        views = {"s:sheetView", "s:sheetFormatPr", "s:cols", "s:row"}
        for element in document.file.units({"s:worksheet"}, views, NAMESPACES) if direction else ():
            if element.name == "s:sheetView":
                has_view = True
                document.set_attributes(element, {"rightToLeft": "1" if direction == "rtl" else None})
                continue
            if direction == "rtl" and element.parent and not has_view:
                before = element.parent.start if element.name == "s:row" else element.start
                name = prefix(raw(element.start, element.inner))
                view = f'<{name}sheetView rightToLeft="1" workbookViewId="0"/>'
                document.add_slot(before, before, None, f"<{name}sheetViews>{view}</{name}sheetViews>")
            break

    def _texts_of_strings(self, member: str) -> Iterator[str]:
        for item in self._units(member, "s:sst", "s:si"):
            yield _text_of_item(item)
            item.release()

    def _shared_strings(self, member: str) -> SlottedXml:
        document = self.archive.xml(member)
        for index, item in enumerate(document.file.units({"s:sst"}, {"s:si"}, NAMESPACES)):
            if index in self.places and index not in self.fixed:
                _add(document, item, self.places[index])
        return document

    def _notes(self, member: str, owner: str) -> SlottedXml:
        document, authors = self.archive.xml(member), list[str]()
        for note in document.file.units({"s:comments"}, {"s:author", "s:comment"}, NAMESPACES):
            if note.name == "s:author":
                authors.append(note.text.strip()[:LONGEST_PLACE])  # Excel allows far fewer characters.
                continue
            text, author = note.child("s:text"), note.attributes.get("authorId", "")
            if text and not text.words().startswith(_THREADED):
                name = authors[int(author)] if is_number(author) and int(author) < len(authors) else ""
                _add(document, text, f"{owner}!{note.attributes.get('ref', '')[:20]}, note", author=name)
        return document


class _WorkbookBundle(Bundle):
    """A workbook, in which the translations of cells are used wherever another part names the values of cells."""

    def __init__(self, archive: ZipContainer) -> None:
        super().__init__(archive)
        self.cell_segments = 0  # the number of segments of cells and lists, which come first
        self.referring: list[str] = []  # the members that refer to values of cells

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        content = super().filled(targets)
        cells = range(self.cell_segments if self.referring else 0)
        values = translated_values(self.segments, cells, targets)
        if not values:
            return content
        archive = ZipContainer(self.archive.name, content)
        contents: dict[str, bytes] = {}
        for member in self.referring:
            part = archive.read(member)
            changed = with_translated_values(archive.display_name(member), part, values)
            if changed != part:
                contents[member] = changed
        return archive.filled(contents)


def _remark_on_texts(segments: SegmentList, what: str, named: set[str], cell_texts: Collection[str]) -> None:
    """Remark on the texts that something names, and that no translated cell has; all are plain values."""
    names = sorted(filter(is_language, named.difference(cell_texts)))
    if names:
        listed = ", ".join(f"“{name[:40]}”" for name in names[:MOST_NAMED])
        segments.remarks.append(f"{what} name texts that no translated cell has, and stay: {listed}")


class _TargetCells:
    """The cells of a table that take translations; those that a row lacks are inserted."""

    def __init__(self, document: SlottedXml, table: StringTable, sheet: str) -> None:
        self.document, self.table, self.sheet = document, table, sheet
        self.missing: dict[int, int] = {}  # the target columns of the current row without a cell so far
        self.row: Element | None = None
        self.number = self.end = 0  # the number of the current row, and the end of its last cell

    def add_cell(self, cell: _Cell, text: str) -> None:
        """Add the next cell of the sheet, and insert missing ones before it."""
        element = cell.element
        if element.parent is not self.row:
            self.end_row()
            self.row, self.number = element.parent, cell.row
            self.missing = self.table.targets(cell.row)
        for column in sorted(self.missing):
            if column < cell.column:
                self._insert(column, element.start)
        source = self.missing.pop(cell.column, None)
        if source is not None and element.child("s:f") is None:
            tag = with_attributes(opened(self.document.file.raw(element.start, element.inner)), {"t": "inlineStr"})
            self._add(source, tag, element.start, element.end, text.strip() and text)
        self.end = element.end

    def end_row(self) -> None:
        """Insert the cells that are missing at the end of a row."""
        for column in list(self.missing):
            self._insert(column, self.end)

    def _insert(self, column: int, offset: int) -> None:
        name = prefix(self.document.file.raw(self.row.start, self.row.inner)) if self.row else ""
        tag = f'<{name}c r="{letters(column)}{self.number}" t="inlineStr">'
        numbers = self._add(self.missing.pop(column), tag, offset, offset, "")
        if not self.row or not numbers:
            return
        first, _, last = self.row.attributes.get("spans", "").partition(":")
        if is_number(first) and is_number(last) and not int(first) <= column <= int(last):
            # The range of the row's columns is optional.
            self.document.set_attributes(self.row, {"spans": None}, numbers)

    def _add(self, source: int, tag: str, start: int, end: int, existing: str) -> range:
        text = self.table.texts[self.number][source - 1]
        place = f"{self.sheet}!{letters(source)}{self.number}"
        marked = TaggedText(existing) if existing else None
        template = Segment(TaggedText(""), place, marked, longest=self.table.longest(self.number))
        return _add_message(self.document, tag, start, end, text, template)


def _add_message(document: SlottedXml, tag: str, start: int, end: int, text: str, template: Segment) -> range:
    """Add a text as segments, whose translation becomes a cell with the start tag `tag` in a range of the sheet."""
    numbers, spans = add_message(document.segments, text, template)
    name = prefix(tag)

    def write(targets: Targets, render: Render) -> str:
        item = f'<{name}t xml:space="preserve">{_written(spans.filled(targets))}</{name}t>'
        return f"{tag}<{name}is>{item}</{name}is></{name}c>"

    if numbers:
        document.add_slot(start, end, numbers, write)
    return numbers


def _add_own(document: SlottedXml, cell: Element, text: str, place: str) -> None:
    """Add the text of a cell, whose translation becomes its own string instead of a shared one."""
    if is_language(text):
        tag = with_attributes(document.file.raw(cell.start, cell.inner), {"t": "inlineStr"})
        _add_message(document, tag, cell.start, cell.end, text, Segment(TaggedText(""), place))


def _index(cell: Element) -> int | None:
    """Return the index of the shared string of a cell, if it has one."""
    value = cell.child("s:v")
    if cell.attributes.get("t") != "s" or value is None or not is_number(value.text.strip()):
        return None
    return int(value.text.strip())


def _text_of_item(item: Element) -> str:
    """Return the text of a string, without escapes and without the pronunciation of its characters."""
    texts = [item.child("s:t")] if item.child("s:t") else []
    for run in item.children_except("s:rPh", "s:phoneticPr", "s:t"):
        texts += run.within("s:t")
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), "".join(text.text for text in texts if text))


def _add(document: SlottedXml, item: Element, place: str, author: str = "") -> None:
    """Add a string: a plain text, or runs with formats. A translation removes the pronunciation of its characters.

    Runs at the beginning that name the author of a note are not translated.
    """
    pronunciations = [child for child in item.children if child.name == "s:rPh"]
    runs, text = item.children_except("s:rPh", "s:phoneticPr"), item.child("s:t")
    if text is None and author:
        runs = _after_author(runs, author)
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
        write = _written if "<" in words or _SPACED.search(words) else _written_closely
        inline = Inline(document.file, _role, edges=False, texts=_blocks, write=write, syntax=PlaceholderSyntax.message)
        add_text(document, inline, text.parts, place)
    numbers = range(first, len(document.segments))
    for pronunciation in pronunciations if numbers else ():
        document.add_slot(pronunciation.start, pronunciation.end, numbers, "")


def _after_author(runs: list[Element], author: str) -> list[Element]:
    """Return the runs of a note after those with the name of its author and a colon, which Excel writes first."""
    words = ""
    for number, run in enumerate(runs):
        words += _words_of(run)
        if words.strip() == f"{author}:":
            return runs[number + 1 :]
        if len(words.strip()) > len(author):
            break
    return runs


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


def _blocks(text: str) -> Iterator[Item]:
    """Yield the items of a cell, whose texts may have tags of HTML: blocks are segments of their own."""
    for item in _items(text):
        if isinstance(item, str) and "<" in item:
            yield from message_items(item, folds=False)
        else:
            yield item


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
