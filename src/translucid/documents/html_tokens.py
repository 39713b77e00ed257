"""The tokens of HTML, as `html.parser` tells them apart, with their places."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import accumulate
from typing import Literal, NamedTuple

Kind = Literal["words", "opens", "closes", "single", "other"]
"""`single` is a tag such as `<br/>`; `other` a comment, a declaration or a processing instruction."""


class Token(NamedTuple):
    """What stands between two places of a text."""

    kind: Kind
    start: int
    end: int
    name: str
    """Of an element, in lower case; else empty."""


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text; one begins where the other ends."""
    parser = _Parser(text)
    parser.feed(text)
    parser.close()
    ends = [*(start for _, start, _ in parser.found[1:]), len(text)]
    return [Token(kind, start, end, name) for (kind, start, name), end in zip(parser.found, ends, strict=False)]


class _Parser(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[Kind, int, str]] = []
        self._starts = list(accumulate(map(len, text.split("\n")), lambda at, length: at + length + 1, initial=0))

    def _add(self, kind: Kind, name: str = "") -> None:
        line, column = self.getpos()
        self.found.append((kind, self._starts[line - 1] + column, name))

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._add("opens", tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._add("single", tag)

    def handle_endtag(self, tag: str) -> None:
        self._add("closes", tag)

    def handle_data(self, data: str) -> None:
        self._add("words")

    def handle_comment(self, data: str) -> None:
        self._add("other")

    def handle_decl(self, decl: str) -> None:
        self._add("other")

    def handle_pi(self, data: str) -> None:
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        self._add("other")
