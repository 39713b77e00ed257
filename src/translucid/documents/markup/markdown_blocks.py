"""The paragraphs, headings and cells of Markdown, each character with its place in the file."""

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
"""Lists and quotes that may stand in each other, counted as markdown-it does: a list and its item are two."""
_INLINE = 20
"""Likewise of links and images; what is in more of them is read as plain text."""
Kind = Literal["text", "cell", "heading", "underlined", "title"]


class Block(NamedTuple):
    """A text with marks."""

    content: str
    """Its lines, without what stands before each in a quote or a list."""
    places: list[int]
    """Of each character, in the file."""
    kind: Kind
    """A cell of a table, a heading behind `#` or over a line, the title of an admonition in quotes, or else text."""


def blocks(markdown: MarkdownIt, name: str, text: str, env: dict[str, Any], *, modules: bool) -> Iterator[Block]:
    """Yield the blocks of a file in order.

    Args:
        markdown: finds them.
        name: of the file, for messages.
        text: of the file.
        env: takes the references of the document.
        modules: it is MDX.

    Raises:
        UserError: lists and quotes are nested too deep.
    """
    text = text.replace("\0", "\ufffd")  # as CommonMark wants it; what stands in a file of NUL has to be found again
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
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
            written = token.content.replace("|", "\\|")
            found = lines[first].find(written, at)
            if found < 0:
                continue
            at = found + len(written)
            within = [i for i in range(found, at) if not lines[first].startswith("\\|", i)]
            yield Block(token.content, [starts[first] + i for i in within], kind)
        elif places := _places(token.content, lines[first : token.map[1]], starts[first : token.map[1]]):
            depths = [line.depth for line in plain[first : token.map[1]]]
            for start, end in _parts(token.content, depths):
                yield Block(token.content[start:end], places[start:end], "title" if plain[first].titled else kind)


def _parts(content: str, depths: list[int]) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a paragraph begin and end whose lines are in the same admonition."""
    start = at = 0
    for (i, line), depth in zip(enumerate(content.split("\n")), depths, strict=False):
        if i and depth != depths[i - 1]:
            yield start, at - 1
            start = at
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
        # What is nested deeper than this, and the rest of the document with it, is not among the tokens.
        if token.type in ("blockquote_open", "list_item_open") and token.level >= DEEPEST - 1:
            line = token.map[0] + 1 if token.map else None
            what = f"has more lists and quotes in each other than can be read, {DEEPEST // 2} lists"
            raise UserError(what, file=name, line=line, fix="Indent it less.")
    return tokens


def _places(content: str, lines: list[str], starts: list[int]) -> list[int] | None:
    """Return the place of each character of a paragraph or a heading."""
    places: list[int] = []
    said = content.split("\n")
    for i, part in enumerate(said):
        if i >= len(lines):
            return None
        stripped = part.strip()
        at = lines[i].rfind(stripped)
        if at < 0:
            return None
        lead = len(part) - len(part.lstrip())
        places += [starts[i] + max(0, at - lead + k) for k in range(len(part))]
        if i + 1 < len(said):
            places.append(starts[i] + len(lines[i]))
    return places
