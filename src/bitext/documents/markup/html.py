"""HTML pages and fragments: the text of blocks and some attributes are segments, inline elements are marks.

Elements whose text is never translated, and those with `translate="no"`, do not change; in a sentence they are marks.
The tokens are those that browsers recognize.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape, unescape
from typing import Literal, NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.document import MOST_PARTS, Segment, SegmentList, Target, TooManyParts
from bitext.documents.markup.html_elements import IMPLIED, VOID, Attribute, Tag, is_inline
from bitext.documents.spans import BLANK_OF_HTML, DIRECTION_OF_HTML, LineNumbers, Part, Span, Spans, TextFile, spanned
from bitext.documents.tagged_text import Side
from bitext.errors import UserError
from bitext.languages import Languages, new_direction, same_language, usual_code
from bitext.protected_spans import Edit

DEEPEST = 500
"""The largest depth of nested elements."""
_TEMPLATE = r"\{%[^{%]*+(?:(?:\{(?!%)|%(?!\}))[^{%]*+)*%\}|\{#[^{#]*+(?:(?:\{(?!#)|#(?!\}))[^{#]*+)*#\}"
"""A template tag, which cannot contain the beginning of another: the search for a missing end stops there, not at the
end of the file."""
_SIGNS = re.compile(f"{_TEMPLATE}|{DIRECTION_OF_HTML.pattern}", re.IGNORECASE)
_OFFICE = re.compile(r"urn:schemas-microsoft-com:office|Microsoft Word|LibreOffice|OpenOffice")
"""A sign of pages that an office program has written."""
_CHARSET = re.compile(
    rb"<meta\b[^>]{0,200}?\bcharset\s*=\s*[\"']?\s*([\w-]+)|\A\s*<\?xml\b[^>]{0,100}?encoding=[\"']([\w-]+)",
    re.IGNORECASE,
)


class _OpenElement(NamedTuple):
    """An element that is open."""

    name: str
    may_be_translated: bool
    """Whether it declares that its content may be translated."""
    is_foreign: bool
    """Whether its content is in another language than the source."""
    start: int
    """The start of its tag."""
    is_one_mark: bool
    """Whether the whole element becomes one mark."""

    @property
    def translated(self) -> bool:
        return self.may_be_translated and not self.is_foreign


class Html:
    """A page or a fragment."""

    def __init__(self, file: TextFile, languages: Languages, is_kept: Callable[[str], bool]) -> None:
        """Parse the segments; `is_kept`: whether a text stays as it is.

        Raises:
            UserError: the elements are nested too deep.
        """
        self._file, self._language = file, languages[1]
        self._is_kept = is_kept
        self._direction = new_direction(languages)
        self._sources = list(filter(None, [usual_code(languages[0] or "")]))  # codes of the source language
        self._spans = Spans(file.text)
        self._hard_space = file.hard_space
        self._declared: list[Attribute] = []  # the attributes that name the language of translated texts
        # Word marks words in whatever language the keyboard was set to.
        self._trusts_languages = not _OFFICE.search(file.text, 0, 5000)
        self._has_root = False
        self._stated = list[Edit]()  # the changes of the writing direction
        self._open: list[_OpenElement] = []
        self._parts: list[Part] = []
        self._lines = LineNumbers(file.text)
        self.segments = SegmentList(file.name)
        for token in tokens(file.text):
            if token.kind == "closes":
                self._end_tag(token)
            elif token.name:
                self._start_tag(token)
            elif self._translated and token.kind == "words":
                self._parts += self._parts_of(file.text, token.start, token.end)
            elif self._translated:
                self._parts.append(Part(token.start, token.end, Side.alone))
            if len(self._parts) > MOST_PARTS:
                raise TooManyParts
        self._close(0, len(file.text))
        self._block()

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the page with translations; elements in the source language, and its direction, get the target's."""
        edits = self._spans.edits(targets)
        if edits and self._language and (code := usual_code(self._language)):
            for attribute in self._declared:
                edits.append(Edit(attribute.start, attribute.start + len(attribute.value), code))
            edits += self._stated
        return self._file.spliced(edits)

    @property
    def _translated(self) -> bool:
        return not self._open or self._open[-1].translated

    def _parts_of(self, text: str, start: int, end: int) -> Iterator[Part]:
        """Yield words, and the template tags and direction controls between them."""
        for match in _SIGNS.finditer(text, start, end):
            yield from (Part(start, match.start()), Part(*match.span(), Side.alone))
            start = match.end()
        yield Part(start, end)

    def _start_tag(self, token: Token) -> None:
        has_content = token.kind == "opens" and token.name not in VOID
        tag = Tag.of(token.name, self._file.text, token.start, token.end)
        is_inline_tag = is_inline(tag.name)
        if not is_inline_tag:
            self._close_implied(tag.name, token.start)
        is_root = tag.name == "html" and not self._has_root
        if is_root:
            self._has_root = bool(tag.languages)
            self._sources += filter(None, (usual_code(attribute.value) for attribute in tag.languages))
        parent_translated = self._translated
        may_be_translated = tag.translated(not self._open or self._open[-1].may_be_translated)
        is_foreign = self._is_foreign(tag)
        content_translated = may_be_translated and not is_foreign
        if parent_translated and not tag.refuses_translation and not is_foreign:
            self._attributes(tag)
        if content_translated and has_content:
            self._state(tag, token, is_root=is_root)
        if has_content:
            if len(self._open) == DEEPEST:
                line = self._file.line(token.start)
                raise UserError(f"has elements nested more than {DEEPEST} levels deep", file=self._file.name, line=line)
            # An element in a sentence whose content is not translated becomes one mark, once it is closed.
            is_one_mark = is_inline_tag and parent_translated and not content_translated
            self._open.append(_OpenElement(tag.name, may_be_translated, is_foreign, token.start, is_one_mark))
            if is_one_mark:
                return
        if not is_inline_tag:
            self._block()
        elif parent_translated:
            if tag.name == "br" and self._last_name() == "br":  # Two line breaks separate paragraphs.
                self._block()
            side = Side.opens if has_content else Side.alone
            self._parts.append(Part(token.start, token.end, side, tag.name, spaces=tag.name == "br"))

    def _is_foreign(self, tag: Tag) -> bool:
        """Whether the content of an element is in a language that is not the source; it inherits this."""
        for attribute in tag.languages if tag.name != "html" and self._trusts_languages else ():
            code = usual_code(attribute.value)
            if attribute.value.lower() == "zxx":  # no language at all
                return True
            if code and self._sources:
                return not any(same_language(code, source) for source in self._sources)
        return bool(self._open) and self._open[-1].is_foreign

    def _state(self, tag: Tag, token: Token, *, is_root: bool) -> None:
        """Remember the language and the direction that an element with translated content states, or needs."""
        for attribute in tag.languages:
            is_source = any(same_language(attribute.value, source) for source in self._sources)
            if is_root or (is_source and tag.name != "html"):
                self._declared.append(attribute)
        direction = tag.attributes.get("dir")
        if direction and direction.value.lower() in ("ltr", "rtl") and self._direction:
            self._stated.append(Edit(direction.start, direction.start + len(direction.value), self._direction))
        elif is_root and self._direction == "rtl" and not (direction or self._stated):
            offset = token.start + len("<html")
            self._stated.append(Edit(offset, offset, ' dir="rtl"'))

    def _last_name(self) -> str:
        """Return the name of the last part that is not white space."""
        for part in reversed(self._parts):
            if part.side or self._file.text[part.start : part.end].strip():
                return part.name
        return ""

    def _end_tag(self, token: Token) -> None:
        depth = len(self._open) - 1
        while depth >= 0 and self._open[depth].name != token.name:
            depth -= 1
        is_one_mark = depth >= 0 and self._open[depth].is_one_mark
        if depth >= 0:
            self._close(depth + 1, token.start)
            self._close(depth, token.end)
        if not is_inline(token.name):
            self._block()
        elif not is_one_mark and self._translated:
            self._parts.append(Part(token.start, token.end, Side.closes, token.name))

    def _close_implied(self, name: str, offset: int) -> None:
        """Close the elements that a block ends without an end tag: a paragraph, the item or the cell before."""
        ends, barrier = IMPLIED.get(name, ({"p"}, set()))
        closed = len(self._open)
        for depth in range(len(self._open) - 1, -1, -1):
            enclosing = self._open[depth].name
            if enclosing in ends:  # A row also closes the row around the previous cell.
                closed = depth
            elif enclosing in barrier or (name not in IMPLIED and not is_inline(enclosing)):
                break
        self._close(closed, offset)

    def _close(self, depth: int, end: int) -> None:
        """Close elements down to a depth; `end` is the end of the last of them."""
        while len(self._open) > depth:
            element = self._open.pop()
            if element.is_one_mark and self._translated:
                self._parts.append(Part(element.start, end, Side.alone, word=True))

    def _block(self) -> None:
        """Add the parts so far as a segment, and start a new one."""
        if not self._parts:
            return
        span = spanned(self._file.text, self._parts, unescape, blank=BLANK_OF_HTML, folds=True)
        self._parts = []
        if span and not self._is_kept(span.marked.text):
            self._add(span, "", None)

    def _attributes(self, tag: Tag) -> None:
        for attribute in tag.text_attributes:
            value, start = attribute.value, attribute.start
            span = spanned(value, self._parts_of(value, 0, len(value)), unescape, blank=BLANK_OF_HTML)
            if span is None:
                continue
            value_span = Span(start, start + len(value), span.marked)
            if attribute.quote:  # Without quotes, the value is replaced as a whole, because it gets quotes.
                value_span = Span(start + span.start, start + span.end, span.marked)
            self._add(value_span, f", {attribute.name}", attribute.quote)

    def _add(self, span: Span, suffix: str, quote: str | None) -> None:
        """Add a segment; `quote`: the quote around the value of an attribute, which may be "", or None for text."""
        self._spans.add(len(self.segments), span, lambda words: self._written(words, quote))
        self.segments.add(Segment(span.marked, f"line {self._lines.at(span.start)}{suffix}"))

    def _written(self, words: str, quote: str | None) -> str:
        escaped = escape(words, quote=False).replace("\xa0", self._hard_space)
        if quote == "'":
            return escaped.replace("'", "&#39;")
        if quote is not None:
            escaped = escaped.replace('"', "&quot;")
        return f'"{escaped}"' if quote == "" else escaped


