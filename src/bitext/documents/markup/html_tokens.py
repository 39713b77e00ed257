"""The tokens of HTML with their offsets, as browsers recognise them.

The time of `html.parser` is quadratic in unclosed comments, tags and quotes, and it holds the interpreter meanwhile.
Here each character is read a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from bitext.cancellation import between_steps

Kind = Literal["words", "opens", "closes", "single", "other"]
"""`single` is a tag such as `<br/>`; `other` is a comment, a declaration or a processing instruction."""

_RAW = frozenset({"script", "style"})
"""Elements whose content is raw text up to their end tag."""
_BEGINS = re.compile(r"<[A-Za-z/!?]")
"""The beginning of a tag, a comment and the like; any other `<` is a character."""
_NAME = re.compile(r"</?([A-Za-z][^\s/>\0]*)")
_VALUE = r"\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)"
_TAG = re.compile(
    r"<[A-Za-z][^\s/>\0]*+"
    r"(?:[\s/\0]++"
    # The name of an attribute, and a value, whose quotes may contain `>`. An unpaired quote is part of a name.
    rf"|(?:[^\s/>=\0]++|=)(?:{_VALUE}|(?!{_VALUE}))"
    r")*>"
)
_BARE_VALUE = re.compile(r"(?:(?<![^\s\"'>])[^\s\"'>=]*+=|=\s++)[^\s\"'>]+/>\Z")
"""The end of a tag such as `<a href=x/>`, whose slash belongs to the value."""
_SPECIAL = ("<!-->", ""), ("<!--->", ""), ("<!--", "-->"), ("<![CDATA[", "]]>")
"""The beginning and the end of comments, two of them empty, and CDATA sections."""
_TAIL = 300
"""The number of characters at the end of a tag that are searched for such a value."""


class Token(NamedTuple):
    """A token and its range in the text."""

    kind: Kind
    start: int
    end: int
    name: str
    """The name of an element in lower case; "" for other tokens."""


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, which follow each other without gaps.

    Raises:
        Cancelled: the request was cancelled.
    """
    scanner = _Scanner(text)
    position = 0
    while position < len(text):
        between_steps()
        begins = _BEGINS.search(text, position)
        start = begins.start() if begins else len(text)
        if start > position:
            yield Token("words", position, start, "")
        if begins is None:
            return
        token = scanner.token(start)
        yield token
        position = token.end
        if token.kind == "opens" and token.name in _RAW:
            end = scanner.end_of_raw(token.name, position)
            if end > position:
                yield Token("words", position, end, "")
            position = end


class _Scanner:
    """A scanner for the ends of tokens; after a vain search for a kind of end, it does not search for it again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._missing: set[str] = set()  # the ends that the rest of the text does not have
        # Whether `>` in quotes is part of a tag. An unclosed quote would otherwise include the rest of the text.
        self._quotes = True

    def token(self, start: int) -> Token:
        """Return the token that begins with the `<` at an offset; a token without end is words, up to the end."""
        name = _NAME.match(self.text, start)
        if name and self.text[start + 1] != "/":
            return self._start_tag(start, name[1].lower())
        end = self._special_end(start) or self._find(">", start)
        if end is None:
            return Token("words", start, len(self.text), "")
        if name:
            return Token("closes", start, end, name[1].lower())
        return Token("other", start, end, "")

    def _special_end(self, start: int) -> int | None:
        """Return the end of a comment or a CDATA section; None for other tokens, or without an end."""
        for begin, end in _SPECIAL:
            if self.text.startswith(begin, start):
                return self._find(end, start + len(begin))
        return None

    def _start_tag(self, start: int, name: str) -> Token:
        if self._quotes and (match := _TAG.match(self.text, start)):
            end: int | None = match.end()
        else:
            self._quotes = False
            end = self._find(">", start)
        if end is None:
            return Token("words", start, len(self.text), "")
        tail = self.text[max(start, end - _TAIL) : end]
        closed = tail.endswith("/>") and not _BARE_VALUE.search(tail)
        return Token("single" if closed else "opens", start, end, name)

    def end_of_raw(self, name: str, start: int) -> int:
        """Return the end of the content of an element with raw text."""
        match = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self.text, start)
        return match.start() if match else len(self.text)

    def _find(self, end: str, start: int) -> int | None:
        """Return the offset after the next occurrence of an end, if there is one."""
        if end in self._missing:
            return None
        index = self.text.find(end, start)
        if index < 0:
            self._missing.add(end)
            return None
        return index + len(end)
