"""Text with marks: tags, line breaks and placeholders, which are not words; white space beside them; nested tags."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import TypeAlias

from bitext.protected_spans import PART_MARK, Edit, Part, PlaceholderSyntax, Syntax, kept_parts, splice, with_patterns
from bitext.words import WITHOUT_SPACES

_BREAK = r"\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
LINE_BREAKS = re.compile(rf"(?<![ \t])[ \t]*+[{_BREAK}][ \t{_BREAK}]*+")
"""One or more line ends, including the characters that only some programs treat as line ends."""
_WHITE = " \t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""White space except non-breaking spaces, which authors write on purpose."""


class Side(Enum):
    """The role of a mark in an element."""

    opens = "opens"
    """The beginning of an element, such as `<b>`."""
    closes = "closes"
    """The end of an element, such as `</b>`."""
    alone = "alone"
    """No element, such as `<br/>` or `%s`."""

    @classmethod
    def of_tag(cls, *, closes: object) -> Side:
        """Return the side of a tag, by whether it closes its element."""
        return cls.closes if closes else cls.opens

    @property
    def depth(self) -> int:
        """The change of the number of open elements."""
        return {Side.opens: 1, Side.closes: -1, Side.alone: 0}[self]


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag or a placeholder at its place in a text."""

    offset: int
    """The number of characters of the text before it."""
    raw: str
    """The mark in the syntax of the document."""
    side: Side = Side.alone
    pair: int | None = None
    """A number that the two marks of an element share; None for a single mark."""


@dataclass(frozen=True, slots=True)
class KeptElement(Mark):
    """An element without translatable letters, such as `<sup>2</sup>`, with its content."""

    parts: tuple[str | Mark, ...] = ()
    """The texts and marks in it, including its tags."""


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text without its marks, and the marks in order.

    >>> marked = TaggedText("Save now", (Mark(0, "<b>", Side.opens, 0), Mark(4, "</b>", Side.closes, 0)))
    >>> marked.full_text
    '<b>Save</b> now'
    """

    text: str
    """The text to translate, without escapes."""
    marks: tuple[Mark, ...] = ()
    syntax: Syntax = field(default=PlaceholderSyntax.prose, compare=False, repr=False)
    """The syntax of placeholders in the text."""

    @classmethod
    def of(cls, parts: Iterable[str | Mark], syntax: Syntax = PlaceholderSyntax.prose) -> TaggedText:
        """Join texts and marks; their order determines the offsets of the marks."""
        texts: list[str] = []
        marks: list[Mark] = []
        size = 0
        for part in parts:
            if isinstance(part, Mark):
                marks.append(replace(part, offset=size))
            else:
                texts.append(part)
                size += len(part)
        return cls("".join(texts), tuple(marks), syntax)

    @property
    def parts(self) -> Iterator[str | Mark]:
        """The texts, none of them empty, and the marks, in order."""
        start = 0
        for mark in self.marks:
            if mark.offset > start:
                yield self.text[start : mark.offset]
                start = mark.offset
            yield mark
        if self.text[start:]:
            yield self.text[start:]

    @property
    def full_text(self) -> str:
        """The text with its marks in the syntax of the document; the text is not escaped."""
        text = ""
        for part in self.parts:
            text += part.raw if isinstance(part, Mark) else part
        return text

    @property
    def mark_offsets(self) -> list[int]:
        """The number of characters before each mark."""
        return [mark.offset for mark in self.marks]

    def protecting(self, patterns: Sequence[str]) -> TaggedText:
        """Return the text with the patterns of a user for parts that a translation must keep."""
        return replace(self, syntax=with_patterns(self.syntax, patterns)) if patterns else self

    def spliced(self, edits: Sequence[Edit]) -> TaggedText:
        """Return the text with edits; a mark within an edited range goes before it.

        Args:
            edits: the edits, in order.
        """
        ends = [edit.end for edit in edits]
        shifts = [0, *accumulate(len(edit.new) - (edit.end - edit.start) for edit in edits)]

        def moved(mark: Mark) -> Mark:
            count = bisect_right(ends, mark.offset)
            offset = mark.offset
            if count < len(edits):
                offset = min(offset, edits[count].start)
            return replace(mark, offset=offset + shifts[count])

        return replace(self, text=splice(self.text, edits), marks=tuple(map(moved, self.marks)))

    def replaced(self, pattern: re.Pattern[str], new: str) -> TaggedText:
        """Return the text with each match of a pattern replaced by `new`."""
        return self.spliced([Edit(*match.span(), new) for match in pattern.finditer(self.text)])

    @property
    def stripped(self) -> TaggedText:
        """The text without white space at both ends; white space between a mark and words stays."""
        offsets = self.mark_offsets
        end = max(len(self.text.rstrip(_WHITE)), *offsets, 0)
        start = min(len(self.text) - len(self.text.lstrip(_WHITE)), *offsets, end)
        return self.spliced([Edit(0, start, ""), Edit(end, len(self.text), "")])

    @property
    def in_one_line(self) -> TaggedText:
        """The text, `stripped`, with spaces instead of line ends."""
        return self.replaced(LINE_BREAKS, " ").stripped


