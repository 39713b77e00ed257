"""The paragraphs, headings and table cells of Markdown, with the offset of each character in the file.

The lines of the file are converted to CommonMark, from which only the structure is read; the text to translate is read
from the lines of the file. Extensions of documentation tools are omitted, or become a block of CommonMark with the same
text: the indented text of an admonition or a tab loses its indentation, a title becomes a heading, a definition or a
footnote becomes a list item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bitext.errors import UserError

_BEFORE = r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*"
"""The markers of quotes and lists."""
_FENCE = re.compile(rf"{_BEFORE}(`{{3,}}(?=[^`]*$)|~{{3,}})")
_NOT_TEXT = re.compile(
    r"[ \t>]*(?::{3,}.*|/{3,}[ \t]*(?:[\w-]+[ \t]*)?|\{\{[<%].*[>%]\}\}|\{%.*%\}|\([\w:.-]+\)=|%%.*"
    r"|-+8<-+.*|@?\[\[?_?(?:TOC|toc)_?\]?\]|\{:?toc\}|\{/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/\}"
    r"|\\[A-Za-z]+\*?(?:\{[^{}]*\}|\[[^\[\]]*\])*)[ \t]*"
    r"|(?:import|export)[ \t].*(?:[ \t]from[ \t]*['\"].*|;)[ \t]*"
)
"""Lines of directives, templates, link targets, comments, TeX and modules in the dialects of Markdown."""
_TITLED = re.compile(
    rf"(?P<before>{_BEFORE})(?:"
    r"(?:!!!|\?\?\?\+?|={3}[!+]?)(?:[ \t]+[\w-]+)*[ \t]+\"(?P<quoted>[^\"\\]*+(?:\\.[^\"\\]*+)*)\"[ \t]*"
    r"|/{3,}[ \t]*[\w-]+[ \t]*\|[ \t]*(?P<plain>.+)"
    r"|:{3,}[ \t]*[\w-]+\[(?P<bracketed>[^\[\]]*+(?:(?:\[(?!\[)[^\[\]]*+\]|\[\[[^\[\]]*+\]\])[^\[\]]*+)*)\].*"
    r"|:{3,}[ \t]*[\w-]+[ \t]+(?P<directive>[^\s{:][^{}=]*)"
    r"|\*\[[^\[\]]+\]:[ \t]*(?P<abbreviation>.+)"
    r"|\|[ \t]+(?P<line>[^|]*[^|\s])[ \t]*)"
)
"""Titles of admonitions, tabs and blocks; meanings of abbreviations; lines of a line block."""
_INDENTS = re.compile(
    rf"(?P<before>{_BEFORE})(?:!!!|\?\?\?\+?|={{3}}[!+]?(?=[ \t]+\"))(?:[ \t]+[\w-]+)*(?:[ \t]+\".*\")?[ \t]*"
)
"""The first line of a block whose text is indented below it."""
_DEFINITION = re.compile(r"([ \t>]*)(?:(?P<term>:)|\[\^[^\[\]\s]+\]:)(?=[ \t]+\S)")
"""The marker of a definition or a footnote."""
_DELIMITERS = re.compile(r"[ \t>]*[|:-][ \t|:-]*-[ \t|:-]*")
"""The row between the head and the body of a table."""
_REGIONS = (
    (re.compile(r"[ \t>]*\$\$"), re.compile(r".*\$\$")),
    (re.compile(r"[ \t>]*\\\[[ \t]*$"), re.compile(r"[ \t>]*\\\]")),
    (re.compile(r"[ \t>]*\\begin\{[A-Za-z]+\*?\}"), re.compile(r".*\\end\{[A-Za-z]+\*?\}")),
    (re.compile(r"[ \t>]*\{/\*(?!.*\*/)"), re.compile(r".*\*/\}[ \t]*$")),
    (re.compile(r"[ \t]*%%[ \t]*$"), re.compile(r"[ \t]*%%[ \t]*$")),
)
"""The beginnings and ends of formulas and comments of several lines."""
_EXPRESSION = -1
"""The number of expressions of MDX in the set of regions without an end."""
_MODULE = re.compile(r"import[ \t]*[ \t{*'\"]|export[ \t]*[ \t{*]")
_CODE = re.compile(
    r"import[ \t]+(?:\{|\*[ \t]+as\b)|export[ \t]+(?:const|let|var|async|default[ \t]+function|function)[ \t]"
)
"""The beginning of JavaScript: in MDX, where such paragraphs are always code, and in Markdown, where text may be."""
_OPENING, _CLOSING = re.compile(r"[{(\[]"), re.compile(r"[})\]]")


class Line(NamedTuple):
    """A line of CommonMark."""

    text: str
    titled: bool = False
    """Whether it is a heading made of a title in quotes."""
    depth: int = 0
    """The number of admonitions and tabs around the line; a paragraph ends where it changes."""


class _Lines:
    """The lines of a file in CommonMark, which are converted one after the other."""

    def __init__(self, lines: Sequence[str], *, modules: bool) -> None:
        """Convert lines without line ends; `modules`: whether it is MDX, where `import` begins JavaScript."""
        self.lines, self.modules = lines, modules
        self.plain: list[Line] = []
        self.expressions: list[tuple[int, int]] = []  # the first and the last line of those that span several
        self.fence, self.fence_depth, self.fence_column = "", 0, 0
        self.indents: list[int] = []  # the columns of the open admonitions and tabs
        self.table = False
        # Regions whose end does not occur in the rest of the file: their beginning is text.
        self.unclosed: set[int] = set()
        self._omit(_front_matter(lines))
        while len(self.plain) < len(lines):
            self._convert(len(self.plain))

    def _omit(self, end: int) -> None:
        self.plain += [Line("")] * (end - len(self.plain))

    def _convert(self, number: int) -> None:
        line = self._dedented(self.lines[number])
        if self._is_code(line):
            self.plain.append(Line(line, depth=len(self.indents)))
        elif end := self._region(number, line):
            self._omit(end)
        elif last := self._expression_end(number, line):
            self.expressions.append((number, last))
            self._omit(last + 1)
        else:
            self.plain.append(self._text(number, line))

    def _dedented(self, line: str) -> str:
        """Return a line without the indentation of the admonitions around it; less indentation ends them."""
        if not self.indents:
            return line
        body = line.lstrip(" \t")
        if not body:
            return ""
        column = len(line[: len(line) - len(body)].expandtabs(4))
        while self.indents and column < self.indents[-1] + 4:
            self.indents.pop()
        if len(self.indents) < self.fence_depth:
            self.fence, self.fence_depth = "", 0
        return " " * (column - 4 * len(self.indents)) + body

    def _is_code(self, line: str) -> bool:
        """Whether a line belongs to fenced code, including its fences."""
        fence = _FENCE.match(line)
        if not self.fence:
            if fence:
                self.fence, self.fence_depth, self.fence_column = fence[1], len(self.indents), fence.start(1)
            return bool(fence)
        # A fence that is indented by four columns or more, or followed by words, does not close the code.
        closes = fence and fence[1].startswith(self.fence) and fence.start(1) < self.fence_column + 4
        if fence and closes and not line[fence.end() :].strip():
            self.fence, self.fence_depth = "", 0
        return True

    def _region(self, number: int, line: str) -> int | None:
        """Return the index of the line after a formula, a comment or a module that begins here, if one does."""
        for region, (begins, ends) in enumerate(_REGIONS):
            match = begins.match(line)
            if not match or region in self.unclosed:
                continue
            if ends.match(line, match.end()):
                return number + 1
            for index in range(number + 1, len(self.lines)):
                if ends.match(self.lines[index]):
                    return index + 1
            self.unclosed.add(region)
        if (_MODULE if self.modules else _CODE).match(line):
            return self._after_module(number)
        return None

    def _expression_end(self, number: int, line: str) -> int | None:
        """Return the index of the last line of an expression of MDX that begins here and spans several lines."""
        if not self.modules or not line.lstrip(" \t").startswith("{") or _EXPRESSION in self.unclosed:
            return None
        depth = 0
        for index in range(number, len(self.lines)):
            depth += self.lines[index].count("{") - self.lines[index].count("}")
            if depth <= 0:
                return index if index > number else None
        self.unclosed.add(_EXPRESSION)
        return None

    def _after_module(self, number: int) -> int:
        """Return the index of the line after JavaScript: the next empty line outside of brackets."""
        depth, first_empty = 0, None
        for index in range(number, len(self.lines)):
            line = self.lines[index]
            if not line.strip():
                if depth <= 0:
                    return index
                first_empty = first_empty or index
            depth += len(_OPENING.findall(line)) - len(_CLOSING.findall(line))
        if depth > 0 and first_empty is not None:  # An unclosed bracket must not include the rest of the file.
            return first_empty
        return len(self.lines)

    def _text(self, number: int, line: str) -> Line:
        """Return a line of text in CommonMark."""
        following = self.lines[number + 1] if number + 1 < len(self.lines) else ""
        definition = _DEFINITION.match(line)
        if definition and (not definition["term"] or any(before.text.strip() for before in self.plain[-2:])):
            # `+` is the marker of a list that has no other meaning.
            line = f"{definition[1]}+{line[definition.end() :]}"
        self.table = bool(line.strip()) and (self.table or bool(_DELIMITERS.fullmatch(line)))
        in_table = self.table or bool(_DELIMITERS.fullmatch(following))
        titled = _TITLED.fullmatch(line)
        if titled and titled["line"] and in_table:
            titled = None
        depth = len(self.indents)
        indents = _INDENTS.fullmatch(line)
        if indents and ">" not in indents["before"]:
            self.indents.append(len(indents["before"].expandtabs(4)) + 4 * depth)
        if titled:
            return Line(f"{titled['before']}# {titled[titled.lastindex or 0]}", titled["quoted"] is not None, depth)
        if indents:
            # A list item that begins with an empty line would not contain the lines that follow.
            return Line(f"{indents['before']}#" if indents["before"].strip() else "")
        if _NOT_TEXT.fullmatch(line):
            return Line("")
        return Line(line, depth=depth)


def _front_matter(lines: Sequence[str]) -> int:
    """Return the number of lines of the front matter, which is YAML or TOML; 0 if there is none."""
    if lines[0].rstrip() not in ("---", "+++"):
        return 0
    ends = ("---", "...") if lines[0].startswith("-") else ("+++",)
    for i, line in enumerate(lines[1:], 1):
        if line.rstrip() in ends:
            return i + 1
    return 0


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

    `env` gets the reference definitions of the document; `modules`: whether the file is MDX.

    Raises:
        UserError: lists and quotes are nested too deep.
    """
    # As the parser does by the CommonMark standard; its texts are searched for in these lines.
    text = text.replace("\0", "\ufffd")
    starts = [0, *map(re.Match.end, _LINE_END.finditer(text))]
    lines = _LINE_END.split(text)
    converted = _Lines(lines, modules=modules)
    plain = converted.plain
    for first_line, last_line in converted.expressions:
        content = "\n".join(lines[first_line : last_line + 1])
        offsets: list[int] = []
        for i in range(first_line, last_line + 1):
            offsets += range(starts[i], starts[i] + len(lines[i]) + 1)
        yield Block(content, offsets[: len(content)], "expression")
    kind: Kind = "text"
    row, position = -1, 0
    commonmark = "\n".join(line.text for line in plain)
    for token in _tokens(markdown, name, commonmark, env):
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
