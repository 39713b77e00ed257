"""Lines of Markdown in the form that CommonMark knows, one for each line of the file.

What documentation tools add is left out, or becomes a block of CommonMark that holds the same text: the indented text
of an admonition or a tab loses its indentation, a title becomes a heading, a definition an item of a list. Only the
structure is read from these lines; what is translated is looked up in the lines of the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_BEFORE = r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*"
"""Signs of quotes and lists."""
_FENCE = re.compile(rf"{_BEFORE}(`{{3,}}(?=[^`]*$)|~{{3,}})")
_NOT_TEXT = re.compile(
    r"[ \t>]*(?::{3,}.*|/{3,}[ \t]*(?:[\w-]+[ \t]*)?|\{\{[<%].*[>%]\}\}|\{%.*%\}|\([\w:.-]+\)=|%%.*"
    r"|-+8<-+.*|@?\[\[?_?(?:TOC|toc)_?\]?\]|\{:?toc\}|\{/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/\}"
    r"|\\[A-Za-z]+\*?(?:\{[^{}]*\}|\[[^\[\]]*\])*)[ \t]*"
    r"|(?:import|export)[ \t].*(?:[ \t]from[ \t]*['\"].*|;)[ \t]*"
)
"""Lines of directives, templates, targets, comments, TeX and modules, which programs know that read Markdown."""
_TITLED = re.compile(
    rf"(?P<before>{_BEFORE})(?:"
    r"(?:!!!|\?\?\?\+?|={3}[!+]?)(?:[ \t]+[\w-]+)*[ \t]+\"(?P<quoted>[^\"\\]*+(?:\\.[^\"\\]*+)*)\"[ \t]*"
    r"|/{3,}[ \t]*[\w-]+[ \t]*\|[ \t]*(?P<plain>.+)"
    r"|:{3,}[ \t]*[\w-]+\[(?P<bracketed>[^\[\]]*+(?:(?:\[(?!\[)[^\[\]]*+\]|\[\[[^\[\]]*+\]\])[^\[\]]*+)*)\].*"
    r"|:{3,}[ \t]*[\w-]+[ \t]+(?P<directive>[^\s{:][^{}=]*)"
    r"|\*\[[^\[\]]+\]:[ \t]*(?P<abbreviation>.+)"
    r"|\|[ \t]+(?P<line>[^|]*[^|\s])[ \t]*)"
)
"""Titles of admonitions, tabs and blocks; with them what an abbreviation is short for, and a line of a line block."""
_TITLES = "quoted", "plain", "bracketed", "directive", "abbreviation", "line"
_INDENTS = re.compile(
    rf"(?P<before>{_BEFORE})(?:!!!|\?\?\?\+?|={{3}}[!+]?(?=[ \t]+\"))(?:[ \t]+[\w-]+)*(?:[ \t]+\"[^\"]*\")?[ \t]*"
)
"""What holds the indented text below it."""
_DEFINITION = re.compile(r"([ \t>]*):(?=[ \t]+\S)")
_DELIMITERS = re.compile(r"[ \t>]*[|:-][ \t|:-]*-[ \t|:-]*")
"""The row of a table below its head."""
_REGIONS = (
    (re.compile(r"[ \t>]*\$\$"), re.compile(r".*\$\$")),
    (re.compile(r"[ \t>]*\\\[[ \t]*$"), re.compile(r"[ \t>]*\\\]")),
    (re.compile(r"[ \t>]*\\begin\{[A-Za-z]+\*?\}"), re.compile(r".*\\end\{[A-Za-z]+\*?\}")),
    (re.compile(r"[ \t>]*\{/\*(?!.*\*/)"), re.compile(r".*\*/\}[ \t]*$")),
    (re.compile(r"[ \t]*%%[ \t]*$"), re.compile(r"[ \t]*%%[ \t]*$")),
)
"""How formulas and comments of several lines begin and end."""
_MODULE = re.compile(r"import[ \t]*[ \t{*'\"]|export[ \t]*[ \t{*]")
_CODE = re.compile(
    r"import[ \t]+(?:\{|\*[ \t]+as\b)|export[ \t]+(?:const|let|var|async|default[ \t]+function|function)[ \t]"
)
"""How JavaScript begins: in MDX, where all such paragraphs are, and in Markdown, where it must be plain."""
_BRACES = re.compile(r"[{}()\[\]]")


class Line(NamedTuple):
    """A line as CommonMark reads it."""

    text: str
    titled: bool = False
    """It is a heading made of a title in quotes."""
    depth: int = 0
    """Of the admonitions and tabs that it is in: where that changes, a paragraph ends."""


def plain_lines(lines: Sequence[str], *, modules: bool) -> list[Line]:
    """Return the lines of a file in the form that CommonMark knows.

    Args:
        lines: of the file, without their ends.
        modules: it is MDX, in which paragraphs that begin with `import` or `export` are JavaScript.
    """
    return _Lines(lines, modules).plain


class _Lines:
    def __init__(self, lines: Sequence[str], modules: bool) -> None:
        self.lines, self.modules = lines, modules
        self.plain: list[Line] = []
        self.fence, self.fence_depth, self.fence_column = "", 0, 0
        self.indents: list[int] = []
        """Columns of the admonitions and tabs that are open."""
        self.table = False
        self.unclosed: set[int] = set()
        """Regions that are not closed any more: what looks like their beginning is text."""
        self._leave_out(_front_matter(lines))
        while len(self.plain) < len(lines):
            self._take(len(self.plain))

    def _leave_out(self, behind: int) -> None:
        """Leave out the lines up to a number."""
        self.plain += [Line("")] * (behind - len(self.plain))

    def _take(self, number: int) -> None:
        line = self._dedented(self.lines[number])
        if self._is_code(line):
            self.plain.append(Line(line, depth=len(self.indents)))
        elif end := self._region(number, line):
            self._leave_out(end)
        else:
            self.plain.append(self._text(number, line))

    def _dedented(self, line: str) -> str:
        """Return a line without the indentation of the admonitions it is in; one with less ends them."""
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
        """Whether a line is of fenced code, its fences among it."""
        mark = _FENCE.match(line)
        if not self.fence:
            if mark:
                self.fence, self.fence_depth, self.fence_column = mark[1], len(self.indents), mark.start(1)
            return bool(mark)
        # A fence that is indented by four columns or more is code, and so is one with words behind it.
        closes = mark and mark[1].startswith(self.fence) and mark.start(1) < self.fence_column + 4
        if mark and closes and not line[mark.end() :].strip():
            self.fence, self.fence_depth = "", 0
        return True

    def _region(self, number: int, line: str) -> int | None:
        """Return the number of the line behind a formula, a comment or a module that begins here; none if none does."""
        for kind, (begins, ends) in enumerate(_REGIONS):
            match = begins.match(line)
            if not match or kind in self.unclosed:
                continue
            if ends.match(line, match.end()):
                return number + 1
            for behind in range(number + 1, len(self.lines)):
                if ends.match(self.lines[behind]):
                    return behind + 1
            self.unclosed.add(kind)
        if (_MODULE if self.modules else _CODE).match(line):
            return self._behind_module(number)
        return None

    def _behind_module(self, number: int) -> int:
        """Return the number of the line behind JavaScript: the next empty one that is in no bracket."""
        depth, first_empty = 0, None
        for behind in range(number, len(self.lines)):
            line = self.lines[behind]
            if not line.strip():
                if depth <= 0:
                    return behind
                first_empty = first_empty or behind
            depth += sum(1 if bracket in "{([" else -1 for bracket in _BRACES.findall(line))
        return len(self.lines) if depth <= 0 or first_empty is None else first_empty

    def _text(self, number: int, line: str) -> Line:
        following = self.lines[number + 1] if number + 1 < len(self.lines) else ""
        if (definition := _DEFINITION.match(line)) and any(each.text.strip() for each in self.plain[-2:]):
            # Of the signs of a list, this one begins nothing else.
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
            title = next(filter(None, titled.group(*_TITLES)), "")
            return Line(f"{titled['before']}# {title}", titled["quoted"] is not None, depth)
        if indents:
            # An item of a list that begins with an empty line would hold nothing of what follows.
            return Line(f"{indents['before']}#" if indents["before"].strip() else "")
        if _NOT_TEXT.fullmatch(line):
            return Line("")
        return Line(line, depth=depth)


def _front_matter(lines: Sequence[str]) -> int:
    """Return how many lines the front matter has, YAML or TOML."""
    if lines[0].rstrip() not in ("---", "+++"):
        return 0
    ends = ("---", "...") if lines[0].startswith("-") else ("+++",)
    return next((i + 1 for i, line in enumerate(lines) if i and line.rstrip() in ends), 0)
