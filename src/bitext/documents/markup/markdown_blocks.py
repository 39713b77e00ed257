"""The paragraphs, headings and table cells of Markdown, with the offset of each character in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bitext.documents.markup.markdown_lines import plain_lines
from bitext.errors import UserError

_LINE_END = re.compile(r"\r\n|\n|\r")
DEEPEST = 200
"""The largest depth of nested lists and quotes as markdown-it counts it: a list and its item are two."""
_INLINE = 20
"""The largest depth of nested links and images; deeper ones are read as plain text."""
Kind = Literal["text", "cell", "heading", "underlined", "title", "expression"]
"""`expression` is one of MDX over several lines. `heading` is after `#`, `underlined` is a heading over a line; `title`
is that of an admonition, in quotes."""


class Block(NamedTuple):
    """A text with marks."""

    content: str
    """The lines, without the markers of quotes and lists before each."""
    offsets: list[int]
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
    plain, expressions = plain_lines(lines, modules=modules)
    for first_line, last_line in expressions:
        content = "\n".join(lines[first_line : last_line + 1])
        offsets: list[int] = []
        for i in range(first_line, last_line + 1):
            offsets += range(starts[i], starts[i] + len(lines[i]) + 1)
        yield Block(content, offsets[: len(content)], "expression")
    kind: Kind = "text"
    row, position = -1, 0
    for token in _tokens(markdown, name, "\n".join(line.text for line in plain), env):
        if token.type in ("td_open", "th_open"):
            kind = "cell"
        elif token.type == "heading_open":
            kind = "heading" if token.markup.startswith("#") else "underlined"
        elif token.type in ("td_close", "th_close", "heading_close"):
            kind = "text"
        if token.type != "inline" or not token.map or not token.content.strip():
            continue
        first_line = token.map[0]
        if kind == "cell":
            if first_line != row:
                row, position = first_line, 0
            # In the file, the bars of a cell are escaped.
            escaped = token.content.replace("|", "\\|")
            start = lines[first_line].find(escaped, position)
            if start < 0:
                continue
            position = start + len(escaped)
            offsets = [
                starts[first_line] + i for i in range(start, position) if not lines[first_line].startswith("\\|", i)
            ]
            yield Block(token.content, offsets, kind)
        elif paragraph_offsets := _offsets(
            token.content, lines[first_line : token.map[1]], starts[first_line : token.map[1]]
        ):
            depths = [line.depth for line in plain[first_line : token.map[1]]]
            for start, end in _parts(token.content, depths):
                yield Block(
                    token.content[start:end],
                    paragraph_offsets[start:end],
                    "title" if plain[first_line].titled else kind,
                )


def _parts(content: str, depths: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the parts of a paragraph whose lines are in the same admonition."""
    start = position = 0
    current_depth = depths[0]
    for line, depth in zip(content.split("\n"), depths, strict=False):
        if depth != current_depth:
            yield start, position - 1
            start, current_depth = position, depth
        position += len(line) + 1
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
            what = f"has lists and quotes nested more than {DEEPEST // 2} levels deep"
            raise UserError(what, file=name, line=line, fix="Indent it less.")
    return tokens


def _offsets(content: str, lines: list[str], starts: list[int]) -> list[int] | None:
    """Return the offset of each character of a paragraph or a heading; None if its lines differ from the file."""
    offsets: list[int] = []
    content_lines = content.split("\n")
    if len(content_lines) > len(lines):
        return None
    for content_line, line, start in zip(content_lines, lines, starts, strict=False):
        offset = line.rfind(content_line.strip())
        if offset < 0:
            return None
        offset -= len(content_line) - len(content_line.lstrip())
        offsets += (start + max(0, offset + k) for k in range(len(content_line)))
        offsets.append(start + len(line))  # of the line end
    return offsets[:-1]