_SEPARATES_WORDS = re.compile(
    r"<(?!wbr|!--|\?)|&(?:nbsp|ensp|emsp|thinsp|#160|#xa0);|[ \t]*[\r\n]|\\[nh]\Z", re.IGNORECASE
)
_LINE_END = re.compile(r"[ \t]*(?:[\r\n]|\\[nN]\Z)")
_BREAKS_LINES = re.compile(
    r"<(?:[\w-]+:)?(?:br|hr|tab|ptab|cr|lb|pb|line-break|p|div|li|tr|td|th|ul|ol|dl|dd|dt|table|h[1-6]|blockquote)\b"
    r"|<text:s\b|&|<[^<>]*?[\s:](?:ctype|type|equiv|equiv-text|disp|id)\s*=\s*[\"'][^\"'<>]*?(?:\b(?:lb|br)\b|LINE_BREAK)"
    # Codes of other formats that XLIFF and TMX quote.
    r"|<(?:[\w-]+:)?(?:ph|it|ut)\b[^<>]*>\s*(?:&lt;|<)?/?(?:br|p|li|tab)\b"
    r"|<(?:[\w-]+:)?(?:ph|it|ut)\b[^<>]*>(?:[\r\n\t]|\\[nrt]\b|\{?\\(?:line|par|tab)\b|&#(?:10|x0?a);)"
    r"|[ \t]*[\r\n]|\\[nh]\Z",
    re.IGNORECASE,
)
"""A mark that separates words wherever it stands; others, such as anchors and images, may stand in a word."""
_STANDS_FOR_TEXT = re.compile(r"<(?:[\w-]+:)?(?:x|ph|g)\b")
CLOSING = frozenset(".,;:!?…)]}»”’%。，、；：！？）」』")
"""Characters without a space before them."""


def separates_letters(text: str, mark: Mark) -> bool:
    """Whether a single mark, such as `<br/>`, separates words between which there is no space."""
    before, after = text[mark.offset - 1 : mark.offset], text[mark.offset : mark.offset + 1]
    if _LINE_END.match(mark.raw):
        return bool(before.strip() and after.strip())
    if not before or not after.isalnum() or not separates_words(mark):
        return False
    if isinstance(mark, KeptElement):
        return (before.isalnum() or before in CLOSING) and not WITHOUT_SPACES.match(after)
    return before in CLOSING or (before.isalnum() and bool(_BREAKS_LINES.match(mark.raw)))


def word_breaks(marked: TaggedText) -> set[int]:
    """Return the offsets at which only a mark separates two words."""
    return {mark.offset for mark in marked.marks if separates_letters(marked.text, mark)}


def separates_words(mark: Mark) -> bool:
    """Whether a mark, such as `<br/>`, separates words as a space does."""
    return mark.side is Side.alone and bool(_SEPARATES_WORDS.match(mark.raw))


def stands_for_text(mark: Mark) -> bool:
    """Whether a mark of XLIFF or TMX may stand for a text, such as a number, and not for a line end."""
    is_single = mark.side is Side.alone and bool(_STANDS_FOR_TEXT.match(mark.raw))
    return is_single and not _BREAKS_LINES.match(mark.raw)


