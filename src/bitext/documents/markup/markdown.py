"""Markdown: paragraphs, headings, list items, table cells, and the texts and titles of links and images.

Code, HTML blocks, front matter, reference definitions, directives, formulas and addresses do not change. The
translation of a paragraph of several lines is written in one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from html import escape, unescape
from typing import Any
from urllib.parse import unquote

from bitext.documents.document import Segment, SegmentList, Target
from bitext.documents.markup.html_elements import VOID
from bitext.documents.markup.markdown_blocks import Block, Kind, blocks
from bitext.documents.markup.markdown_inline import Construct, constructs, parser, texts_in_expression, title_of
from bitext.documents.spans import BLANK_OF_HTML, Part, Span, Spans, TextFile, spanned
from bitext.documents.tagged_text import Side, TaggedText
from bitext.languages import Languages
from bitext.protected_spans import Edit

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])|(&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});)")
_SPECIAL = re.compile(
    r"(https?://[^\s<`]+)"  # not escaped
    r"|\\(?=[!-/:-@\[-`{-~]|\Z)|[`\[\]]|<(?=[A-Za-z/!?])|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~)"
    r"|&(?=#?\w+;)"
)
_BEGINS_BLOCK = re.compile(
    r"( *(?:\d{1,9}(?=[.)](?:\s|\Z)))?)"
    r"([.)](?<=\d.)|[-:|+=*#>][-:|+=*# ]*\Z|(?:#{1,6}|[-+*:~])(?=\s|\Z)|[>|]|!!!|\?{3}|={3}|:{3}|/{3}|\$\$|%%)"
)
"""The marker of a list item, a quote, a heading, a table or the like, and the digits or spaces before it."""
_CLOSES_HEADING = re.compile(r"(?:(?<=\s)|\A)#(?=#*\Z)")
_ANCHOR = re.compile(r"\{[^{}\n]*#[^{}\n]+\}[ \t]*\Z")
_LETTER = re.compile(r"(?<!\w)[^\W\d_]\Z")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_LINK = re.compile(
    r"(?:\]\([ \t]*<?|\bhref=[\"']|^[ \t>]*\[[^\[\]\n]+\]:[ \t]*<?)#(?P<anchor>[^\s<>()\[\]\"'`]+)(?=[\s>)\"']|\Z)"
)
"""A link to an anchor of the same file, in Markdown, in HTML, or the definition of a reference."""
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)[^<>]*?(/?)>\Z", re.DOTALL)
_JSX_TAG = re.compile(r"<()([A-Za-z][\w.-]*).*?(/?)>\Z", re.DOTALL)


class Markdown:
    """A file of Markdown."""

    def __init__(self, file: TextFile) -> None:
        """Parse the segments.

        Raises:
            UserError: lists and quotes are nested too deep.
        """
        self._file = file
        self._modules = file.name.lower().endswith(".mdx")
        self._hard_space = file.hard_space
        self._spans = Spans(file.text)
        self.segments = SegmentList(file.name)
        self._line, self._line_offset = 1, 0
        self._headings: list[tuple[int | None, TaggedText]] = []  # the number of the segment, and the source
        env: dict[str, Any] = {"modules": self._modules}
        markdown = parser()
        # All blocks first: a link may refer to a definition at the end of the file.
        found = blocks(markdown, file.name, file.text, env, modules=self._modules)
        for block in sorted(found, key=lambda block: block.offsets[0]):
            if block.kind == "expression":
                self._add_expression(block, 0, len(block.content))
                continue
            first = len(self.segments)
            self._add_block(block, constructs(markdown, block.content, env))
            if block.kind in ("heading", "underlined"):
                self._add_heading(block, first)
        self._links = list(_links(file.text)) if self._headings else []

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, each in one line, because a line end may begin another block."""
        lines = {number: replace(target, marked=target.marked.in_one_line) for number, target in targets.items()}
        return self._file.spliced(self._spans.edits(lines, self._moved_links(lines)))

    def _moved_links(self, targets: Mapping[int, Target]) -> Iterator[Edit]:
        """Yield the edits of links to headings, whose anchors are made from their text."""
        old, new = _Anchors(), _Anchors()
        moved: dict[str, str] = {}
        for number, source in self._headings:
            text = source if number is None or number not in targets else targets[number].marked
            before, after = old.add(source), new.add(text)
            if before != after:
                moved.setdefault(before, after)
        for start, end in self._links if moved else ():
            anchor = moved.get(unquote(self._file.text[start:end]))
            if anchor is not None:
                yield Edit(start, end, anchor)

    def _add_block(self, block: Block, constructs: list[Construct]) -> None:
        """Add a block, and the titles and alternative texts in it."""
        if self._modules:
            constructs = [_with_letter(block.content, construct) for construct in constructs]
        self._add(block, (0, len(block.content)), constructs, "")
        for construct in constructs:
            if self._modules and construct.kind == "kept" and block.content[construct.end - 1] == "}":
                brace = block.content.index("{", construct.start)
                self._add_expression(block._replace(kind="expression"), brace, construct.end)
            if not construct.label:
                continue
            close = construct.start
            if construct.kind == "image":
                close = construct.label[1]
                # The text of a reference such as `![text]` is also its name, which must not change.
                if block.content[construct.end - 1] != "]":
                    self._add(block, construct.label, list(construct.inside), ", image")
            if title := title_of(block.content[close : construct.end]):
                self._add(block, (close + title[0], close + title[1]), [], ", title")

    def _add_expression(self, block: Block, start: int, end: int) -> None:
        """Add the texts of the elements in an expression of MDX."""
        for bounds, inside in texts_in_expression(block.content, start, end):
            words, position = "", bounds[0]
            for construct in inside:
                words += block.content[position : construct.start]
                position = construct.end
            words += block.content[position : bounds[1]]
            if "{" not in words and "}" not in words:  # else it is nested too deep to be sure
                self._add(block, bounds, inside, "")

    def _add_heading(self, block: Block, number: int) -> None:
        """Remember a heading whose anchor is made from its text; one with `{#id}` has that anchor."""
        if _ANCHOR.search(block.content):
            return
        if number < len(self.segments):
            self._headings.append((number, self.segments[number].source))
        else:
            self._headings.append((None, TaggedText(block.content)))

    def _add(self, block: Block, bounds: tuple[int, int], constructs: list[Construct], suffix: str) -> None:
        """Add a segment; `bounds`: its range in the block."""
        parts, position = [], bounds[0]
        for construct in constructs:
            if construct.start >= position:
                parts += [Part(position, construct.start), _part(block.content, construct)]
                position = construct.end
        parts.append(Part(position, bounds[1]))
        decode = unescape if block.kind == "expression" else _decoded
        span = spanned(block.content, parts, decode, blank=BLANK_OF_HTML, folds=True)
        if not span:
            return
        marks, mark_spans = [], []
        for mark, (mark_start, mark_end) in zip(span.marked.marks, span.mark_spans, strict=True):
            if mark.raw == block.content[mark_start:mark_end]:
                mark = replace(mark, raw=self._raw(block, mark_start, mark_end))
            marks.append(mark)
            mark_spans.append(_in_file(block, mark_start, mark_end))
        start, end = _in_file(block, span.start, span.end)
        if start > self._line_offset:
            self._line += len(re.findall(r"\r\n|\n|\r", self._file.text[self._line_offset : start]))
            self._line_offset = start
        quote = self._file.text[start - 1] if suffix == ", title" else ""
        write = partial(_written, kind=block.kind, quote=quote, hard_space=self._hard_space, modules=self._modules)
        write_first = None
        if not suffix and block.kind not in ("cell", "title", "expression"):
            marker = _BEGINS_BLOCK.match(block.content[span.start : span.start + 40])
            write_first = partial(_begun, write=write, source_marker=marker and marker[2])
        marked = replace(span.marked, marks=tuple(marks))
        self._spans.add(len(self.segments), Span(start, end, marked, tuple(mark_spans)), write, write_first)
        self.segments.add(Segment(marked, f"line {self._line}{suffix}"))

    def _raw(self, block: Block, start: int, end: int) -> str:
        """Return the text to write for a mark: in one line, unless it is a line break."""
        content = block.content[start:end]
        if "\n" not in content:
            return self._file.text[slice(*_in_file(block, start, end))]
        if content.strip(" \t\n\\"):
            return content.replace("\n", " ")
        # A line break includes the beginning of the next line, such as the marker of a quote.
        return self._file.text[block.offsets[start] : block.offsets[end] if end < len(block.offsets) else None]