def read(name: str, content: bytes, languages: Languages, is_kept: Callable[[str], bool] = lambda text: False) -> Html:
    """Parse a page or a fragment. Its encoding is the one it declares, else UTF-8.

    `is_kept`: whether a text stays as it is, such as a number in a book.

    Raises:
        UserError: the page is not in its encoding, or its elements are nested too deep.
    """
    encoding = None
    if charset := _CHARSET.search(content[:2048]):
        encoding = (charset[1] or charset[2]).decode()
        # By the HTML standard, Latin-1 means Windows-1252, and a declaration in ASCII of UTF-16 cannot be true.
        if encoding.lower().startswith("utf-16"):
            encoding = None
        elif encoding.lower() == "iso-8859-1":
            encoding = "windows-1252"
    return Html(TextFile.of(name, content, encoding), languages, is_kept)


Kind = Literal["words", "opens", "closes", "single", "other"]
"""`single` is a tag such as `<br/>`; `other` is a comment, a declaration or a processing instruction."""

_RAW = frozenset({"script", "style"})
"""Elements whose content is raw text up to their end tag."""
_BEGINS = re.compile(r"<[A-Za-z/!?]")
"""The beginning of a tag, a comment and the like; any other `<` is a character."""
_NAME = re.compile(r"</?([A-Za-z][^\s/>\0]*)")
_VALUE = r"\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)"
_TAG = re.compile(
    r"<[A-Za-z][^\s/>\0]*+"
    r"(?:[\s/\0]++"
    # The name of an attribute, and a value, whose quotes may contain `>`. An unpaired quote is part of a name.
    rf"|(?:[^\s/>=\0]++|=)(?:{_VALUE}|(?!{_VALUE}))"
    r")*>"
)
_BARE_VALUE = re.compile(r"(?:(?<![^\s\"'>])[^\s\"'>=]*+=|=\s++)[^\s\"'>]+/>\Z")
"""The end of a tag such as `<a href=x/>`, whose slash belongs to the value."""
_SPECIAL = ("<!-->", ""), ("<!--->", ""), ("<!--", "-->"), ("<![CDATA[", "]]>")
"""The beginning and the end of comments, two of them empty, and CDATA sections."""
_TAIL = 300
"""The number of characters at the end of a tag that are searched for such a value."""


