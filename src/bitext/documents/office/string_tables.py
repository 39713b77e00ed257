"""Tables of strings for translators in workbooks and texts: which cells are translated, and which take translations.

`strings.table` chooses the columns by the names in one of the first rows. All other cells of such a table stay.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, overload

from bitext.cancellation import between_steps
from bitext.documents.document import MOST_COLUMNS, Segment
from bitext.documents.strings.messages import is_language
from bitext.documents.strings.table import (
    MOST_NAMED_COLUMNS,
    Columns,
    columns_of_strings,
    described,
    is_in_other_language,
    names_columns,
)
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_file import Render, SlottedXml, Targets, opened, prefix, with_attributes
from bitext.languages import Languages
from bitext.readers.xml_elements import Element

FIRST_ROWS = 20
"""The number of rows among which the names of a table's columns are searched for."""
Texts = Mapping[int, Mapping[int, str]]
"""The texts of the rows of a table by their numbers from 1, each by the index of its column."""


class _Row(Sequence[str]):
    """The texts of a row, most of whose cells may be empty."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        """`texts`: the text of each cell that has one, by the index of its column."""
        self.texts, self.length = texts, max(texts, default=-1) + 1

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index >= self.length:
            raise IndexError(index)
        return self.texts.get(index, "")


@dataclass
class StringTable:
    """A table whose rows are strings for translators."""

    first_row: int
    """The number of the row after the names of the columns."""
    columns: Columns
    texts: Texts
    other_rows: frozenset[int]
    """The numbers of the rows in other languages."""

    @property
    def remark(self) -> str:
        """The remark for the user on the columns that are translated."""
        return described(_Row(self.texts[self.first_row - 1]), self.columns)

    @cached_property
    def _sources(self) -> frozenset[int]:
        """The columns that are translated, in place or into others, from 1."""
        return frozenset(source + 1 for source, _ in self.columns.pairs)

    @cached_property
    def _in_place(self) -> frozenset[int]:
        """The columns that are translated in place, from 1."""
        return frozenset(source + 1 for source, target in self.columns.pairs if source == target)

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """The columns with translations in order, each with the column of its sources, from 1."""
        pairs = [(target + 1, source + 1) for source, target in self.columns.pairs if source != target]
        return sorted(pairs)

    def translates(self, column: int, row: int) -> bool:
        """Whether a cell, given by its column and row from 1, is translated in place."""
        return column in self._in_place and self.is_source(column, row)

    def is_source(self, column: int, row: int) -> bool:
        """Whether a cell is translated, in place or into another one."""
        return column in self._sources and row >= self.first_row and row not in self.other_rows

    def longest(self, row: int) -> int | None:
        """Return the largest number of characters of the translations of a row, if it states one."""
        return self.columns.longest(_Row(self.texts.get(row, {})))

    def targets(self, row: int) -> dict[int, int]:
        """Return the columns of a row into which texts of others are translated, and those, in order and from 1."""
        targets: dict[int, int] = {}
        for target, source in self._pairs:
            text = self.texts.get(row, {}).get(source - 1, "")
            if self.is_source(source, row) and not text.startswith("=") and is_language(text):
                targets[target] = source
        return targets


Choose = Callable[[str, Sequence[Sequence[str]], Languages], Columns | None]


def has_head(texts: Texts, languages: Languages) -> bool:
    """Whether one of the first rows may hold the names of the columns of a table with strings for translators."""
    return next(_heads(texts, languages), None) is not None


def string_table(
    name: str, texts: Texts, languages: Languages, choose: Choose = columns_of_strings
) -> StringTable | None:
    """Return a table if it holds strings for translators; else None.

    `choose` returns the columns, given the rows from the one with their names on.
    """
    for head in _heads(texts, languages):
        numbers = [row for row in sorted(texts) if row >= head]
        selected = choose(name, [_Row(texts[row]) for row in numbers], languages)
        if selected is None:
            continue
        others = set[int]()
        for row in numbers if selected.language is not None else ():
            if is_in_other_language(texts[row].get(selected.language or 0, ""), languages):
                others.add(row)
        return StringTable(head + 1, selected, texts, frozenset(others))
    return None


def _heads(texts: Texts, languages: Languages) -> Iterator[int]:
    for row in sorted(texts):
        if row <= FIRST_ROWS and names_columns(_Row(texts[row]), languages):
            yield row


def column_count(attribute: str) -> int:
    """Return the number of columns that a cell covers, given the value of its attribute; 1 by default."""
    return min(max(int(attribute), 1), MOST_COLUMNS) if is_number(attribute) else 1


def is_number(text: str) -> bool:
    """Whether a text is a number of a row or a column."""
    return text.isascii() and text.isdigit() and len(text) < 10


class Cell(NamedTuple):
    """A cell of a table and its offsets in the file."""

    table: int
    """The offset of its table."""
    row: int
    """The offset of its row."""
    start: int
    inner: int
    inner_end: int
    end: int
    columns: int = 1
    """The number of columns that it covers."""
    text: str = ""
    contents: tuple[tuple[int, int], ...] = ()
    """The spans of its paragraphs."""
    is_free: bool = True
    """Whether it may take a translation, because it is visible and not computed."""


@dataclass(frozen=True)
class CellSyntax:
    """The syntax of cells in a kind of document."""

    choose: Choose
    """Returns the columns of a table, as for `string_table`."""
    dropped: re.Pattern[str]
    """What a copy of a text leaves out, such as identifiers."""
    repeated: str = ""
    """The attribute for the number of equal cells that an element stands for, if there is one."""
    attributes: Mapping[str, str | None] = field(default_factory=dict)
    """The attributes that a cell gets with a translation; None removes one."""


class _Copy:
    """A cell whose translation another cell takes."""

    def __init__(
        self, document: SlottedXml, source: Cell, column: int, existing: TaggedText | None, longest: int | None
    ) -> None:
        self.document = SlottedXml(document.file)  # with the segments of this cell alone
        self.contents, self.column, self.existing, self.longest = source.contents, column, existing, longest
        self.numbers: list[int] = []  # of its segments in the whole document

    def written(self, targets: Targets) -> str | None:
        """Return the translated paragraphs; None without a translation."""
        own = {i: targets[number] for i, number in enumerate(self.numbers) if number in targets}
        if not own:
            return None
        return "".join(self.document.rendered(own, start, end).decode() for start, end in self.contents)


@dataclass
class _Target:
    """An element that takes translations: a cell, or several equal ones."""

    syntax: CellSyntax
    column: int
    """Its first column, from 1."""
    columns: int
    tag: str
    """Its start tag."""
    kept: str
    """Its content without paragraphs."""
    rest: str
    """Its content and its end tag."""
    copies: list[_Copy] = field(default_factory=list)

    def written(self, targets: Targets, render: Render) -> str:
        tag = with_attributes(opened(self.tag), {self.syntax.repeated: None, **self.syntax.attributes})
        end_tag = f"</{self.tag[1:].split(maxsplit=1)[0].rstrip('/>')}>"
        column, output = self.column, list[str]()
        for copy in sorted(self.copies, key=attrgetter("column")):
            translation = copy.written(targets)
            if translation is not None:
                output.append(self._unchanged(copy.column - column))
                output += [tag, self.kept, self.syntax.dropped.sub("", translation), end_tag]
                column = copy.column + 1
        return "".join([*output, self._unchanged(self.column + self.columns - column)])

    def _unchanged(self, count: int) -> str:
        """Return this number of cells as they are in the file."""
        if not count:
            return ""
        return with_attributes(self.tag, {self.syntax.repeated: str(count) if count > 1 else None}) + self.rest


class StringTables:
    """The tables of strings in a file, whose cells are paragraphs."""

    def __init__(
        self,
        document: SlottedXml,
        syntax: CellSyntax,
        cells: Iterable[Cell],
        languages: Languages,
        names: Mapping[int, str] | None = None,
    ) -> None:
        """Find the tables.

        Args:
            document: the file; its remarks name the columns.
            syntax: the syntax of its cells.
            cells: the cells of all tables, in order, without those of tables in cells.
            languages: the source and the target language.
            names: the names of the tables by their offsets, complete once the first cell of each has been read.
        """
        self.document, self.syntax = document, syntax
        self._kept = set[int]()  # the cells that are not translated in place, by their offsets
        self._copies: dict[int, list[_Copy]] = {}  # by the offset of the cell
        self._targets: list[tuple[int, int, _Target]] = []  # each with its span
        for number, (offset, table_cells) in enumerate(groupby(cells, key=attrgetter("table")), 1):
            rows, texts = _read_rows(table_cells, languages, repeats=bool(syntax.repeated))
            name = (names or {}).get(offset) or f"table {number}"
            if table := string_table(f"{document.file.name}, {name}", texts, languages, syntax.choose):
                document.segments.remarks.append(f"{name}: {table.remark}")
                for row, row_cells in rows.items():
                    self._add_row(table, row, row_cells)

    def documents(self, cell: Element | None) -> Iterator[SlottedXml]:
        """Yield where the paragraphs of a cell are added, or those outside of tables; nothing if the cell stays.

        What is added to a copy becomes a part of the document when the next one is asked for.
        """
        if cell is None or cell.start not in self._kept:
            yield self.document
            return
        for copy in self._copies.get(cell.start, ()):
            yield copy.document
            for segment in copy.document.segments[len(copy.numbers) :]:
                copy.numbers.append(self._segment_of(copy, segment))

    def _segment_of(self, copy: _Copy, segment: Segment) -> int:
        """Add a segment of a copy to the document, and return its number."""
        return self.document.segments.add(replace(segment, existing=copy.existing, longest=copy.longest))

    def finish(self) -> None:
        """Add the slots for the translations, after all paragraphs."""
        for start, end, target in self._targets:
            numbers: list[int] = []
            for copy in target.copies:
                numbers += copy.numbers
            if numbers:
                self.document.add_slot(start, end, range(min(numbers), max(numbers) + 1), target.written)

    def _add_row(self, table: StringTable, row: int, cells: Mapping[int, Cell]) -> None:
        """Add a row of a table; `cells`: by their first columns, from 1, in order."""
        for first_column in cells:
            if not table.translates(first_column, row):
                self._kept.add(cells[first_column].start)
        pairs, targets = table.targets(row), dict[int, _Target]()
        for target_column, source_column in pairs.items():
            _, source = _covering(cells, source_column)
            column, cell = _covering(cells, target_column)
            if cell is None and self.syntax.repeated:
                column, cell = _missing(cells, last_column=max(pairs))
            if source is None or not source.contents or cell is None or not cell.is_free:
                continue
            if column not in targets:
                targets[column] = self._target(column, cell)
                self._targets.append((cell.start, cell.end, targets[column]))
            existing = table.texts[row].get(target_column - 1, "")
            kept = TaggedText(existing) if existing.strip() else None
            copy = _Copy(self.document, source, target_column, kept, table.longest(row))
            targets[column].copies.append(copy)
            self._copies.setdefault(source.start, []).append(copy)

    def _target(self, column: int, cell: Cell) -> _Target:
        raw = self.document.file.raw
        tag = raw(cell.start, cell.inner)
        if cell.start == cell.end:  # The row lacks the cell.
            tag = f"<{prefix(raw(cell.row, cell.start))}table-cell/>"
        kept, position = "", cell.inner
        for start, end in cell.contents:
            kept += raw(position, start)
            position = end
        kept += raw(position, cell.inner_end)
        return _Target(self.syntax, column, cell.columns, tag, kept, raw(cell.inner, cell.end))


def _read_rows(
    cells: Iterable[Cell], languages: Languages, *, repeats: bool
) -> tuple[dict[int, dict[int, Cell]], dict[int, dict[int, str]]]:
    """Return the cells of the rows of a table by their first columns from 1, and the texts as for `string_table`.

    If none of the first rows can hold the names of columns, only these rows are returned. `repeats`: whether a cell of
    several columns has its text in each of them.
    """
    rows: dict[int, dict[int, Cell]] = {}
    texts: dict[int, dict[int, str]] = {}
    for number, (_, row_cells) in enumerate(groupby(cells, key=attrgetter("row")), 1):
        if number == FIRST_ROWS + 1 and not has_head(texts, languages):
            break
        rows[number], column = {}, 1
        for cell in row_cells:
            between_steps()
            rows[number][column] = cell
            last = column + cell.columns if repeats else column + 1
            # A table of strings has no more columns.
            for index in range(column - 1, min(last - 1, MOST_NAMED_COLUMNS + 1) if cell.text else 0):
                texts.setdefault(number, {})[index] = cell.text
            column += cell.columns
    return rows, texts


def _covering(cells: Mapping[int, Cell], column: int) -> tuple[int, Cell | None]:
    """Return the cell of a row that covers a column, and its first column; None if there is none."""
    first_columns = list(cells)
    index = bisect_right(first_columns, column) - 1
    if index >= 0:
        first, cell = first_columns[index], cells[first_columns[index]]
        if column < first + cell.columns:
            return first, cell
    return column, None


def _missing(cells: Mapping[int, Cell], last_column: int) -> tuple[int, Cell]:
    """Return the first column and the place of the cells that a row lacks up to a column."""
    column = max(cells)
    cell = cells[column]
    first, end = column + cell.columns, cell.end
    return first, Cell(cell.table, cell.row, end, end, end, end, columns=last_column + 1 - first)
