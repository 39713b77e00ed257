"""Markdown: paragraphs, headings, items, cells, and the texts and titles of links and images.

Code, HTML blocks, front matter, definitions of references, directives, formulas and addresses stay. A paragraph that
goes on over several lines is written in one.
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
    r"(https?://\S+)"  # stays
    r"|\\(?=[!-/:-@\[-`{-~]|\Z)|[`\[\]]|<(?=[A-Za-z/!?])|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~)"
    r"|&(?=#?\w+;)"
)
_BEGINS_BLOCK = re.compile(
    r"( *(?:\d{1,9}(?=[.)](?:\s|\Z)))?)"
    r"([.)](?<=\d.)|[-:|+=*#>][-:|+=*# ]*\Z|(?:#{1,6}|[-+*:~])(?=\s|\Z)|[>|]|!!!|\?{3}|={3}|:{3}|/{3}|\$\$|%%)"
)
"""The sign of a list, a quote, a heading, a table or the like, and what may stand before it."""
_CLOSES_HEADING = re.compile(r"(?:(?<=\s)|\A)#(?=#*\Z)")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)[^<>]*?(/?)>\Z", re.DOTALL)
_JSX_TAG = re.compile(r"<()([A-Za-z][\w.-]*).*?(/?)>\Z", re.DOTALL)


class Markdown:
    """A file of Markdown."""

    def __init__(self, name: str, file: TextFile) -> None:
        """Find its segments.

        Raises:
            UserError: lists and quotes are nested too deep.
        """
        self._file = file
        self._modules = name.lower().endswith(".mdx")
        self._hard_space = "&nbsp;" if "&nbsp;" in file.text else "\N{NO-BREAK SPACE}"
        self._spans = Spans(file.text)
        self.segments = SegmentList(file.name)
        self._line, self._at = 1, 0
        env: dict[str, Any] = {"modules": self._modules}
        markdown = parser()
        found = list(
            blocks(markdown, name, file.text, env, modules=self._modules)
        )  # all, so that the references are known
        for block in found:
            self._take(block, constructs(markdown, block.content, env))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`. A translation is written in one line, as a line end may begin another block."""
        lines = {number: replace(target, marked=target.marked.in_one_line) for number, target in targets.items()}
        return self._file.spliced(self._spans.edits(lines))

    def _take(self, block: Block, found: list[Construct]) -> None:
        """Take a paragraph, and the titles and alternative texts in it."""
        self._add(block, (0, len(block.content)), found, "")
        for one in found:
            raw = block.content[one.start : one.end]
            if one.label:
                refers = raw.endswith("]")
                if one.kind == "image" and not refers:
                    self._add(block, one.label, list(one.inside), ", image")
                close = one.label[1] if one.kind == "image" else one.start
                if title := title_of(block.content[close : one.end]):
                    self._add(block, (close + title[0], close + title[1]), [], ", title")

    def _add(self, block: Block, within: tuple[int, int], found: list[Construct], what: str) -> None:
        parts, at = [], within[0]
        for one in found:
            if one.start >= at:
                parts += [Part(at, one.start), _part(block.content, one)]
                at = one.end
        parts.append(Part(at, within[1]))
        span = spanned(block.content, parts, _decoded, blank=BLANK_OF_HTML, folds=True)
        if not span:
            return
        marks = tuple(
            replace(mark, raw=self._raw(block, *place)) if mark.raw == block.content[slice(*place)] else mark
            for mark, place in zip(span.marked.marks, span.places, strict=True)
        )
        placed = Span(
            *_in_file(block, span.start, span.end),
            replace(span.marked, marks=marks),
            tuple(_in_file(block, *place) for place in span.places),
        )
        if placed.start > self._at:
            self._line += len(re.findall(r"\r\n|\n|\r", self._file.text[self._at : placed.start]))
            self._at = placed.start
        quote = self._file.text[placed.start - 1] if what == ", title" else ""
        write = partial(_written, kind=block.kind, quote=quote, hard_space=self._hard_space, modules=self._modules)
        first = (
            None
            if what or block.kind in ("cell", "title")
            else partial(_begun, write=write, own=_sign(block.content, span.start))
        )
        self._spans.add(len(self.segments), placed, write, first)
        self.segments.add(Segment(placed.marked, f"line {self._line}{what}"))

    def _raw(self, block: Block, start: int, end: int) -> str:
        """Return a mark as it is written: in one line, unless it is a line break."""
        content = block.content[start:end]
        if "\n" not in content:
            return self._file.text[slice(*_in_file(block, start, end))]
        if content.strip(" \t\n\\"):
            return content.replace("\n", " ")
        # A line break: with it what stands before the next line, such as the sign of a quote.
        return self._file.text[block.places[start] : block.places[end] if end < len(block.places) else None]


