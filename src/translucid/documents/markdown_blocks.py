"""The paragraphs, headings and cells of Markdown, each character with its place in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

_LINE_END = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_FORMULA = re.compile(r"[ \t>]*\$\$")
_NOT_TEXT = re.compile(
    r"[ \t>]*(?::{3,}.*|\{\{[<%].*[>%]\}\}|\{%.*%\}|\([\w:.-]+\)=|%%.*|(?:!!!|\?\?\?\+?)[ \t].*)[ \t]*"
    r"|(?:import|export)[ \t].*(?:[ \t]from[ \t]*['\"].*|;)[ \t]*"
)
"""Lines of directives, templates, targets and modules, which programs know that read Markdown."""


class Block(NamedTuple):
    """A text with marks."""

    content: str
    """Its lines, without what stands before each in a quote or a list."""
    places: list[int]
    """Of each character, in the file."""
    cell: bool
    """Of a table."""


def blocks(markdown: MarkdownIt, text: str, env: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of a file in order.

    Args:
        markdown: finds them.
        text: of the file.
        env: takes the references of the document.
    """
    text = text.replace("\0", "\ufffd")  # as CommonMark wants it; what stands in a file of NUL has to be found again
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    lines = _LINE_END.split(text)
    cell, row, at = False, -1, 0
    for token in markdown.parse("\n".join(_cleared(lines)), env):
        if token.type in ("td_open", "th_open"):
            cell = True
        elif token.type in ("td_close", "th_close"):
            cell = False
        if token.type != "inline" or not token.map or not token.content.strip():
            continue
        first = token.map[0]
        if cell:
            if first != row:
                row, at = first, 0
            written = token.content.replace("|", "\\|")
            found = lines[first].find(written, at)
            if found < 0:
                continue
            at = found + len(written)
            within = [i for i in range(found, at) if not (lines[first][i] == "\\" and lines[first][i + 1] == "|")]
            yield Block(token.content, [starts[first] + i for i in within], True)
        elif places := _places(token.content, lines[first : token.map[1]], starts[first : token.map[1]]):
            yield Block(token.content, places, False)


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


def _cleared(lines: list[str]) -> Iterator[str]:
    """Yield lines, those empty that are no Markdown: front matter, directives, formulas."""
    front = _front_matter(lines)
    fence, formula = "", False
    for i, line in enumerate(lines):
        if i < front:
            yield ""
            continue
        mark = _FENCE.match(line)
        if mark and not formula and (not fence or (mark[1].startswith(fence) and not line[mark.end() :].strip())):
            fence = "" if fence else mark[1]
        elif not fence and (begins := _FORMULA.match(line)):
            formula = not formula and "$$" not in line[begins.end() :]
            yield ""
            continue
        yield "" if not fence and (formula or _NOT_TEXT.fullmatch(line)) else line


def _front_matter(lines: list[str]) -> int:
    """Return how many lines the front matter has, YAML or TOML."""
    if lines[0].rstrip() not in ("---", "+++"):
        return 0
    ends = ("---", "...") if lines[0].startswith("-") else ("+++",)
    return next((i + 1 for i, line in enumerate(lines) if i and line.rstrip() in ends), 0)
