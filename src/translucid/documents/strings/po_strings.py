r"""Strings as gettext writes them: escaped, in lines of 79 columns at most, one for each `\n`."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

WIDTH = 79
"""Columns of a line."""
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def quoted(text: str, keyword: str, end: str = "\n", width: int | None = WIDTH) -> str:
    """Return a text as the value of a keyword.

    Args:
        text: characters.
        keyword: what stands before it, such as `msgstr[0]`.
        end: of a line.
        width: columns of a line, none for any number.
    """
    lines = [line for line in re.split(r"(?<=\n)", text) if line] or [""]
    escaped = ["".join(_ESCAPES.get(c, c) for c in line) for line in lines]
    if len(lines) == 1 and (width is None or len(keyword) + 3 + columns(escaped[0]) <= width):
        return f'"{escaped[0]}"'
    wrapped = [part for line in escaped for part in ([line] if width is None else _wrapped(line, width - 2))]
    return end.join(['""', *(f'"{part}"' for part in wrapped)])


def _wrapped(line: str, width: int) -> list[str]:
    """Cut a line behind spaces into parts of so many columns, longer only where a word is."""
    parts, used = [""], 0
    for word in re.findall(r"[^ ]* +|[^ ]+$", line):
        length = columns(word)
        if used and used + length > width:
            parts.append("")
            used = 0
        parts[-1] += word
        used += length
    return parts


def columns(text: str) -> int:
    """Return how wide a text is in a terminal."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(c) in "WF" else 1 for c in text)
