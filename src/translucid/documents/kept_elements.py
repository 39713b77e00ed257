"""Inline elements without a letter to translate, such as `<sup>2</sup>`, `<a>[4]</a>` and `<b>{count}</b>`.

Each is one mark with its content while its text is translated, so that no letter of the translation can get into it.
The model sees the content only where it is a word of the sentence, as in `<b>25</b> years`: then the copy of it in the
translation is put into the element. A word with such an element between its letters, as H₂O, is one of them too.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from translucid.data.placeholder_syntax import UNITS
from translucid.documents.stand_ins import WITHOUT_SPACES, parts_of
from translucid.documents.tag_projection import CLOSING, parts_words
from translucid.documents.tag_tree import TagNode, tag_tree
from translucid.documents.tagged_text import KeptElement, Mark, Side, TaggedText
from translucid.documents.word_links import PUNCTUATION, Span

MOST_COPIES = 24
"""Elements of a text whose content the model sees. Each is looked for in the translation."""
LONGEST_WORD = 40
"""Characters of a word that stays as it is because of an element between its letters."""
_RAISED = re.compile(r"<su[bp]\b|superscript|subscript|baseline=|vert-align|\A[~^]\Z", re.IGNORECASE)
"""Tags, and signs of Markdown, of what stands higher or lower than the line."""
_LOWERED = re.compile(r"<sub\b|subscript|baseline=\"-|\A~\Z", re.IGNORECASE)
_SYMBOL = re.compile(rf"(?:{UNITS}|[^\W\d_])\Z")
"""A unit or a letter, as in `km<sup>2</sup>` and `x<sup>2</sup>`, where the number is no note."""
_LONGEST_SYMBOL = 4
"""Letters of what a lowered number belongs to, as in `CO<sub>2</sub>`."""
_SENTENCE = frozenset(" \t\r\n\xa0-‐‑–—/") | PUNCTUATION
"""Signs that belong to the sentence, and may be others in the translation."""


class Copy(NamedTuple):
    """An element whose content the model sees."""

    core: str
    """The content without white space at its ends."""
    number: int
    """How often the text has the same before it."""
    start: int
    """Where the core begins in the text for the model."""
    element: KeptElement

    @property
    def end(self) -> int:
        """Where the core ends."""
        return self.start + len(self.core)


class Collapsed(NamedTuple):
    """A text whose elements without letters are marks, or copies."""

    source: TaggedText
    copies: tuple[Copy, ...] = ()


class _Found(NamedTuple):
    """An element, or a word with some, in the text."""

    start: int
    end: int
    first: int
    """The numbers of its first and its last mark."""
    last: int
    hidden: bool = False
    """The model does not see it, as it is no word of the sentence."""


def collapsed(source: TaggedText, hidden: Collection[str] = (), *, attached: bool = False) -> Collapsed:
    """Make each element without letters one mark.

    Args:
        source: a text with its marks.
        hidden: contents that the model does not see.
        attached: whether it sees what touches a word, such as the number of a note, which it otherwise does not.
    """
    if not any(mark.side is Side.opens for mark in source.marks):
        return Collapsed(source)
    found = list(_found(source))
    if not found:
        return Collapsed(source)
    hide = [(one.hidden and not attached) or _core(source, one) in hidden for one in found]
    while True:
        result, lost = _built(source, found, hide)
        if not lost:
            return result
        for i in lost:
            hide[i] = True


def copy_places(text: str, source: Collapsed) -> tuple[list[tuple[int, int, Copy]], set[str]]:
    """Return where a translation has the copies, and the contents that it lacks or has too often.

    Args:
        text: the translation.
        source: of it.
    """
    by_core: dict[str, list[Copy]] = defaultdict(list)
    for copy in source.copies:
        by_core[copy.core].append(copy)
    places: list[tuple[int, int, Copy]] = []
    lost = set[str]()
    for core, copies in by_core.items():
        there = spans_of(core, text)
        most = len(spans_of(core, source.source.text))
        if not len(copies) <= len(there) <= most:
            lost.add(core)
            continue
        at = -1
        for left, copy in zip(range(len(copies), 0, -1), copies, strict=True):
            # The same place among the equal ones; in proportion if the translation has fewer of them.
            wanted = copy.number if most == len(there) else copy.number * len(there) // most
            at = min(max(wanted, at + 1), len(there) - left)
            places.append((*there[at], copy))
    places.sort(key=lambda place: place[:2])
    for (_, end, _), (start, _, later) in pairwise(places):
        if start < end:
            lost.add(later.core)
    return places, lost


def spans_of(core: str, text: str) -> list[Span]:
    """Return where a text has a content as a word or number of its own.

    >>> spans_of("2", "2, 12, [2] and 2.5")
    [(0, 1), (8, 9)]
    """
    before = behind = ""
    if core[0].isalnum():
        before = r"(?<!\d)(?<!\d[.,])" if core[0].isdigit() else r"(?<![^\W_])"
    if core[-1].isalnum():
        behind = r"(?!\d|[.,]\d)" if core[-1].isdigit() else r"(?![^\W_])"
    return [match.span() for match in re.finditer(f"{before}{re.escape(core)}{behind}", text)]


def expanded(parts: Iterable[str | Mark]) -> Iterator[str | Mark]:
    """Yield texts and marks, those of elements in their place."""
    for part in parts:
        if isinstance(part, KeptElement):
            yield from part.parts
        else:
            yield part


def _core(source: TaggedText, one: _Found) -> str:
    return source.text[one.start : one.end].strip()


def _found(source: TaggedText) -> Iterator[_Found]:
    """Yield elements without letters, and words that have some between their letters."""
    text, elements, breaks = source.text, list(_elements(source)), _breaks(source)
    words = _Words(source, elements, breaks)
    done = i = 0
    while i < len(elements):
        block = [elements[i]]
        while i + len(block) < len(elements) and elements[i + len(block)].start == block[-1].end:
            block.append(elements[i + len(block)])
        i += len(block)
        start, end = block[0].start, block[-1].end
        if start < done:  # it is in the word before
            continue
        left = "" if start in breaks or text[start].isspace() else text[start - 1 : start]
        right = "" if end in breaks or text[end - 1].isspace() else text[end : end + 1]
        whole = _spells(left) and (_spells(right) or words.is_symbol(block[0]))
        if whole and (word := words.around((start, end), done)):
            yield word
            done = word.end
        else:
            for one in block:
                yield one._replace(hidden=_is_attached(source, one, left, right))
            done = end


class _Words:
    """The words of a text that have elements without letters in them."""

    def __init__(self, source: TaggedText, elements: Sequence[_Found], breaks: Collection[int]) -> None:
        self.source, self.elements, self.breaks = source, elements, breaks
        self.starts = [one.start for one in elements]
        self.edges = {one.start for one in elements} | {one.end for one in elements}
        self.mark_places = [mark.at for mark in source.marks]

    def around(self, span: Span, low: int) -> _Found | None:
        """Return the word around an element, without punctuation at its ends, as one element.

        Args:
            span: of the element.
            low: where the word may begin.

        Returns:
            Nothing if the word is too long, or a mark in it has its partner outside.
        """
        start, end = self._ends(span, low)
        inside = self.elements[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        end = max(end, inside[-1].end)
        if end - start > LONGEST_WORD:
            return None
        least = min(bisect_right(self.mark_places, start), inside[0].first)
        most = max(bisect_left(self.mark_places, end) - 1, inside[-1].last)
        # An element that begins or ends with the word may go on to one of the others, as in `<i>x</i><sub>1</sub>`.
        outer = bisect_left(self.mark_places, start), bisect_right(self.mark_places, end) - 1
        for first in range(least, max(outer[0], least - 3) - 1, -1):
            for last in range(most, min(outer[1], most + 3) + 1):
                word = _Found(start, end, first, last)
                if _is_whole(self.source, word):
                    return word
        return None

    def is_symbol(self, one: _Found) -> bool:
        """Whether what stands before an element is a symbol that its number belongs to."""
        before = re.search(r"[^\W\d_]*\Z", self.source.text[max(0, one.start - 2 * _LONGEST_SYMBOL) : one.start])
        word = before[0] if before else ""
        if not word or not _core(self.source, one)[0].isalnum():
            return False
        raw = self.source.marks[one.first].raw
        return bool(_RAISED.search(raw) and _SYMBOL.match(word)) or (
            len(word) <= _LONGEST_SYMBOL and bool(_LOWERED.search(raw))
        )

    def _ends(self, span: Span, low: int) -> Span:
        text, (start, end) = self.source.text, span
        while start > low and end - start <= LONGEST_WORD and self._goes_on(start, text[start - 1]):
            start -= 1
        while end < len(text) and end - start <= LONGEST_WORD and self._goes_on(end, text[end]):
            end += 1
        while text[start] in PUNCTUATION and start not in self.edges:
            start += 1
        while text[end - 1] in PUNCTUATION and end not in self.edges:
            end -= 1
        return start, end

    def _goes_on(self, place: int, character: str) -> bool:
        """Whether a word goes on beyond a place, to a character of it."""
        ends = character.isspace() or character in "<>" or WITHOUT_SPACES.match(character)
        return place not in self.breaks and not ends


def _elements(source: TaggedText) -> Iterator[_Found]:
    """Yield the outermost elements that have content, but no letter to translate."""
    text = source.text
    letters, solid = [character.isalpha() for character in text], [not character.isspace() for character in text]
    within_parts = set[int]()
    for _, start, end in parts_of(source):
        letters[start:end] = [False] * (end - start)
        within_parts.update(range(start + 1, end))
    letters_before, solid_before = ([0, *accumulate(map(int, flags))] for flags in (letters, solid))
    waiting = [tag_tree(source)]
    while waiting:
        node = waiting.pop()
        start, end = node.span
        is_element = len(node.marks) == 2 and solid_before[start] < solid_before[end]
        if is_element and letters_before[start] == letters_before[end]:
            one = _Found(start, end, node.marks[0], node.marks[1])
            if start in within_parts or end in within_parts:  # it parts a placeholder
                continue
            if _is_whole(source, one) and (_stands_alone(text, one) or not set(text[start:end]) <= _SENTENCE):
                yield one
        else:
            waiting.extend(reversed(_with_content(node)))


def _with_content(node: TagNode) -> list[TagNode]:
    return [inner for inner in node.inside if inner.span[0] < inner.span[1]]


def _stands_alone(text: str, one: _Found) -> bool:
    """Whether white space or nothing is on both sides of an element."""
    start, end = one.start, one.end
    around = (text[start - 1 : start] if start else "") + text[end : end + 1]
    return not around.strip() and len(text[start:end].strip()) < len(text.strip())


def _is_whole(source: TaggedText, one: _Found) -> bool:
    """Whether no mark in it has its partner outside."""
    sides: dict[int, int] = {}
    for mark in source.marks[one.first : one.last + 1]:
        if mark.pair is not None:
            sides[mark.pair] = sides.get(mark.pair, 0) + (1 if mark.side is Side.opens else -1)
    return not any(sides.values())


def _breaks(source: TaggedText) -> set[int]:
    """Return the places of marks that part words as a space does."""
    return {mark.at for mark in source.marks if parts_words(mark)}


def _spells(character: str) -> bool:
    """Whether it is a letter or a digit of a script that puts spaces between words."""
    return character.isalnum() and not WITHOUT_SPACES.match(character)


def _is_attached(source: TaggedText, one: _Found, left: str, right: str) -> bool:
    """Whether an element belongs to a word or a sentence that it touches, as the number of a note does."""
    beside = [character for character in (left, right) if character.isalnum()]
    if not beside:
        return bool(left) and left in CLOSING
    if any(map(_spells, beside)):
        return True
    # Without spaces, only its look tells what is a note and what is a number of the sentence.
    return bool(_RAISED.search(source.marks[one.first].raw)) or not _core(source, one)[0].isalnum()


def _built(source: TaggedText, found: Sequence[_Found], hide: Sequence[bool]) -> tuple[Collapsed, list[int]]:
    """Return a text whose elements are marks and copies; and the numbers of those that can't be copies."""
    text: list[str] = []
    marks: list[Mark] = []
    shown: list[tuple[int, int, KeptElement]] = []
    size = at = mark_at = 0
    for i, one in enumerate(found):
        for mark in source.marks[mark_at : one.first]:
            marks.append(replace(mark, at=size + mark.at - at))
        text.append(source.text[at : one.start])
        size += one.start - at
        element = _element(source, one)
        content = source.text[one.start : one.end]
        at, mark_at = one.end, one.last + 1
        if hide[i]:
            marks.append(replace(element, at=size))
        else:
            shown.append((i, size + len(content) - len(content.lstrip()), element))
            text.append(content)
            size += len(content)
    for mark in source.marks[mark_at:]:
        marks.append(replace(mark, at=size + mark.at - at))
    text.append(source.text[at:])
    result = replace(source, text="".join(text), marks=tuple(marks))
    copies: list[Copy] = []
    spans: dict[str, list[Span]] = {}
    lost: list[int] = []
    for i, start, element in shown:
        core = _core(source, found[i])
        if core not in spans and len(copies) < MOST_COPIES:
            spans[core] = spans_of(core, result.text)
        own = start, start + len(core)
        if len(copies) == MOST_COPIES or own not in spans[core]:
            lost.append(i)
        else:
            copies.append(Copy(core, spans[core].index(own), start, element))
    return Collapsed(result, tuple(copies)), lost


def _element(source: TaggedText, one: _Found) -> KeptElement:
    text = source.text[one.start : one.end]
    inner = tuple(replace(mark, at=mark.at - one.start) for mark in source.marks[one.first : one.last + 1])
    content = TaggedText(text, inner)
    return KeptElement(one.start, content.whole, parts=tuple(content.parts))
