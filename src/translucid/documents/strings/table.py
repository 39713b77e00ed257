"""Tables of comma-separated values: one or more columns are translated; quotes stay, and come where they are needed.

See `table_columns` for which ones.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from translucid.data.languages import Languages, same_language, usual_code
from translucid.documents.splicing import TextFile
from translucid.documents.strings.messages import is_language
from translucid.documents.strings.string_document import Strings
from translucid.documents.strings.table_columns import columns
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

_DELIMITERS = ",;\t|"
MOST_CELLS = 1_000_000
"""Of a table."""
_SAMPLE = 4096
"""Characters that tell how a table is written: `csv.Sniffer` takes time that grows with their square."""
_SEPARATOR = re.compile(r'"?sep=(.)"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)
"""A first line that tells Excel how cells are parted."""


class Cell(NamedTuple):
    """A cell, where it stands in a text."""

    start: int
    end: int
    text: str
    quoted: bool


def read(name: str, content: bytes, languages: Languages) -> Strings:
    """Take a table apart.

    Raises:
        UserError: a quote is not closed, or something stands behind one that is.
    """
    file = TextFile.of(name, content)
    separator = _SEPARATOR.match(file.text)
    start = separator.end() if separator else 0
    delimiter = separator[1] if separator else _delimiter(file.text)
    rows = _rows(name, file, delimiter, start)
    strings = Strings(file)
    chosen = columns(name, [[cell.text for cell in row] for row in rows], languages)
    for row in rows[chosen.first :]:
        if chosen.language is not None and _is_of_other_language(row, chosen.language, languages):
            continue
        for source, target in chosen.pairs:
            # A formula begins with "=".
            if source >= len(row) or row[source].text.startswith("=") or not is_language(row[source].text):
                continue
            cell, existing, missing = row[source], None, ""
            if target != source:
                missing = delimiter * (target - len(row) + 1)
                cell = Cell(row[-1].end, row[-1].end, "", False) if missing else row[target]
                existing = cell.text if cell.text.strip() else None
            write = partial(_written, quoted=cell.quoted, delimiter=delimiter, before=missing)
            strings.add(cell.start, cell.end, row[source].text, write, existing=existing)
    return strings


def _is_of_other_language(row: Sequence[Cell], column: int, languages: Languages) -> bool:
    """Whether a row says that it is for another language than those of the translation, as in Shopify's exports."""
    code = usual_code(row[column].text.strip()) if column < len(row) else None
    known = [usual for each in languages if each and (usual := usual_code(each))]
    return code is not None and bool(known) and not any(same_language(code, each) for each in known)


def _delimiter(text: str) -> str:
    try:
        return csv.Sniffer().sniff(text[:_SAMPLE].partition("\n")[0] or text[:_SAMPLE], _DELIMITERS).delimiter
    except csv.Error:
        return ","


def _rows(name: str, file: TextFile, delimiter: str, at: int) -> list[list[Cell]]:
    """Return the cells of each row from a place on; lines with nothing in them are no rows."""
    text = file.text
    quoted = re.compile(r'"([^"]*(?:""[^"]*)*)"')
    plain = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
    rows: list[list[Cell]] = [[]]
    count = 0
    while at <= len(text):
        between_steps()
        count += 1
        if count > MOST_CELLS:
            raise UserError(f"has more than {MOST_CELLS:,} cells", file=name, fix="Split it.")
        if text[at : at + 1] == '"':
            match = quoted.match(text, at)
            if not match or text[match.end() : match.end() + 1] not in (delimiter, "\r", "\n", ""):
                what = "has characters behind a closed quote" if match else "has a quote that is not closed"
                raise UserError(what, file=name, line=file.line(match.end() if match else at))
            rows[-1].append(Cell(*match.span(), match[1].replace('""', '"'), True))
        else:
            match = plain.match(text, at)
            assert match
            rows[-1].append(Cell(*match.span(), match[0], False))
        at = match.end()
        if text[at : at + 1] != delimiter:
            at += text.startswith("\r\n", at)
            rows.append([])
        at += 1
    return [row for row in rows if len(row) > 1 or (row and row[0].text)]


def _written(new: str, quoted: bool, delimiter: str, before: str) -> str:
    if quoted or re.search(rf'[{re.escape(delimiter)}"\r\n]|^\s|\s$', new):
        new = '"' + new.replace('"', '""') + '"'
    return before + new
