"""The tokens of HTML with their places, as a browser tells them apart.

`html.parser` takes time that grows with the square of unclosed comments, tags and quotes, and holds the interpreter
meanwhile. Here every character is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from translucid.ground.cancellation import between_steps

Kind = Literal["words", "opens", "closes", "single", "other"]
"""`single` is a tag such as `<br/>`; `other` a comment, a declaration or a processing instruction."""

_RAW = frozenset({"script", "style"})
"""Elements whose content is text up to their end tag, whatever stands in it."""
_BEGINS = re.compile(r"<[A-Za-z/!?]")
"""What may be something else than words; any other `<` is a character."""
_NAME = re.compile(r"</?([A-Za-z][^\s/>\0]*)")
_VALUE = r"\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)"
_TAG = re.compile(
    r"<[A-Za-z][^\s/>\0]*+"
    r"(?:[\s/\0]++"
    # A name of an attribute; a value, whose quotes may hold `>`. A quote without its partner is part of a name.
    rf"|(?:[^\s/>=\0]++|=)(?:{_VALUE}|(?!{_VALUE}))"
    r")*>"
)
_BARE_VALUE = re.compile(r"(?:(?<![^\s\"'>])[^\s\"'>=]*+=|=\s++)[^\s\"'>]+/>\Z")
"""The end of `<a href=x/>`, whose slash belongs to the value."""
_TAIL = 300
"""Characters at the end of a tag in which such a value is looked for."""


class Token(NamedTuple):
    """What stands between two places of a text."""

    kind: Kind
    start: int
    end: int
    name: str
    """Of an element, in lower case; else empty."""


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text; one begins where the other ends.

    Raises:
        Cancelled: nobody wants them any more.
    """
    scanner = _Scanner(text)
    at = 0
    while at < len(text):
        between_steps()
        begins = _BEGINS.search(text, at)
        start = begins.start() if begins else len(text)
        if start > at:
            yield Token("words", at, start, "")
        if begins is None:
            return
        token = scanner.token(start)
        yield token
        at = token.end
        if token.kind == "opens" and token.name in _RAW:
            end = scanner.end_of_raw(token.name, at)
            if end > at:
                yield Token("words", at, end, "")
            at = end


class _Scanner:
    """Finds where tokens end; what was looked for in vain once is not looked for again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._missing: set[str] = set()
        """Ends that do not come any more."""
        self._quotes = True
        """Whether `>` in quotes is part of a tag. A quote that is not closed would swallow the rest of the text."""

    def token(self, at: int) -> Token:
        """Return the token that begins with the `<` at a place; one that never ends is words, up to the end."""
        name = _NAME.match(self.text, at)
        if name and self.text[at + 1] != "/":
            return self._start_tag(at, name[1].lower())
        end = self._special_end(at) or self._find(">", at)
        if end is None:  # somebody wrote the sign and meant no tag
            return Token("words", at, len(self.text), "")
        return Token("closes" if name else "other", at, end, name[1].lower() if name else "")

    def _special_end(self, at: int) -> int | None:
        """Return where a comment or a CDATA section ends; None if it is none, or is not closed."""
        if self.text.startswith("<!--", at):
            empty = next((one for one in ("<!-->", "<!--->") if self.text.startswith(one, at)), None)
            return at + len(empty) if empty else self._find("-->", at + 4)
        return self._find("]]>", at) if self.text.startswith("<![CDATA[", at) else None

    def _start_tag(self, at: int, name: str) -> Token:
        match = _TAG.match(self.text, at) if self._quotes else None
        if match is None:
            self._quotes = False
        end = match.end() if match else self._find(">", at)
        if end is None:
            return Token("words", at, len(self.text), "")
        tail = self.text[max(at, end - _TAIL) : end]
        closed = tail.endswith("/>") and not _BARE_VALUE.search(tail)
        return Token("single" if closed else "opens", at, end, name)

    def end_of_raw(self, name: str, at: int) -> int:
        """Return where the content of an element ends whose tags are no tags."""
        match = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self.text, at)
        return match.start() if match else len(self.text)

    def _find(self, end: str, at: int) -> int | None:
        """Return the place behind the next of an end; None if there is no more."""
        if end in self._missing:
            return None
        place = self.text.find(end, at)
        if place < 0:
            self._missing.add(end)
            return None
        return place + len(end)
