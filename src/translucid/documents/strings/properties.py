r"""Java's .properties: the value of each key is translated; the comment above it is a note.

UTF-8, or else Latin-1. Where a file is ASCII or Latin-1, what is not ASCII is written as `\uXXXX`, which every version
of Java reads. A value that goes on over several lines is written in one.
"""

from __future__ import annotations

import re
from functools import partial

from translucid.data.languages import Languages
from translucid.documents.splicing import TextFile
from translucid.documents.strings.messages import QUOTED, is_language
from translucid.documents.strings.string_document import Strings
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

_LINE = re.compile(
    r"[ \t\f]*(?:[#!](?P<comment>[^\r\n]*)|(?P<entry>(?:[^\\\r\n]|\\(?:\r\n|.|\Z))*))(?:\r\n|\r|\n|\Z)", re.DOTALL
)
_GOES_ON = r"\\(?:\r\n|\r|\n)[ \t\f]*"
_SPACE = rf"(?:[ \t\f]|{_GOES_ON})*"
_KEY = re.compile(rf"(?:{_GOES_ON}|\\.|[^\\=:\s])*{_SPACE}(?:[=:]{_SPACE})?", re.DOTALL)
_ESCAPE = re.compile(rf"{_GOES_ON}|\\u([0-9a-fA-F]{{4}})|\\(.)", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"}
_PATTERN = re.compile(r"\{\d+")


def read(name: str, content: bytes, languages: Languages) -> Strings:
    r"""Take a file apart.

    Raises:
        UserError: a `\u` without its four digits.
    """
    try:
        file = TextFile.of(name, content)
    except UserError:
        file = TextFile.of(name, content, "latin-1")
    plain = file.text.isascii() or file.encoding == "latin-1"
    found = Strings(file)
    write = partial(_written, plain=plain)
    at = 0
    notes: list[str] = []
    while at < len(file.text) and (line := _LINE.match(file.text, at)):
        at = line.end()
        between_steps()
        if line["comment"] is not None:
            notes.append(line["comment"].strip())
            continue
        key = _KEY.match(file.text, line.start("entry"), line.end("entry"))
        start, end = key.end() if key else at, line.end("entry")
        if broken := re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", file.text[start:end]):
            raise UserError("has a \\u without four digits", file=name, line=file.line(start + broken.start()))
        text = _unescaped(file.text[start:end])
        # java.text.MessageFormat, which fills in {0}, wants apostrophes twice.
        doubled = True if _PATTERN.search(text) and "'{" not in QUOTED.sub("", text) else None
        if is_language(text, file.text[line.start("entry") : start].rstrip(" \t=:")):
            found.add(start, end, text, write, note=" ".join(notes) or None, doubled=doubled)
        notes = []
    return found


def _unescaped(raw: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _NAMED.get(match[2], match[2]) if match[2] else ""

    return _ESCAPE.sub(character, raw).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(text: str, plain: bool) -> str:
    written = "".join(_WRITTEN.get(c, c) for c in text)
    if written.startswith(" "):
        written = f"\\{written}"
    if plain:
        written = re.sub(r"[^\x00-\x7f]", _units, written)
    return written


def _units(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