def _with_letter(content: str, construct: Construct) -> Construct:
    """Return an expression with the letter before it, as in `v{version}`."""
    if construct.kind != "kept" or content[construct.start] != "{":
        return construct
    letter = _LETTER.search(content, max(0, construct.start - 2), construct.start)
    return construct._replace(start=letter.start()) if letter else construct


class _Anchors:
    """The anchors of headings, as GitHub and most other programs make them; equal ones are numbered."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, heading: TaggedText) -> str:
        """Return the anchor of the next heading."""
        text = ""
        for part in heading.parts:
            if isinstance(part, str):
                text += part
            elif part.raw.startswith("`"):
                text += part.raw.strip("`")
        anchor = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        count = self.counts.get(anchor, 0)
        self.counts[anchor] = count + 1
        return f"{anchor}-{count}" if count else anchor


def _links(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the anchors in links within the file, except in fenced code."""
    fence, offset = "", 0
    for line in text.splitlines(keepends=True):
        if match := _FENCE.match(line):
            if not fence:
                fence = match[1]
            elif match[1].startswith(fence):
                fence = ""
        elif not fence:
            for link in _LINK.finditer(line):
                yield offset + link.start("anchor"), offset + link.end("anchor")
        offset += len(line)


def _in_file(block: Block, start: int, end: int) -> tuple[int, int]:
    return block.offsets[start], block.offsets[end - 1] + 1


