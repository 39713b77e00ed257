"""The paragraphs, headings and table cells of Markdown, with the offset of each character in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from translucid.documents.markup.markdown_lines import plain_lines
from translucid.ground.errors import UserError

_LINE_END = re.compile(r"\r\n|\n|\r")
DEEPEST = 200
"""The largest depth of nested lists and quotes as markdown-it counts it: a list and its item are two."""
_INLINE = 20
"""The largest depth of nested links and images; deeper ones are read as plain text."""
Kind = Literal["text", "cell", "heading", "underlined", "title"]
"""`heading` is after `#`, `underlined` is a heading over a line, `title` is that of an admonition, in quotes."""


class Block(NamedTuple):
    """A text with marks."""

    content: str
    """The lines, without the markers of quotes and lists before each."""
    places: list[int]
    """The offset of each character in the file."""
    kind: Kind


def blocks(markdown: MarkdownIt, name: str, text: str, env: dict[str, Any], *, modules: bool) -> Iterator[Block]:
    """Yield the blocks of a file in order.

    Args:
        markdown: the parser.
        name: the file name for messages.
        text: the text of the file.
        env: gets the reference definitions of the document.
        modules: whether the file is MDX.

    Raises:
        UserError: lists and quotes are nested too deep.
    """
    # As the parser does by the CommonMark standard; its texts are searched for in these lines.
    text = text.replace("\0", "\ufffd")
    starts = [0, *map(re.Match.end, _LINE_END.finditer(text))]
    lines = _LINE_END.split(text)
    plain = plain_lines(lines, modules=modules)
    kind: Kind = "text"
    row, at = -1, 0
    for token in _tokens(markdown, name, "\n".join(line.text for line in plain), env):
        if token.type in ("td_open", "th_open"):
            kind = "cell"
        elif token.type == "heading_open":
            kind = "heading" if token.markup.startswith("#") else "underlined"
        elif token.type in ("td_close", "th_close", "heading_close"):
            kind = "text"
        if token.type != "inline" or not token.map or not token.content.strip():
            continue
        first = token.map[0]
        if kind == "cell":
            if first != row:
                row, at = first, 0
            # In the file, the bars of a cell are escaped.
            escaped = token.content.replace("|", "\\|")
            start = lines[first].find(escaped, at)
            if start < 0:
                continue
            at = start + len(escaped)
            offsets = [starts[first] + i for i in range(start, at) if not lines[first].startswith("\\|", i)]
            yield Block(token.content, offsets, kind)
        elif places := _places(token.content, lines[first : token.map[1]], starts[first : token.map[1]]):
            depths = [line.depth for line in plain[first : token.map[1]]]
            for start, end in _parts(token.content, depths):
                yield Block(token.content[start:end], places[start:end], "title" if plain[first].titled else kind)


def _parts(content: str, depths: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the parts of a paragraph whose lines are in the same admonition."""
    start = at = 0
    last = depths[0]
    for line, depth in zip(content.split("\n"), depths, strict=False):
        if depth != last:
            yield start, at - 1
            start, last = at, depth
        at += len(line) + 1
    yield start, len(content)


def _tokens(markdown: MarkdownIt, name: str, text: str, env: dict[str, Any]) -> list[Token]:
    markdown.options["maxNesting"] = DEEPEST
    try:
        tokens = markdown.parse(text, env)
    except RecursionError:
        raise UserError("is nested too deep", file=name) from None
    finally:
        markdown.options["maxNesting"] = _INLINE
    for token in tokens:
        # The parser silently omits deeper blocks, and the rest of the document.
        if token.type in ("blockquote_open", "list_item_open") and token.level >= DEEPEST - 1:
            line = token.map[0] + 1 if token.map else None
            what = f"has more lists and quotes in each other than can be read, {DEEPEST // 2} lists"
            raise UserError(what, file=name, line=line, fix="Indent it less.")
    return tokens


def _places(content: str, lines: list[str], starts: list[int]) -> list[int] | None:
    """Return the offset of each character of a paragraph or a heading; None if its lines differ from the file."""
    places: list[int] = []
    parts = content.split("\n")
    if len(parts) > len(lines):
        return None
    for part, line, start in zip(parts, lines, starts, strict=False):
        at = line.rfind(part.strip())
        if at < 0:
            return None
        at -= len(part) - len(part.lstrip())
        places += (start + max(0, at + k) for k in range(len(part)))
        places.append(start + len(line))  # of the line end
    return places[:-1]
