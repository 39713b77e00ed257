"""The text of a file and its spans: how parts of the text become spans, and translations replace these.

Every other byte of the file is kept.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.document import MOST_PARTS, Target, TooManyParts
from bitext.documents.tagged_text import Mark, Side, TaggedText, matched_tags
from bitext.errors import UserError
from bitext.protected_spans import Edit, PlaceholderSyntax, is_non_translatable, splice

_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

_SURROGATE = re.compile(r"[\ud800-\udfff]")
LINE_END = r"(?:\r{0,7}\n|\r(?!\r{0,6}\n))"
"""A line end. Programs that convert line ends twice write more than one carriage return."""
DIRECTION_SIGNS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The Unicode controls of writing direction (such as U+200F), written as the content of a character class."""
DIRECTION_OF_HTML = re.compile(rf"[{DIRECTION_SIGNS}]|&(?:lrm|rlm|#820[67]|#x200[ef]);", re.IGNORECASE)
"""A control of writing direction, as a character or as an entity."""
_BLANK = re.compile(rf"[\s{DIRECTION_SIGNS}]*")
BLANK_OF_HTML = re.compile(rf"(?:\s|&nbsp;|&#160;|&#xa0;|{DIRECTION_OF_HTML.pattern})*", re.IGNORECASE)
"""White space, entities of non-breaking spaces, and controls of writing direction."""
_BLANK_CHARACTER = re.compile(rf"[\s{DIRECTION_SIGNS}]")
# The white space that HTML collapses; a non-breaking space is not part of it.
_FOLDED = re.compile(r"[ \t\r\n\f]+")


class TextFile(NamedTuple):
    """The decoded content of a text file."""

    text: str
    encoding: str
    bom: bytes
    """The byte order mark, or nothing; it is not part of the text."""
    name: str = ""
    """The file name for messages."""

    @classmethod
    def of(cls, name: str, content: bytes, encoding: str | None = None) -> TextFile:
        """Decode the content of a file.

        Args:
            name: the file name for messages.
            content: the bytes; a byte order mark determines the encoding.
            encoding: the encoding that the file declares, for files without a byte order mark; UTF-8 by default.

        Raises:
            UserError: the bytes are not valid in that encoding.
        """
        bom, codec = b"", encoding or "utf-8"
        for candidate, bom_encoding in _BOMS.items():
            if content.startswith(candidate):
                bom, codec = candidate, bom_encoding
        try:
            text = content[len(bom) :].decode(codec)
            if text.encode(codec) == content[len(bom) :]:
                return cls(text, codec, bom, name)
            line = None
        except LookupError as error:
            raise UserError(
                f"is in an encoding that is not known, {codec}", file=name, fix="Save it as UTF-8."
            ) from error
        except UnicodeError as error:
            line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise UserError(f"is not {codec.upper()}", file=name, line=line, fix="Save it as UTF-8.")

    @property
    def line_end(self) -> str:
        """The line end for new lines: the first with both CR and LF if there is one, else the one in use."""
        match = re.search(r"\r{1,7}\n", self.text)
        if match:
            return match[0]
        return "\r" if "\r" in self.text and "\n" not in self.text else "\n"

    @property
    def hard_space(self) -> str:
        """The non-breaking space for new HTML: the entity if the text uses it, else the character."""
        return "&nbsp;" if "&nbsp;" in self.text else "\N{NO-BREAK SPACE}"

    def line(self, offset: int) -> int:
        """Return the number, from 1, of the line of a character; linear in `offset`, so only for messages."""
        return self.text.count("\n", 0, offset) + 1

    def spliced(self, edits: Iterable[Edit]) -> bytes:
        """Return the content with edits; characters that the encoding lacks are written as `&#...;`.

        Halves of surrogate pairs, which cannot be encoded, become U+FFFD.
        """
        encodable = (edit._replace(new=_SURROGATE.sub("\ufffd", edit.new)) for edit in edits)
        return self.bom + splice(self.text, encodable).encode(self.encoding, "xmlcharrefreplace")


class LineNumbers:
    """The numbers, from 1, of the lines of a text, which are counted from the last one that was asked for."""

    def __init__(self, text: str) -> None:
        self._text, self._offset, self._number = text, 0, 1

    def at(self, offset: int) -> int:
        """Return the number of the line of a character; for one before the last, that of the last."""
        if offset > self._offset:
            self._number += self._text.count("\n", self._offset, offset)
            self._offset = offset
        return self._number


_NUMERAL = r"[(\[]?(?=[{0}])C{{0,3}}(?:XC|XL|L?X{{0,3}})(?:IX|IV|V?I{{0,3}})[.)\]:]?"
_LONG_NUMERAL = re.compile(_NUMERAL.format("IVXLC][IVXLC"))
_ANY_NUMERAL = re.compile(_NUMERAL.format("IVXLC"), re.IGNORECASE)