class Token(NamedTuple):
    """A token and its range in the text."""

    kind: Kind
    start: int
    end: int
    name: str
    """The name of an element in lower case; "" for other tokens."""


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, which follow each other without gaps.

    Raises:
        Cancelled: the request was cancelled.
    """
    scanner = _Scanner(text)
    position = 0
    while position < len(text):
        between_steps()
        begins = _BEGINS.search(text, position)
        start = begins.start() if begins else len(text)
        if start > position:
            yield Token("words", position, start, "")
        if begins is None:
            return
        token = scanner.token(start)
        yield token
        position = token.end
        if token.kind == "opens" and token.name in _RAW:
            end = scanner.end_of_raw(token.name, position)
            if end > position:
                yield Token("words", position, end, "")
            position = end


class _Scanner:
    """A scanner for the ends of tokens; after a vain search for a kind of end, it does not search for it again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._missing: set[str] = set()  # the ends that the rest of the text does not have
        # Whether `>` in quotes is part of a tag. An unclosed quote would otherwise include the rest of the text.
        self._quotes = True

    def token(self, start: int) -> Token:
        """Return the token that begins with the `<` at an offset; a token without end is words, up to the end."""
        name = _NAME.match(self.text, start)
        if name and self.text[start + 1] != "/":
            return self._start_tag(start, name[1].lower())
        end = self._special_end(start) or self._find(">", start)
        if end is None:
            return Token("words", start, len(self.text), "")
        if name:
            return Token("closes", start, end, name[1].lower())
        return Token("other", start, end, "")

    def _special_end(self, start: int) -> int | None:
        """Return the end of a comment or a CDATA section; None for other tokens, or without an end."""
        for begin, end in _SPECIAL:
            if self.text.startswith(begin, start):
                return self._find(end, start + len(begin))
        return None

    def _start_tag(self, start: int, name: str) -> Token:
        if self._quotes and (match := _TAG.match(self.text, start)):
            end: int | None = match.end()
        else:
            self._quotes = False
            end = self._find(">", start)
        if end is None:
            return Token("words", start, len(self.text), "")
        tail = self.text[max(start, end - _TAIL) : end]
        closed = tail.endswith("/>") and not _BARE_VALUE.search(tail)
        return Token("single" if closed else "opens", start, end, name)

    def end_of_raw(self, name: str, start: int) -> int:
        """Return the end of the content of an element with raw text."""
        match = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self.text, start)
        return match.start() if match else len(self.text)

    def _find(self, end: str, start: int) -> int | None:
        """Return the offset after the next occurrence of an end, if there is one."""
        if end in self._missing:
            return None
        index = self.text.find(end, start)
        if index < 0:
            self._missing.add(end)
            return None
        return index + len(end)
