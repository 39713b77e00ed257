r"""Java's .properties: the value of each key is translated; the comment above it is a note.

A file is read as UTF-8, else as Latin-1. In files of ASCII or Latin-1, other characters than ASCII are written as
`\uXXXX`, which every version of Java reads. A value of several lines is written in one.
"""

from __future__ import annotations

import re
from functools import partial

from bitext.cancellation import between_steps
from bitext.documents.spans import TextFile
from bitext.documents.strings.messages import QUOTED, is_language
from bitext.documents.strings.string_document import Strings, unescaped
from bitext.errors import UserError
from bitext.languages import Languages

_LINE = re.compile(
    r"[ \t\f]*(?:[#!](?P<comment>[^\r\n]*)|(?P<entry>(?:[^\\\r\n]|\\(?:\r\n|.|\Z))*))(?:\r\n|\r|\n|\Z)", re.DOTALL
)
_CONTINUATION = r"\\(?:\r\n|\r|\n)[ \t\f]*"
_SPACE = rf"(?:[ \t\f]|{_CONTINUATION})*"
_KEY = re.compile(rf"(?:{_CONTINUATION}|\\.|[^\\=:\s])*{_SPACE}(?:[=:]{_SPACE})?", re.DOTALL)
_ESCAPE = re.compile(rf"{_CONTINUATION}|\\u([0-9a-fA-F]{{4}})|\\(.)", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_TO_ESCAPE = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"})
_PATTERN = re.compile(r"\{\d+")


def read(name: str, content: bytes, languages: Languages) -> Strings:
    r"""Parse a file.

    Raises:
        UserError: a `\u` lacks its four digits.
    """
    try:
        file = TextFile.of(name, content)
    except UserError:
        file = TextFile.of(name, content, "latin-1")
    strings = Strings(file)
    write = partial(_written, ascii_only=file.text.isascii() or file.encoding == "latin-1")
    notes: list[str] = []
    for line in _LINE.finditer(file.text):
        between_steps()
        if line["comment"] is not None:
            notes.append(line["comment"].strip())
            continue
        key = _KEY.match(file.text, *line.span("entry"))
        assert key  # The pattern also matches the empty string.
        start, end = key.end(), line.end("entry")
        if broken := re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", file.text[start:end]):
            raise UserError("has a \\u without four digits", file=name, line=file.line(start + broken.start()))
        text = unescaped(file.text[start:end], _ESCAPE, _NAMED)
        doubled = None
        # java.text.MessageFormat, which inserts {0}, needs doubled apostrophes.
        if _PATTERN.search(text) and "'{" not in QUOTED.sub("", text):
            doubled = True
        if is_language(text, key[0].rstrip(" \t=:")):
            strings.add(start, end, text, write, note=" ".join(notes) or None, doubled=doubled)
        notes = []
    return strings


def _written(text: str, ascii_only: bool) -> str:
    written = text.translate(_TO_ESCAPE)
    if written.startswith(" "):  # White space after the key is not part of the value.
        written = f"\\{written}"
    if ascii_only:
        written = re.sub(r"[^\x00-\x7f]", _utf_16_escapes, written)
    return written


def _utf_16_escapes(character: re.Match[str]) -> str:
    digits = character[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return re.sub(r"(....)", r"\\u\1", digits)
