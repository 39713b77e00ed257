r"""Strings as gettext writes them: escaped, with a new line after each `\n` and at most 79 columns."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

from bitext.readers.po import NAMED

WIDTH = 79
"""The largest number of columns of a line."""
_TO_ESCAPE = str.maketrans({character: f"\\{letter}" for letter, character in {**NAMED, "\\": "\\", '"': '"'}.items()})
_BREAKS = re.compile(r"(?<= )(?=[^ ])(?!\\n)|(?<=-)(?=[^\W\d_])")
"""The places where a line may end, as in gettext: after spaces unless `\\n` follows, between a hyphen and a letter."""


def quoted(text: str, keyword: str, end: str = "\n", width: int | None = WIDTH) -> str:
    """Return a text as the value of a keyword.

    Args:
        text: the characters, not escaped.
        keyword: the keyword before the string, such as `msgstr[0]`.
        end: the line end.
        width: the largest number of columns of a line; None is no limit.
    """
    lines = [line.translate(_TO_ESCAPE) for line in re.split(r"(?<=\n)(?!\Z)", text)]
    # 3 columns for the space after the keyword and the two quotes.
    if len(lines) == 1 and (width is None or len(keyword) + 3 + columns(lines[0]) <= width):
        return f'"{lines[0]}"'
    quoted_lines = ['""']
    for line in lines:
        parts = [line] if width is None else _wrapped(line, width - 2)
        quoted_lines += map('"{}"'.format, parts)
    return end.join(quoted_lines)


def _wrapped(line: str, width: int) -> list[str]:
    """Cut a line after spaces and hyphens into parts of at most `width` columns; only one long word may be wider."""
    parts, column = [""], 0
    for word in _BREAKS.split(line):
        length = columns(word)
        if column and column + length > width:
            parts.append("")
            column = 0
        parts[-1] += word
        column += length
    return parts


def columns(text: str) -> int:
    """Return the width of a text in a terminal: East Asian wide and full-width characters take two columns."""
    if text.isascii():
        return len(text)
    return len(text) + sum(east_asian_width(character) in "WF" for character in text)
