"""The text of a file, and spans of it that are replaced; every other byte is kept."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import NamedTuple

from translucid.ground.errors import UserError

_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

_SURROGATE = re.compile(r"[\ud800-\udfff]")
LINE_END = r"(?:\r{0,7}\n|\r(?!\r{0,6}\n))"
"""Programs that convert line ends twice write more than one carriage return."""
_BREAK = r"\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
LINE_BREAKS = re.compile(rf"(?<![ \t])[ \t]*+[{_BREAK}][ \t{_BREAK}]*+")
"""A line end, or several with nothing between them, also those that only some programs take for one."""


class Edit(NamedTuple):
    """What stands in the place of some characters."""

    start: int
    """Of the first character that goes."""
    end: int
    """Of the first one behind those that go; the same as `start` where something is only put in."""
    new: str


class TextFile(NamedTuple):
    """What a file of text holds."""

    text: str
    encoding: str
    mark: bytes
    """The byte order mark, if there is one; it is not in the text."""
    name: str = ""
    """For messages."""

    @classmethod
    def of(cls, name: str, content: bytes, encoding: str | None = None) -> TextFile:
        """Decode the content of a file.

        Args:
            name: of the file, for messages.
            content: bytes; a byte order mark says the encoding.
            encoding: that of a file without one, as the file itself names it; UTF-8 if not given.

        Raises:
            UserError: the bytes are none of that encoding.
        """
        mark = next((mark for mark in _BOMS if content.startswith(mark)), b"")
        used = _BOMS[mark] if mark else encoding or "utf-8"
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
        """How new lines end: with the carriage returns of the first line that has any."""
        match = re.search(r"\r{1,7}\n", self.text)
        if match:
            return match[0]
        return "\r" if "\r" in self.text and "\n" not in self.text else "\n"

    def line(self, place: int) -> int:
        """Return the number of the line, from 1, in which a character stands; slow, so for messages."""
        return self.text.count("\n", 0, place) + 1

    def spliced(self, edits: Iterable[Edit]) -> bytes:
        """Return the content with spans replaced; what the encoding lacks is written as `&#...;`.

        Halves of surrogate pairs, which no encoding has, become U+FFFD.
        """
        whole = (edit._replace(new=_SURROGATE.sub("\ufffd", edit.new)) for edit in edits)
        return self.mark + splice(self.text, whole).encode(self.encoding, "xmlcharrefreplace")


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with spans replaced.

    >>> splice("one two three", [Edit(4, 7, "2"), Edit(0, 3, "1")])
    '1 2 three'

    Raises:
        ValueError: two of the spans overlap.
    """
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < at or edit.end < edit.start:
            raise ValueError(f"characters {edit.start} to {edit.end} are replaced twice")
        parts += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, text[at:]])
