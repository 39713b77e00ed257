"""Apple's .strings: `"key" = "value";`. The value is translated; the comment before it is a note."""

from __future__ import annotations

import re

from bitext.cancellation import between_steps
from bitext.documents.spans import TextFile
from bitext.documents.strings.messages import is_language
from bitext.documents.strings.string_document import Strings, unescaped
from bitext.errors import UserError
from bitext.languages import Languages
from bitext.readers.po import NAMED

_QUOTED = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_ENTRY = re.compile(rf"(?P<key>{_QUOTED}|[\w.$/:-]+)\s*(?:=\s*(?P<value>{_QUOTED}|[\w.$/:-]+)\s*)?;", re.DOTALL)
_SEPARATOR = re.compile(r"\s+|/\*(?P<block>.*?)\*/|//(?P<line>[^\r\n]*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:[Uu]([0-9a-fA-F]{4})|(.))", re.DOTALL)
_TO_ESCAPE = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def read(name: str, content: bytes, languages: Languages) -> Strings:
    """Parse a file, which is UTF-8, or UTF-16 with a byte order mark.

    Raises:
        UserError: the file contains something that is neither a comment nor an entry.
    """
    file = TextFile.of(name, content)
    strings = Strings(file)
    position, note = 0, ""
    while position < len(file.text):
        between_steps()
        if separator := _SEPARATOR.match(file.text, position):
            note = separator["block"] or separator["line"] or note
            position = separator.end()
            continue
        entry = _ENTRY.match(file.text, position)
        if not entry:
            what = 'has no entry of the form "key" = "value"; here'
            raise UserError(what, file=name, line=file.line(position))
        if (entry["value"] or "").startswith('"'):
            start, end = entry.start("value") + 1, entry.end("value") - 1
            text = unescaped(file.text[start:end], _ESCAPE, NAMED)
            if is_language(text, unescaped(entry["key"].strip('"'), _ESCAPE, NAMED)):
                strings.add(start, end, text, _written, note=note.strip() if note else None)
        position, note = entry.end(), ""
    return strings


def _written(text: str) -> str:
    return text.translate(_TO_ESCAPE)