def is_numeral(text: str, *, in_book: bool = False) -> bool:
    """Whether a text is a number in Roman numerals; only in books, one small or single letter is one, too.

    >>> list(map(is_numeral, ("IV", "XII.", "I", "xii", "CIVIL"))), is_numeral("i", in_book=True)
    ([True, True, False, False, False], True)
    """
    return (_ANY_NUMERAL if in_book else _LONG_NUMERAL).fullmatch(text.strip()) is not None


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a text that holds words or one mark."""

    start: int
    end: int
    side: Side | None = None
    """None for words."""
    name: str = ""
    """The name that an opening mark shares with the mark that closes it."""
    word: bool = False
    """Whether the mark acts as a word, as `<code>` does: it belongs to the sentence even at its edge."""
    spaces: bool = False
    """Whether the mark separates words, as a line break does."""
    raw: str | None = None
    """The text to write for the mark, if it differs from the text in the document."""


class Span(NamedTuple):
    """A range of a text that is translated as a whole."""

    start: int
    end: int
    marked: TaggedText
    mark_spans: tuple[tuple[int, int], ...] = ()
    """The span of each mark in the text."""


def spanned(
    text: str,
    parts: Iterable[Part],
    decode: Callable[[str], str] = str,
    *,
    blank: re.Pattern[str] = _BLANK,
    folds: bool = False,
    syntax: PlaceholderSyntax = PlaceholderSyntax.prose,
) -> Span | None:
    """Return the span that parts make up; None if it has nothing to translate.

    White space at the ends stays outside, and so do marks at the ends that do not change the content: tags around
    all of it, images, comments.

    Args:
        text: the text that contains the parts.
        parts: adjacent parts, in order.
        decode: turns words of the text into characters, for example by resolving entities.
        blank: matches as much white space as possible, or the empty string.
        folds: whether a run of white space counts as one space.
        syntax: the syntax of placeholders in the words.
    """
    paired = _trimmed(text, _paired(parts), blank)
    words, marks, mark_spans = "", [], []
    ends_with_space = False  # whether `words` ends with a space
    for part, pair in paired:
        between_steps()
        if part.side is None:
            decoded = decode(text[part.start : part.end])
            if folds:
                decoded = _FOLDED.sub(" ", decoded)
                # As in browsers, white space on both sides of a tag counts as one space.
                if ends_with_space:
                    decoded = decoded.removeprefix(" ")
            words += decoded
            if decoded:
                ends_with_space = words.endswith(" ")
        else:
            if part.spaces and words and not ends_with_space:
                words, ends_with_space = words + " ", True
            raw = part.raw
            if raw is None:
                raw = text[part.start : part.end]
            marks.append(Mark(len(words), raw, part.side, pair))
            mark_spans.append((part.start, part.end))
            # An image or a placeholder is visible, so a space after it counts again.
            ends_with_space = ends_with_space and (part.side is not Side.alone or part.spaces)
    if not words.strip() or is_non_translatable(words, syntax) or is_numeral(words):
        return None
    return Span(paired[0][0].start, paired[-1][0].end, TaggedText(words, tuple(marks), syntax), tuple(mark_spans))


def margins(text: str) -> tuple[int, int]:
    r"""Return the number of characters at each end that are white space or controls of writing direction.

    >>> margins(" \u200fone. \u200e")
    (2, 2)
    """
    start, end = 0, len(text)
    while start < end and _BLANK_CHARACTER.match(text[start]):
        start += 1
    while end and _BLANK_CHARACTER.match(text[end - 1]):
        end -= 1
    return start, len(text) - end


_Paired = list[tuple[Part, int | None]]
"""Parts, each with the number of its pair of marks."""


def _paired(parts: Iterable[Part]) -> _Paired:
    """Give both marks of each pair the same number; marks without a partner become single marks."""
    nonempty: list[Part] = []
    for part in parts:
        between_steps()
        if len(nonempty) > MOST_PARTS:
            raise TooManyParts
        if part.end > part.start:
            nonempty.append(part)
    numbers: dict[int, int] = {}
    for number, pair in enumerate(matched_tags(map(attrgetter("side", "name"), nonempty))):
        numbers.update(dict.fromkeys(pair, number))
    paired: _Paired = []
    for i, part in enumerate(nonempty):
        if part.side and i not in numbers:
            part = replace(part, side=Side.alone)
        paired.append((part, numbers.get(i)))
    return paired


def trimmed(pairs: Sequence[int | None], is_loose: Callable[[int], bool], *, empty_elements: bool = True) -> slice:
    """Return the range of the parts that belong to a sentence.

    The tags of an element around the whole sentence do not belong to it, and neither do loose parts at its ends.

    Args:
        pairs: for each part, the number that it shares with the other tag of its element, if it is a tag.
        is_loose: whether the part at an index, such as white space, does not belong to a sentence beside it.
        empty_elements: whether elements without content at the ends do not belong to it either.
    """
    start, end = 0, len(pairs)
    known: dict[int, bool] = {}  # a loose end must not make the other end, which can be long, be looked at again

    def is_known_loose(index: int) -> bool:
        if index not in known:
            known[index] = is_loose(index)
        return known[index]

    def is_element(opening: int, closing: int) -> bool:
        return start <= opening < closing < end and pairs[opening] == pairs[closing] is not None

    while start < end:
        if is_known_loose(start):
            start += 1
        elif is_known_loose(end - 1):
            end -= 1
        elif is_element(start, end - 1):
            start, end = start + 1, end - 1
        elif empty_elements and is_element(start, start + 1):
            start += 2
        elif empty_elements and is_element(end - 2, end - 1):
            end -= 2
        else:
            break
    return slice(start, end)


def _trimmed(text: str, paired: _Paired, blank: re.Pattern[str]) -> _Paired:
    """Remove parts that do not belong to the sentence from both ends."""

    def is_loose(index: int) -> bool:
        part = paired[index][0]
        if part.side is None:
            match = blank.match(text, part.start, part.end)
            return match is not None and match.end() == part.end
        return part.side is Side.alone and not part.word

    pairs: list[int | None] = []
    for part, pair in paired:
        # A closing tag that is rewritten, such as that of a link, belongs to the text of its element.
        is_rewritten = part.raw is not None
        pairs.append(None if is_rewritten else pair)
    sentence = paired[trimmed(pairs, is_loose)]
    if sentence and sentence[0][0].side is None:
        part = sentence[0][0]
        match = blank.match(text, part.start, part.end)
        if match and match.end() > part.start:
            sentence[0] = (replace(part, start=match.end()), None)
    if sentence and sentence[-1][0].side is None:
        part = sentence[-1][0]
        end = _end(text, part, blank)
        if end < part.end:
            sentence[-1] = (replace(part, end=end), None)
    return sentence


def _end(text: str, part: Part, blank: re.Pattern[str]) -> int:
    """Return the start of the white space at the end of words."""
    starts = (match.start() for match in blank.finditer(text, part.start, part.end) if match.end() == part.end)
    return next(starts, part.end)


Write = Callable[[str], str]
"""A function that encodes words for a document, for example by escaping them."""


class Spans:
    """The spans of a text, by the numbers of their segments; a span such as `alt` may be in a mark of another span."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._spans: dict[int, tuple[Span, Write, Write]] = {}
        self._inside_lines = set[int]()  # the spans that do not begin a line

    def add(
        self, number: int, span: Span, write: Write = str, write_first: Write | None = None, *, begins_line: bool = True
    ) -> None:
        """Add the span of a segment, in any order.

        `write` encodes words; `write_first` those at the beginning of a line, where a span is if it `begins_line`.
        """
        self._spans[number] = (span, write, write_first or write)
        if not begins_line:
            self._inside_lines.add(number)

    def edits(self, targets: Mapping[int, Target], in_marks: Iterable[Edit] = ()) -> list[Edit]:
        """Return the edits that put these translations into the text; `in_marks`: edits of marks and between spans."""
        edits: list[Edit] = []
        pending = sorted(in_marks)
        # From the last to the first, so that the spans in its marks are edited before the outer span.
        for number in sorted(self._spans, key=lambda number: self._spans[number][0].start, reverse=True):
            between_steps()
            while pending and pending[-1].start >= self._spans[number][0].start:
                edits.append(pending.pop())
            if number in targets:
                span, write, write_first = self._spans[number]
                mark_edits = []
                while edits and edits[-1].start < span.end:
                    mark_edits.append(edits.pop())
                marked, begins_line = targets[number].marked, number not in self._inside_lines
                parts = self._written(span, marked, mark_edits, write, write_first, begins_line)
                edits.append(Edit(span.start, span.end, "".join(parts)))
        return edits + pending

    def filled(self, targets: Mapping[int, Target]) -> str:
        """Return the text with these translations."""
        return splice(self.text, self.edits(targets))

    def _written(
        self,
        span: Span,
        target: TaggedText,
        mark_edits: list[Edit],
        write: Write,
        write_first: Write,
        at_line_start: bool,
    ) -> Iterator[str]:
        """Yield the words and marks of a target; `mark_edits` are the edits in marks of its source."""
        changed = self._changed_marks(span, mark_edits) if mark_edits else {}
        for part in target.parts:
            if not isinstance(part, Mark):
                encode = write_first if at_line_start else write
                yield encode(part)
                at_line_start = False
                continue
            if forms := changed.get(part.raw):
                yield forms.pop(0)
            else:
                yield part.raw
            at_line_start = "\n" in part.raw

    def _changed_marks(self, span: Span, mark_edits: list[Edit]) -> dict[str, list[str]]:
        """Return the marks of a span with edits applied: for each original mark, its edited forms in order."""
        changed: dict[str, list[str]] = defaultdict(list)
        key = attrgetter("start")
        ordered = sorted(mark_edits, key=key)
        for mark, (start, end) in zip(span.marked.marks, span.mark_spans, strict=True):
            first, last = bisect_left(ordered, start, key=key), bisect_left(ordered, end, key=key)
            edits = [Edit(e.start - start, e.end - start, e.new) for e in ordered[first:last] if e.end <= end]
            raw = mark.raw
            if edits:
                raw = splice(self.text[start:end], edits)
            changed[mark.raw].append(raw)
        return changed
