"""HTML, whole pages and fragments: the text of its blocks and some attributes are segments, inline elements are marks.

Elements whose text is never translated, and those with `translate="no"`, stay; inside a sentence they are marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple

from translucid.data.languages import Languages, usual_code
from translucid.documents.document import MOST_PARTS, Segment, SegmentList, Target, TooManyParts
from translucid.documents.markup.html_elements import IMPLIED, VOID, Attribute, Tag, is_inline
from translucid.documents.markup.html_tokens import Token, tokens
from translucid.documents.spans import BLANK_OF_HTML, DIRECTION_OF_HTML, Part, Span, Spans, spanned
from translucid.documents.splicing import Edit, TextFile
from translucid.documents.tagged_text import Side
from translucid.ground.errors import UserError

DEEPEST = 500
"""Elements that may stand in each other."""
_TEMPLATE = r"\{%[^{%]*+(?:(?:\{(?!%)|%(?!\}))[^{%]*+)*%\}|\{#[^{#]*+(?:(?:\{(?!#)|#(?!\}))[^{#]*+)*#\}"
"""It ends before the next one begins, so that a thousand that are never closed are not each looked for to the end."""
_SIGNS = re.compile(f"{_TEMPLATE}|{DIRECTION_OF_HTML.pattern}", re.IGNORECASE)
_CHARSET = re.compile(
    rb"<meta\b[^>]{0,200}?\bcharset\s*=\s*[\"']?\s*([\w-]+)|\A\s*<\?xml\b[^>]{0,100}?encoding=[\"']([\w-]+)",
    re.IGNORECASE,
)
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class _Open(NamedTuple):
    """An element that is not closed yet."""

    name: str
    translated: bool
    """Whether what is in it is."""
    start: int | None = None
    """Of its tag, if it becomes one mark as a whole."""


class Html:
    """A page or a fragment."""

    def __init__(self, name: str, file: TextFile, languages: Languages) -> None:
        """Find its segments.

        Raises:
            UserError: its elements are nested too deep.
        """
        self._name, self._file, self._language = name, file, languages[1]
        self._spans = Spans(file.text)
        self._hard_space = "&nbsp;" if "&nbsp;" in file.text else "\N{NO-BREAK SPACE}"
        self._root: list[Attribute] = []
        self._open: list[_Open] = []
        self._parts: list[Part] = []
        self._line, self._at = 1, 0
        self.segments = SegmentList(name)
        for token in tokens(file.text):
            getattr(self, f"_{token.kind}")(token)
            if len(self._parts) > MOST_PARTS:
                raise TooManyParts
        self._close(0, len(file.text))
        self._block()

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`. The language that the root element names becomes the target's, if that is known."""
        edits = self._spans.edits(targets)
        if edits and self._language and (code := usual_code(self._language)):
            edits += [Edit(one.start, one.start + len(one.value), code) for one in self._root]
        return self._file.spliced(edits)

    @property
    def _translated(self) -> bool:
        return self._open[-1].translated if self._open else True

    def _words(self, token: Token) -> None:
        if self._translated:
            self._parts += self._parts_of(self._file.text, token.start, token.end)

    def _parts_of(self, text: str, start: int, end: int) -> Iterator[Part]:
        """Yield words, and signs of templates and of direction between them."""
        for match in _SIGNS.finditer(text, start, end):
            yield from (Part(start, match.start()), Part(*match.span(), Side.alone))
            start = match.end()
        yield Part(start, end)

    def _other(self, token: Token) -> None:
        if self._translated:
            self._parts.append(Part(token.start, token.end, Side.alone))

    def _single(self, token: Token) -> None:
        self._begin(token, holds=False)

    def _opens(self, token: Token) -> None:
        self._begin(token, holds=token.name not in VOID)

    def _begin(self, token: Token, holds: bool) -> None:
        tag = Tag.of(token.name, self._file.text, token.start, token.end)
        inline = is_inline(tag.name)
        if not inline:
            self._close_implied(tag.name, token.start)
        around, within = self._translated, tag.translated(self._translated)
        if around and not tag.refuses:
            self._attributes(tag)
        if tag.name == "html":
            self._root = self._root or tag.languages
        if holds:
            if len(self._open) == DEEPEST:
                line = self._file.line(token.start)
                raise UserError(f"has more than {DEEPEST} elements in each other", file=self._name, line=line)
            whole = inline and around and not within
            self._open.append(_Open(tag.name, within, token.start if whole else None))
            if whole:
                return
        if not inline:
            self._block()
        elif around:
            twice = tag.name == "br" and next((p for p in reversed(self._parts) if not self._blank(p)), None)
            if twice and twice.name == "br":
                self._block()
            side = Side.opens if holds else Side.alone
            self._parts.append(Part(token.start, token.end, side, tag.name, spaces=tag.name == "br"))

    def _closes(self, token: Token) -> None:
        depth = next((i for i in range(len(self._open) - 1, -1, -1) if self._open[i].name == token.name), None)
        whole = depth is not None and self._open[depth].start is not None
        if depth is not None:
            self._close(depth, token.end if whole else token.start, token.start)
        if not is_inline(token.name):
            self._block()
        elif not whole and self._translated:
            self._parts.append(Part(token.start, token.end, Side.closes, token.name))

    def _close_implied(self, name: str, at: int) -> None:
        """Close what ends where an element of a block begins: a paragraph, the item or cell before."""
        ends, barrier = IMPLIED.get(name, ({"p"}, set()))
        for depth in range(len(self._open) - 1, -1, -1):
            if self._open[depth].name in ends:
                return self._close(depth, at)
            if self._open[depth].name in barrier or (name not in IMPLIED and not is_inline(self._open[depth].name)):
                return None
        return None

    def _close(self, depth: int, end: int, inner: int | None = None) -> None:
        """Close elements down to a depth, the outermost at `end`, those in it at `inner`, or all at `end`."""
        while len(self._open) > depth:
            one = self._open.pop()
            if one.start is not None and self._translated:
                at = end if inner is None or len(self._open) == depth else inner
                self._parts.append(Part(one.start, at, Side.alone, word=True))

    def _blank(self, part: Part) -> bool:
        return part.side is None and not self._file.text[part.start : part.end].strip()

    def _block(self) -> None:
        """Take the text up to here."""
        span = spanned(self._file.text, self._parts, unescape, blank=BLANK_OF_HTML, folds=True)
        self._parts = []
        if span:
            self._add(span, "", None)

    def _attributes(self, tag: Tag) -> None:
        """Take the attributes of a tag that a reader sees."""
        for one in tag.read:
            parts = self._parts_of(one.value, 0, len(one.value))
            found = spanned(one.value, parts, unescape, blank=BLANK_OF_HTML)
            if found:
                first, end = (found.start, found.end) if one.quote else (0, len(one.value))
                self._add(Span(one.start + first, one.start + end, found.marked), f", {one.name}", one.quote)

    def _add(self, span: Span, what: str, quote: str | None) -> None:
        """Add a segment. `quote`: around the value of an attribute, may be empty; none for text."""
        if span.start > self._at:
            self._line += self._file.text.count("\n", self._at, span.start)
            self._at = span.start
        self._spans.add(len(self.segments), span, lambda words: self._written(words, quote))
        self.segments.add(Segment(span.marked, f"line {self._line}{what}"))

    def _written(self, words: str, quote: str | None) -> str:
        escaped = re.sub("[&<>]", lambda match: _ESCAPES[match[0]], words).replace("\xa0", self._hard_space)
        if quote == "'":
            return escaped.replace("'", "&#39;")
        if quote is not None:
            escaped = escaped.replace('"', "&quot;")
        return f'"{escaped}"' if quote == "" else escaped


def read(name: str, content: bytes, languages: Languages) -> Html:
    """Take a page or a fragment apart. Its encoding is the one it names, else UTF-8.

    Raises:
        UserError: it is not in its encoding, or its elements are nested too deep.
    """
    said = _CHARSET.search(content[:2048])
    encoding = (said[1] or said[2]).decode() if said else "utf-8"
    encoding = {"iso-8859-1": "windows-1252"}.get(encoding.lower(), encoding)
    return Html(
        name, TextFile.of(name, content, None if encoding.lower().startswith("utf-16") else encoding), languages
    )