def _part(content: str, construct: Construct) -> Part:
    """Return the mark for a construct."""
    start, end, kind, label, _ = construct
    raw = content[start:end]
    if kind == "html_inline":
        tag = _TAG.match(raw) or _JSX_TAG.match(raw)
        if not tag or tag[3] or tag[2].lower() in VOID:
            return Part(start, end, Side.alone, spaces=bool(tag and tag[2].lower() == "br"))
        return Part(start, end, Side.of_tag(closes=tag[1]), f"<{tag[2]}")
    name, _, side = kind.rpartition("_")
    if side == "open":
        return Part(start, end, Side.opens, name)
    if side == "close":
        rewritten = None
        # `[text]` becomes `[translation][text]`, so that it still refers to the same definition.
        if label and raw in ("]", "][]"):
            rewritten = f"][{' '.join(content[slice(*label)].split())}]"
        return Part(start, end, Side.closes, name, raw=rewritten)
    return Part(start, end, Side.alone, word=kind in ("code_inline", "kept"), spaces=kind == "hardbreak")


def _decoded(raw: str) -> str:
    return _ESCAPED.sub(lambda match: match[1] or unescape(match[2]), raw)


def _begun(words: str, write: Callable[[str], str], source_marker: str | None) -> str:
    """Encode words at the beginning of a line; a block marker is escaped, unless the source begins with it."""
    marker = _BEGINS_BLOCK.match(words)
    if not marker or marker[2] == source_marker:
        return write(words)
    return f"{marker[1]}\\{marker[2]}{write(words[marker.end() :])}"


def _written(words: str, kind: Kind, quote: str, hard_space: str, modules: bool) -> str:
    """Escape the characters of words that have a meaning in Markdown; `quote`: the one around a title."""
    if quote:
        quotes = re.escape("()" if quote == "(" else quote)
        return re.sub(rf"[\\{quotes}]", r"\\\g<0>", words)
    if kind == "expression":
        return escape(words, quote=False).replace("{", "&#123;").replace("}", "&#125;").replace("\xa0", hard_space)
    words = _SPECIAL.sub(_escaped, words).replace("\xa0", hard_space)
    if modules:
        words = re.sub(r"(?<!\\)[<{]", r"\\\g<0>", words)
    if kind == "heading":
        return _CLOSES_HEADING.sub(r"\\#", words)
    if kind == "title":
        return words.replace('"', "”")  # Such a title has no escape for it.
    if kind in ("cell", "underlined"):
        return words.replace("|", "\\|")
    return words


def _escaped(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    return "&amp;" if match[0] == "&" else f"\\{match[0]}"


def read(name: str, content: bytes, languages: Languages) -> Markdown:
    """Parse a file.

    Raises:
        UserError: the file is not UTF-8, or nested too deep.
    """
    return Markdown(TextFile.of(name, content))
