"""The text of a file, and edits that replace spans of it; every other byte is kept."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import NamedTuple

from translucid.ground.errors import UserError

_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

_SURROGATE = re.compile(r"[\ud800-\udfff]")
LINE_END = r"(?:\r{0,7}\n|\r(?!\r{0,6}\n))"
"""A line end. Programs that convert line ends twice write more than one carriage return."""
_BREAK = r"\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
LINE_BREAKS = re.compile(rf"(?<![ \t])[ \t]*+[{_BREAK}][ \t{_BREAK}]*+")
"""One or more line ends, including the characters that only some programs treat as line ends."""


class Edit(NamedTuple):
    """The replacement of a range of characters."""

    start: int
    end: int
    """The end of the range, exclusive; the same as `start` for an insertion."""
    new: str


class TextFile(NamedTuple):
    """The decoded content of a text file."""

    text: str
    encoding: str
    mark: bytes
    """The byte order mark, or nothing; it is not part of the text."""
    name: str = ""
    """The file name for messages."""

    @classmethod
    def of(cls, name: str, content: bytes, encoding: str | None = None) -> TextFile:
        """Decode the content of a file.

        Args:
            name: the file name for messages.
            content: the bytes; a byte order mark determines the encoding.
            encoding: the encoding without a byte order mark, as the file itself declares it; UTF-8 by default.

        Raises:
            UserError: the bytes are not valid in that encoding.
        """
        mark, used = b"", encoding or "utf-8"
        for bom, bom_encoding in _BOMS.items():
            if content.startswith(bom):
                mark, used = bom, bom_encoding
        try:
            text = content[len(mark) :].decode(used)
            if text.encode(used) == content[len(mark) :]:
                return cls(text, used, mark, name)
            line = None
        except LookupError as error:
            raise UserError(
                f"is in an encoding that is not known, {used}", file=name, fix="Save it as UTF-8."
            ) from error
        except UnicodeError as error:
            line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise UserError(f"is not {used.upper()}", file=name, line=line, fix="Save it as UTF-8.")

    @property
    def line_end(self) -> str:
        """The line end for new lines: the first in the text that has both characters, else the only one in use."""
        match = re.search(r"\r{1,7}\n", self.text)
        if match:
            return match[0]
        return "\r" if "\r" in self.text and "\n" not in self.text else "\n"

    @property
    def hard_space(self) -> str:
        """The non-breaking space for new HTML: the entity if the text uses it, else the character."""
        return "&nbsp;" if "&nbsp;" in self.text else "\N{NO-BREAK SPACE}"

    def line(self, place: int) -> int:
        """Return the number, from 1, of the line of a character; linear in `place`, so only for messages."""
        return self.text.count("\n", 0, place) + 1

    def spliced(self, edits: Iterable[Edit]) -> bytes:
        """Return the content with edits; characters that the encoding lacks are written as `&#...;`.

        Halves of surrogate pairs, which no encoding has, become U+FFFD.
        """
        encodable = (edit._replace(new=_SURROGATE.sub("\ufffd", edit.new)) for edit in edits)
        return self.mark + splice(self.text, encodable).encode(self.encoding, "xmlcharrefreplace")


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with edits, which may come in any order.

    >>> splice("one two three", [Edit(4, 7, "2"), Edit(0, 3, "1")])
    '1 2 three'

    Raises:
        ValueError: two edits overlap.
    """
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < at or edit.end < edit.start:
            raise ValueError(f"characters {edit.start} to {edit.end} are replaced twice")
        parts += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, text[at:]])
