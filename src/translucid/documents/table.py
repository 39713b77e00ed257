"""Tables of comma-separated values: one or more columns are translated; quotes stay, and come where they are needed.

Which columns, by the names in the first row:

1. A column of the source (`source`, or named by the language: `en`, `English`) and one of the target (`target`,
   `translation`, `es`, `Spanish`): what stands in the former is translated into the latter.
2. Only the former: it is translated where it stands.
3. Columns with a usual name of text, such as `text`, `title` or `description`: the same.
4. None of them: cells that are language, of columns with more than single words; the first row stays if it looks like
   names.
"""

from __future__ import annotations

import csv
import re
from functools import cache, partial
from typing import NamedTuple

from translucid.data.languages import Languages, same_language, short_code, usual_code
from translucid.documents.messages import is_language
from translucid.documents.splicing import TextFile
from translucid.documents.strings import Strings
from translucid.ground.errors import UserError

_DELIMITERS = ",;\t|"
_SAMPLE = 8192
"""Characters that tell how a table is written."""
_SOURCE = {"source", "source text", "src", "original"}
_TARGET = {"target", "target text", "tgt", "translation", "translated"}
_TEXT = frozenset(
    ["text", "string", "message", "value", "title", "description", "content", "body", "label", "question", "answer"]
    + ["comment", "caption", "summary", "subject", "sentence", "phrase", "segment"]
)


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
    delimiter = _delimiter(file.text)
    rows = _rows(name, file, delimiter)
    found = Strings(file)
    columns, first = _columns(rows, languages)
    for row in rows[first:]:
        for source, target in columns:
            if source >= len(row) or not is_language(row[source].text):
                continue
            cell, existing, missing = row[source], None, ""
            if target != source:
                missing = delimiter * (target - len(row) + 1)
                cell = Cell(row[-1].end, row[-1].end, "", False) if missing else row[target]
                existing = cell.text if cell.text.strip() else None
            write = partial(_written, quoted=cell.quoted, delimiter=delimiter, before=missing)
            found.add(cell.start, cell.end, row[source].text, write, existing=existing)
    return found


def _delimiter(text: str) -> str:
    try:
        return csv.Sniffer().sniff(text[:_SAMPLE].partition("\n")[0] or text[:_SAMPLE], _DELIMITERS).delimiter
    except csv.Error:
        return ","


def _rows(name: str, file: TextFile, delimiter: str) -> list[list[Cell]]:
    """Return the cells of each row; lines with nothing in them are no rows."""
    text = file.text
    quoted = re.compile(r'"([^"]*(?:""[^"]*)*)"')
    plain = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
    rows: list[list[Cell]] = [[]]
    at = 0
    while at <= len(text):
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


def _columns(rows: list[list[Cell]], languages: Languages) -> tuple[list[tuple[int, int]], int]:
    """Return pairs (source column, target column), and the number of the first row with text."""
    names = [cell.text.strip() for cell in rows[0]] if rows else []
    source = next((i for i, name in enumerate(names) if name.lower() in _SOURCE or _names(name, languages[0])), None)
    target = next((i for i, name in enumerate(names) if name.lower() in _TARGET or _names(name, languages[1])), None)
    if source is not None:
        return [(source, source if target is None else target)], 1
    if known := [(i, i) for i, name in enumerate(names) if name.lower() in _TEXT]:
        return known, 1
    headed = (
        bool(names)
        and len(rows) > 1
        and all(re.fullmatch(r"[^.!?,;]{1,40}", name) and len(name.split()) < 4 for name in names)
    )
    rest = rows[headed:]
    columns = {i for row in rest for i, cell in enumerate(row) if is_language(cell.text) and " " in cell.text.strip()}
    return [(i, i) for i in sorted(columns)], int(headed)


def _names(name: str, code: str | None) -> bool:
    """Whether a column is named by a language."""
    if not code:
        return False
    if usual_code(name):
        return same_language(usual_code(name) or "", usual_code(code) or code)
    return name.lower() == _english(code)


@cache
def _english(code: str) -> str | None:
    """Return the English name of a language, in lower case."""
    from babel import Locale, UnknownLocaleError

    try:
        return (Locale(short_code(code)).english_name or "").lower() or None
    except (UnknownLocaleError, ValueError):
        return None


def _written(new: str, quoted: bool, delimiter: str, before: str) -> str:
    if quoted or re.search(rf'[{re.escape(delimiter)}"\r\n]|^\s|\s$', new):
        new = '"' + new.replace('"', '""') + '"'
    return before + new