def _in_file(block: Block, start: int, end: int) -> tuple[int, int]:
    return block.places[start], block.places[end - 1] + 1


def _part(content: str, one: Construct) -> Part:
    """Return the mark for what was found."""
    raw = content[one.start : one.end]
    if one.kind == "html_inline":
        tag = _TAG.match(raw) or _JSX_TAG.match(raw)
        if not tag or tag[3] or tag[2].lower() in VOID:
            return Part(one.start, one.end, Side.alone, spaces=bool(tag and tag[2].lower() == "br"))
        return Part(one.start, one.end, Side.closes if tag[1] else Side.opens, f"<{tag[2]}")
    name, _, side = one.kind.rpartition("_")
    if side == "open":
        return Part(one.start, one.end, Side.opens, name)
    if side == "close":
        refers = one.label and raw in ("]", "][]")
        written = f"][{' '.join(content[slice(*one.label)].split())}]" if one.label and refers else None
        return Part(one.start, one.end, Side.closes, name, raw=written)
    breaks = one.kind == "hardbreak"
    return Part(one.start, one.end, Side.alone, word=one.kind in ("code_inline", "kept"), spaces=breaks)


def _decoded(raw: str) -> str:
    return _ESCAPED.sub(lambda match: match[1] or unescape(match[2]), raw)


def _begun(words: str, write: Callable[[str], str], own: str) -> str:
    """Write words at the beginning of a line, where a sign may begin a block, unless the source has it there, too."""
    sign = _BEGINS_BLOCK.match(words)
    if not sign or sign[2] == own:
        return write(words)
    return f"{sign[1]}\\{sign[2]}{write(words[sign.end() :])}"


def _sign(content: str, start: int) -> str:
    """Return what a paragraph begins with that would begin a block elsewhere."""
    sign = _BEGINS_BLOCK.match(content[start : start + 40])
    return sign[2] if sign else ""


def _written(words: str, kind: Kind, quote: str, hard_space: str, modules: bool) -> str:
    """Escape what would mean something in Markdown."""
    if quote:
        return re.sub(rf"[\\{re.escape(quote)}{')' if quote == '(' else ''}]", r"\\\g<0>", words)

    def escaped(match: re.Match[str]) -> str:
        return match[1] or ("&amp;" if match[0] == "&" else f"\\{match[0]}")

    words = _SPECIAL.sub(escaped, words).replace("\xa0", hard_space)
    if modules:
        words = re.sub(r"(?<!\\)[<{]", r"\\\g<0>", words)
    if kind == "heading":
        return _CLOSES_HEADING.sub(r"\\#", words)
    if kind == "title":
        return words.replace('"', "”")  # there is no escape for it
    return words.replace("|", "\\|") if kind in ("cell", "underlined") else words


def read(name: str, content: bytes, languages: Languages) -> Markdown:
    """Take a file apart.

    Raises:
        UserError: it is not UTF-8, or nested too deep.
    """
    return Markdown(name, TextFile.of(name, content))
