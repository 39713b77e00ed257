"""Tables of comma- or tab-separated values: some columns are translated; cells keep their quotes.

`table_columns` chooses the columns. A cell gets quotes if necessary, except in a .tsv in which quotes have no meaning.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.limits import MOST_CELLS, MOST_COLUMNS
from bitext.documents.splicing import TextFile
from bitext.documents.strings.messages import is_language
from bitext.documents.strings.string_document import Strings
from bitext.documents.strings.table_columns import columns, described, is_in_other_language
from bitext.errors import UserError
from bitext.languages import Languages

_DELIMITERS = ",;\t|"
_SAMPLE = 4096
"""The number of characters from which the delimiter is guessed: the time of `csv.Sniffer` is quadratic in it."""
_SEPARATOR = re.compile(r'"?sep=(.)"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)
"""A first line that tells Excel the delimiter."""


class Cell(NamedTuple):
    """A cell and its range in the text of the file."""

    start: int
    end: int
    text: str
    quoted: bool


def read(name: str, content: bytes, languages: Languages) -> Strings:
    """Parse a table.

    Raises:
        UserError: a quote is not closed, or text follows a closed one.
    """
    file = TextFile.of(name, content)
    has_quotes = True
    if separator := _SEPARATOR.match(file.text):
        rows = _rows(file, delimiter := separator[1], separator.end())
    elif name.lower().endswith(".tsv"):
        delimiter = "\t"
        rows, has_quotes = _tab_separated(file)
    else:
        rows = _rows(file, delimiter := _delimiter(file.text), 0)
    strings = Strings(file)
    texts = []
    for row in rows:
        texts.append([cell.text for cell in row])
    selected = columns(name, texts, languages)
    if texts:
        strings.segments.remarks.append(described(texts[0], selected))
    cells = sum(map(len, rows))
    for row in rows[selected.first_row :]:
        names_language = selected.language is not None and selected.language < len(row)
        if names_language and is_in_other_language(row[selected.language or 0].text, languages):
            continue
        between_steps()
        for source, target in selected.pairs:  # in the order of the columns
            if source >= len(row):
                break
            if _is_text(row[source].text):
                cells += max(0, target - len(row) + 1)
                _refuse_cells(cells, name)
                _add_cell(strings, row, source, target, delimiter, has_quotes=has_quotes)
    return strings


def _is_text(text: str) -> bool:
    """Whether a cell is translated, as it is no formula, number or code."""
    return not text.startswith("=") and is_language(text)


def _refuse_cells(count: int, name: str) -> None:
    if count > MOST_CELLS:
        raise UserError(f"has more than {MOST_CELLS:,} cells", file=name, fix="Split it.")


def _tab_separated(file: TextFile) -> tuple[list[list[Cell]], bool]:
    """Return the rows of a .tsv, and whether quotes enclose cells; otherwise, they are characters like others."""
    try:
        rows = _rows(file, "\t", 0)
    except UserError:
        return _rows(file, "\t", 0, has_quotes=False), False
    return rows, any(cell.quoted for cell in chain.from_iterable(rows))


def _add_cell(
    strings: Strings, row: Sequence[Cell], source: int, target: int, delimiter: str, *, has_quotes: bool
) -> None:
    """Add a cell whose translation goes into the column `target`, which the row may lack."""
    text = row[source].text
    cell, existing, padding = row[source], None, 0
    if target != source:
        padding = max(0, target - len(row) + 1)
        if padding:
            cell = Cell(row[-1].end, row[-1].end, "", False)
        else:
            cell = row[target]
        if cell.text.strip():
            existing = cell.text
    write: Callable[[str], str] = partial(_written, quoted=cell.quoted, delimiter=delimiter, padding=padding)
    if not has_quotes:
        write = partial(_unquoted, padding=padding)
    strings.add(cell.start, cell.end, text, write, existing=existing)


def _delimiter(text: str) -> str:
    """Guess the delimiter from the first line; a comma if that is impossible."""
    try:
        return csv.Sniffer().sniff(text[:_SAMPLE].partition("\n")[0] or text[:_SAMPLE], _DELIMITERS).delimiter
    except csv.Error:
        return ","


def _rows(file: TextFile, delimiter: str, offset: int, *, has_quotes: bool = True) -> list[list[Cell]]:
    """Return the cells of each row from an offset on, without empty lines."""
    text = file.text
    quoted_cell = '"(?P<quoted>[^"]*(?:""[^"]*)*)"|(?!")' if has_quotes else "(?P<quoted>(?!))?"
    pattern = re.compile(rf"{quoted_cell}[^{re.escape(delimiter)}\r\n]*")
    rows: list[list[Cell]] = [[]]
    count = 0
    while offset <= len(text):
        between_steps()
        count += 1
        _refuse_cells(count, file.name)
        if len(rows[-1]) == MOST_COLUMNS:
            line = file.line(offset)
            raise UserError(f"has more than {MOST_COLUMNS:,} columns", file=file.name, line=line, fix="Split it.")
        match = pattern.match(text, offset)
        if not match:
            raise UserError("has a quote that is not closed", file=file.name, line=file.line(offset))
        offset = match.end()
        end = text[offset : offset + 1]
        if end not in (delimiter, "\r", "\n", ""):
            raise UserError("has characters behind a closed quote", file=file.name, line=file.line(offset))
        quoted = match["quoted"]
        content = match[0] if quoted is None else quoted.replace('""', '"')
        rows[-1].append(Cell(*match.span(), content, quoted is not None))
        if end != delimiter:
            offset += text.startswith("\r\n", offset)
            rows.append([])
        offset += 1
    return [row for row in rows if len(row) > 1 or (row and row[0].text)]


def _written(text: str, quoted: bool, delimiter: str, padding: int) -> str:
    """Return a cell as it is written, after delimiters for the cells that its row lacks (`padding`)."""
    if quoted or re.search(rf'[{re.escape(delimiter)}"\r\n]|^\s|\s$', text):
        text = '"' + text.replace('"', '""') + '"'
    return padding * delimiter + text


def _unquoted(text: str, padding: int) -> str:
    """Return a cell of a .tsv without quotes, whose cells have no tabs and line ends."""
    return padding * "\t" + re.sub(r"[\t\r\n]+", " ", text)
