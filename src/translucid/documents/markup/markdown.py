"""Markdown: paragraphs, headings, list items, table cells, and the texts and titles of links and images.

Code, HTML blocks, front matter, reference definitions, directives, formulas and addresses do not change. The
translation of a paragraph of several lines is written in one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import unescape
from typing import Any

from translucid.data.languages import Languages
from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.markup.html_elements import VOID
from translucid.documents.markup.markdown_blocks import Block, Kind, blocks
from translucid.documents.markup.markdown_inline import Construct, constructs, parser, title_of
from translucid.documents.spans import BLANK_OF_HTML, Part, Span, Spans, spanned
from translucid.documents.splicing import TextFile
from translucid.documents.tagged_text import Side

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
        env: dict[str, Any] = {"modules": self._modules}
        markdown = parser()
        # All blocks first: a link may refer to a definition at the end of the file.
        for block in list(blocks(markdown, file.name, file.text, env, modules=self._modules)):
            self._add_block(block, constructs(markdown, block.content, env))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, each in one line, because a line end may begin another block."""
        lines = {number: replace(target, marked=target.marked.in_one_line) for number, target in targets.items()}
        return self._file.spliced(self._spans.edits(lines))

    def _add_block(self, block: Block, constructs: list[Construct]) -> None:
        """Add a block, and the titles and alternative texts in it."""
        self._add(block, (0, len(block.content)), constructs, "")
        for construct in constructs:
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

    def _add(self, block: Block, bounds: tuple[int, int], constructs: list[Construct], suffix: str) -> None:
        """Add a segment; `bounds`: its range in the block."""
        parts, position = [], bounds[0]
        for construct in constructs:
            if construct.start >= position:
                parts += [Part(position, construct.start), _part(block.content, construct)]
                position = construct.end
        parts.append(Part(position, bounds[1]))
        span = spanned(block.content, parts, _decoded, blank=BLANK_OF_HTML, folds=True)
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
        if not suffix and block.kind not in ("cell", "title"):
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
