"""The text of a file, and edits that replace spans of it; every other byte is kept."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import NamedTuple

from bitext.errors import UserError

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
    bom: bytes
    """The byte order mark, or nothing; it is not part of the text."""
    name: str = ""
    """The file name for messages."""

    @classmethod
    def of(cls, name: str, content: bytes, encoding: str | None = None) -> TextFile:
        """Decode the content of a file.

        Args:
            name: the file name for messages.
            content: the bytes; a byte order mark determines the encoding.
            encoding: the encoding that the file declares, for files without a byte order mark; UTF-8 by default.

        Raises:
            UserError: the bytes are not valid in that encoding.
        """
        bom, codec = b"", encoding or "utf-8"
        for candidate, bom_encoding in _BOMS.items():
            if content.startswith(candidate):
                bom, codec = candidate, bom_encoding
        try:
            text = content[len(bom) :].decode(codec)
            if text.encode(codec) == content[len(bom) :]:
                return cls(text, codec, bom, name)
            line = None
        except LookupError as error:
            raise UserError(
                f"is in an encoding that is not known, {codec}", file=name, fix="Save it as UTF-8."
            ) from error
        except UnicodeError as error:
            line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise UserError(f"is not {codec.upper()}", file=name, line=line, fix="Save it as UTF-8.")

    @property
    def line_end(self) -> str:
        """The line end for new lines: the first with both CR and LF if there is one, else the one in use."""
        match = re.search(r"\r{1,7}\n", self.text)
        if match:
            return match[0]
        return "\r" if "\r" in self.text and "\n" not in self.text else "\n"

    @property
    def hard_space(self) -> str:
        """The non-breaking space for new HTML: the entity if the text uses it, else the character."""
        return "&nbsp;" if "&nbsp;" in self.text else "\N{NO-BREAK SPACE}"

    def line(self, offset: int) -> int:
        """Return the number, from 1, of the line of a character; linear in `offset`, so only for messages."""
        return self.text.count("\n", 0, offset) + 1

    def spliced(self, edits: Iterable[Edit]) -> bytes:
        """Return the content with edits; characters that the encoding lacks are written as `&#...;`.

        Halves of surrogate pairs, which cannot be encoded, become U+FFFD.
        """
        encodable = (edit._replace(new=_SURROGATE.sub("\ufffd", edit.new)) for edit in edits)
        return self.bom + splice(self.text, encodable).encode(self.encoding, "xmlcharrefreplace")


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits, given in any order, to a text.

    >>> splice("one two three", [Edit(4, 7, "2"), Edit(0, 3, "1")])
    '1 2 three'

    Raises:
        ValueError: two edits overlap.
    """
    parts, end = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < end or edit.end < edit.start:
            raise ValueError(f"characters {edit.start} to {edit.end} are replaced twice")
        parts += [text[end : edit.start], edit.new]
        end = edit.end
    return "".join([*parts, text[end:]])