def parts_of(marked: TaggedText) -> list[tuple[str, int, int]]:
    """Return the parts that `kept_parts` yields, with their spans; marks end words, as in `%s<b>dogs</b>`."""
    spans = spans_between(marked, marked.mark_offsets, lambda text: kept_parts(text, marked.syntax))
    return [(marked.text[start:end], start, end) for start, end in spans]


def letters_before(text: str, parts: Iterable[tuple[str, int, int]]) -> list[int]:
    """Return the number of letters outside of parts before each character of a text, and before its end."""
    letters = list(map(str.isalpha, text))
    for _, start, end in parts:
        letters[start:end] = [False] * (end - start)
    return [0, *accumulate(letters)]


def spans_between(
    marked: TaggedText, offsets: Iterable[int], find: Callable[[str], Iterable[Part]]
) -> list[tuple[int, int]]:
    """Return the spans of the parts that a function finds, where words end at some offsets, such as those of marks."""
    text, cuts = _cut(marked.text, offsets)
    positions = [cut + i for i, cut in enumerate(cuts)]
    spans = []
    for _, start, end in find(text):
        spans.append((start - bisect_left(positions, start), end - bisect_left(positions, end)))
    return spans


def cut_at_marks(marked: TaggedText) -> str:
    """Return a text with the character `PART_MARK` in place of each mark within it."""
    return _cut(marked.text, marked.mark_offsets)[0]


def _cut(text: str, offsets: Iterable[int]) -> tuple[str, list[int]]:
    """Return a text with the character `PART_MARK` at the offsets within it, and these in order."""
    cuts = sorted({offset for offset in offsets if 0 < offset < len(text)})
    return PART_MARK.join(text[start:end] for start, end in pairwise([0, *cuts, len(text)])), cuts


def is_space(character: str) -> bool:
    """Whether a character is white space, or missing, as at the end of a text."""
    return not character.strip()


def wants_space(text: str) -> bool:
    """Whether a space belongs before a text that follows a mark."""
    return bool(text) and not text[0].isspace() and text[0] not in CLOSING


def outer_space(text: str) -> tuple[str, str]:
    """Return the white space at both ends of a text."""
    if not text.strip():
        return text, ""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


DEEPEST = 200
"""The largest depth of nested elements; the tags of deeper ones count as single marks."""
Tag: TypeAlias = tuple[Side | None, Hashable]
"""The side of a tag, and the name or number that it shares with its partner; None if the mark is not a tag."""
SIDE_AND_PAIR = attrgetter("side", "pair")
"""Returns a mark as a tag."""


def matched_tags(tags: Iterable[Tag]) -> list[tuple[int, int]]:
    """Return the indices of the opening and the closing tag of each element, in the order of the closing tags.

    A closing tag closes the last open element of its name; the elements in it that are still open have no closing tag.
    """
    pairs: list[tuple[int, int]] = []
    open_tags: list[tuple[Hashable, int]] = []  # the names and indices of the open tags
    depths = defaultdict[Hashable, list[int]](list)  # by name, the indices of its tags in `open_tags`
    for i, (side, name) in enumerate(tags):
        if side is Side.opens:
            depths[name].append(len(open_tags))
            open_tags.append((name, i))
        elif side is Side.closes and depths[name]:
            depth = depths[name][-1]
            pairs.append((open_tags[depth][1], i))
            for ended, _ in open_tags[depth:]:
                depths[ended].pop()
            del open_tags[depth:]
    return pairs


def nested(tags: Sequence[Tag]) -> bool:
    """Whether each closing tag closes the last open tag, and no tag stays open."""
    count = sum(side in (Side.opens, Side.closes) for side, _ in tags)
    return count == 2 * len(matched_tags(tags))


@dataclass
class TagNode:
    """An element, a single mark, or the whole text."""

    span: tuple[int, int]
    """The span in the source."""
    marks: list[int]
    """The indices of its marks: two for an element, one for a single mark, none for the whole text."""
    children: list[TagNode] = field(default_factory=list)


def tag_tree(source: TaggedText) -> TagNode:
    """Return the whole text as a node that contains its elements.

    A mark without a partner, or whose partner is in another element, counts as a single mark.
    """
    partner: dict[int, int] = {}
    for opening, closing in matched_tags(map(SIDE_AND_PAIR, source.marks)):
        partner.update({opening: closing, closing: opening})
    length = len(source.text)
    root = TagNode((0, length), [])
    path = [root]
    for i, mark in enumerate(source.marks):
        start = min(max(mark.offset, 0), length)
        partner_index = partner.get(i, -1)
        if partner_index > i and len(path) <= DEEPEST:
            end = min(max(source.marks[partner_index].offset, start), length)
            node = TagNode((start, end), [i, partner_index])
            path[-1].children.append(node)
            path.append(node)
        elif path[-1].marks[1:] == [i]:
            path.pop()
        else:
            path[-1].children.append(TagNode((start, start), [i]))
    return root


def walk(node: TagNode) -> Iterator[TagNode]:
    """Yield a node and all its descendants."""
    yield node
    for child in node.children:
        yield from walk(child)


def complete(source: TaggedText, target: TaggedText) -> TaggedText:
    """Return a translation with each mark of its source once, and well nested if the source is.

    The tags of elements and lost marks are appended to the text; duplicate marks are removed.
    """
    kind = attrgetter("raw", "side")
    needed = Counter(map(kind, source.marks))
    is_complete = Counter(map(kind, target.marks)) == needed
    if is_complete and (_is_nested(target) or not _is_nested(source)):
        return target
    marks = list[Mark]()
    for mark in target.marks:
        if mark.side is Side.alone and needed[mark.raw, mark.side] > 0:
            needed[mark.raw, mark.side] -= 1
            marks.append(mark)
    for mark in source.marks:
        if mark.side is not Side.alone or needed[mark.raw, mark.side] > 0:
            needed[mark.raw, mark.side] -= 1
            marks.append(replace(mark, offset=len(target.text)))
    return TaggedText(target.text, tuple(marks))


def _is_nested(text: TaggedText) -> bool:
    return nested(list(map(SIDE_AND_PAIR, text.marks)))


_NAME_OF_TAG = re.compile(r"</?[\w:.-]+|\{\s*\w+\s*,\s*\w+")
"""The names of tags in a mark, without their attributes, and the beginning of an ICU plural or selection."""


def with_marks_of(source: TaggedText, translation: TaggedText) -> TaggedText:
    """Return a translation with marks of its source in place of its own, each at most once; others are left out.

    A mark stands for the next one of the source that is equal or, if there is none, has the same tags with other
    attributes; or, as with the translated title of a link, for one that begins in the same way. The two tags of an
    element stay together, whatever number they share.
    """
    if not translation.marks:
        return translation
    marks: dict[int, Mark] = {}  # of the source, by the index of the mark of the translation
    units, own_units = _units(source.marks), _units(translation.marks)
    for key in (_raw_key, _name_key, _first_key):
        free = defaultdict[Hashable, deque[tuple[int, ...]]](deque)
        for unit in units:
            free[key(source.marks, unit)].append(unit)
        remaining = []
        for own_unit in own_units:
            if equal_units := free[key(translation.marks, own_unit)]:
                marks.update(zip(own_unit, (source.marks[i] for i in equal_units.popleft()), strict=True))
            else:
                remaining.append(own_unit)
        units, own_units = list(chain.from_iterable(free.values())), remaining
        units.sort()
    kept = [replace(marks[i], offset=mark.offset) for i, mark in enumerate(translation.marks) if i in marks]
    return TaggedText(translation.text, tuple(kept), translation.syntax)


def _units(marks: Sequence[Mark]) -> list[tuple[int, ...]]:
    """Return the indices of the marks of each element, and of each other mark, in order."""
    elements = matched_tags(map(SIDE_AND_PAIR, marks))
    paired = set(chain.from_iterable(elements))
    return sorted([*elements, *((i,) for i in range(len(marks)) if i not in paired)])


def _raw_key(marks: Sequence[Mark], unit: tuple[int, ...]) -> Hashable:
    return tuple((marks[i].raw, marks[i].side) for i in unit)


def _name_key(marks: Sequence[Mark], unit: tuple[int, ...]) -> Hashable:
    return tuple((tuple(_NAME_OF_TAG.findall(marks[i].raw)) or marks[i].raw, marks[i].side) for i in unit)


def _first_key(marks: Sequence[Mark], unit: tuple[int, ...]) -> Hashable:
    return len(unit), marks[unit[0]].raw if len(unit) > 1 else marks[unit[0]].side
