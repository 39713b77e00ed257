"""Tag projection: put the tags of a source into its translation by the word alignment.

The marks are a tree: an element is the text between the two marks of a pair. It goes around the run of target words
that fits its source words best, within the run of its parent element, and beside those of its siblings. So well nested
tags stay well nested. A single mark goes where the fewest links cross it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from translucid.data.non_translatable import kept_parts
from translucid.documents.stand_ins import WITHOUT_SPACES
from translucid.documents.tag_tree import TagNode, every_node, tag_tree
from translucid.documents.tagged_text import KeptElement, Mark, Side, TaggedText
from translucid.documents.word_links import FreePlaces, Indices, Links, Run, Span, Vector, WordLinks, columns_of
from translucid.ground.cancellation import between_steps

NEAR, GLUED = 0.75, 3.0
"""The gain of a single mark beside a word that is linked to its neighbour in the source, in units of crossing links:
with a space between mark and neighbour, and without."""
ACCELERATORS = frozenset("_&~")
"""Markers of access keys, which stand before the letter of the key."""
_PARTS_WORDS = re.compile(r"<(?!wbr|!--|\?)|&(?:nbsp|ensp|emsp|thinsp|#160|#xa0);", re.IGNORECASE)
CLOSING = frozenset(".,;:!?…)]}»”’%。，、；：！？）」』")
"""Characters without a space before them."""
_QUOTES = str.maketrans(dict.fromkeys("“”„«»‹›‘’'", '"'))
"""Quotation marks, which differ between languages."""

Places: TypeAlias = Indices
"""Offsets in the target."""
_At = tuple[int, int]
"""The index of a mark of the source, and its offset in the target."""


@dataclass(frozen=True)
class _Place:
    """The place of a node in the target."""

    span: Span
    node: TagNode


def readable(source: TaggedText) -> TaggedText:
    """Return the text for the model.

    A single mark such as `<br/>` between letters becomes a space; a space that only a mark separates from punctuation
    is removed.

    >>> readable(TaggedText("Dear , onetwo", (Mark(5, "<x/>"), Mark(10, "<br/>")))).text
    'Dear, one two'
    """
    marks: list[Mark] = []
    text, done = "", 0
    single = _single_marks(source)
    for i, mark in enumerate(source.marks):
        text, done = text + source.text[done : mark.at], max(done, mark.at)
        if i in single:
            after = source.text[mark.at : mark.at + 1]
            if _separates_letters(source.text, mark):
                text += " " * (not text[-1:].isspace())
            elif isinstance(mark, KeptElement) and text[-1:].isspace() and after.isspace():
                done += 1  # One of the spaces around an invisible element is enough.
            elif text[-1:].isspace() and text.strip() and after and after in CLOSING:
                text = text.rstrip()
                last = len(marks)
                while last and marks[last - 1].at > len(text):
                    last -= 1
                    marks[last] = replace(marks[last], at=len(text))
        marks.append(replace(mark, at=len(text)))
    return TaggedText(text + source.text[done:], tuple(marks))


def _single_marks(source: TaggedText) -> set[int]:
    """Return the indices of the marks around no text: single marks, and those of empty elements."""
    single = set[int]()
    for node in every_node(tag_tree(source)):
        if node.span[0] == node.span[1]:
            single.update(node.marks)
    return single


def placed(source: TaggedText, translation: str, links: Links, unsplit: Iterable[Span] = ()) -> TaggedText:
    """Return the translation with all marks of its source, each once.

    White space at both ends is that of the source. Tags that are well nested in the source are so in the translation.
    The text does not change, except spaces beside marks.

    Args:
        source: the source.
        translation: a translation of `readable(source).text`.
        links: the links between the words of both; without any, both are assumed to have the same word order.
        unsplit: spans of the translation, stripped of white space, that no mark may split.
    """
    read = readable(source)
    before, after = _around(read.text)
    target = before + translation.strip() + after
    if not source.marks:
        return TaggedText(target)
    if not target.strip():
        return _spaced(source, target, list(enumerate([0] * len(source.marks))))
    unsplit = [(len(before) + start, len(before) + end) for start, end in unsplit]
    places = _outside(target, _Projection(read, target, links).marks(), unsplit)
    return _spaced(source, target, _in_order(source.marks, places))


class _Projection:
    """The projection of the marks of one text."""

    def __init__(self, source: TaggedText, target: str, links: Links) -> None:
        self.marked, self.source, self.target = source, source.text, target
        self.words = WordLinks(source.text, target, links)
        self._starts: dict[str, list[int]] = {}

    def marks(self) -> list[_At]:
        """Return the marks of the source in the order of the target, each with its offset there."""
        return list(self._within(_Place((0, len(self.target)), tag_tree(self.marked))))

    def _within(self, parent: _Place) -> Iterator[_At]:
        """Yield the marks in a node that has been placed."""
        taken: list[_Place] = []
        free = FreePlaces(parent.span)
        nodes = parent.node.inside
        words: dict[int, set[int]] = {}
        for i, node in enumerate(nodes):
            # Elements of signs and digits must not get a letter of the translation.
            has_letters = any(map(str.isalpha, self.source[slice(*node.span)]))
            if has_letters and (inside := self.words.inside(node.span)):
                words[i] = inside
        around = self.words.mass(set[int]().union(*words.values()))
        # The largest elements first; smaller ones fit into the places that remain.
        for i in sorted(words, key=lambda i: (-len(words[i]), nodes[i].span[0] - nodes[i].span[1])):
            between_steps()
            taken.append(self._element(nodes[i], words[i], around, parent, free, only=not taken))
            free.take(taken[-1].span)
        for i, node in enumerate(nodes):
            if i not in words:
                between_steps()
                place = self._wordless(node, parent, free)
                if place.span[0] < place.span[1]:  # An empty place leaves room for others.
                    free.take(place.span)
                taken.append(place)
        rank = {id(node): i for i, node in enumerate(nodes)}
        for place in sorted(taken, key=lambda place: (place.span, rank[id(place.node)])):
            yield place.node.marks[0], place.span[0]
            yield from self._within(place)
            for mark in place.node.marks[1:]:
                yield mark, place.span[1]

    def _element(
        self, node: TagNode, inside: set[int], around: Vector, parent: _Place, free: FreePlaces, *, only: bool
    ) -> _Place:
        """Place an element with words; `only`: no other element has been placed."""
        leads, ends = self._leads(node, parent.node), self._ends(node, parent.node)
        if leads and ends and only:
            return _Place(self._without_outer_space(node, parent.span), node)
        run = self.words.best_run(inside, around, free)
        if run is None:
            return self._wordless(node, parent, free)
        run = self.words.grown(run, leads, ends)
        start, end = self.words.part_of_word(node.span, run) or self._edges(node, run)
        start = max(start, run.low)
        return _Place((start, max(start, min(end, run.high))), node)

    def _edges(self, node: TagNode, run: Run) -> Span:
        """Return the span of a run of target words, with punctuation and white space at its ends as in the source."""
        first, last = self.words.target[run.first], self.words.target[run.last]
        opening, closing = self.words.punctuation(node.span)
        start, end = first.core_start, last.core_end
        if closing and run.last == len(self.words.target) - 1 and not self.source[node.span[1] :].strip():
            end = last.end
        elif self.target[last.core_end : last.end].translate(_QUOTES).startswith(closing.translate(_QUOTES)):
            end += len(closing)
        # In Spanish, questions and exclamations have a sign at their beginning too.
        is_spanish = self.target[first.start : first.core_start] in ("¿", "¡")
        if opening or (opening is None and end > last.core_end and is_spanish):
            start = first.start
        return self._with_space(node, (start, end))

    def _with_space(self, node: TagNode, span: Span) -> Span:
        start, end = span
        if self.source[node.span[0]].isspace():
            start = len(self.target[:start].rstrip())
        if self.source[node.span[1] - 1].isspace():
            end = len(self.target) - len(self.target[end:].lstrip())
        return start, end

    def _without_outer_space(self, node: TagNode, span: Span) -> Span:
        """Return the span of an element with all words of its parent."""
        before, after = _around(self.target[slice(*span)])
        start, end = self._with_space(node, (span[0] + len(before), span[1] - len(after)))
        return max(start, span[0]), min(end, span[1])

    def _wordless(self, node: TagNode, parent: _Place, free: FreePlaces) -> _Place:
        """Place a single mark, or an element without words, or without translated words."""
        low, high = parent.span
        if (same := self._same(node, free)) is not None:
            return _Place(same, node)
        before = after = 0
        if not parent.node.marks:  # At the ends of the whole text, marks keep their place in the white space.
            before, after = map(len, _around(self.target))
        if self._leads(node, parent.node):
            at = low + min(node.span[0], before)
        elif self._ends(node, parent.node):
            at = high - min(len(self.source) - node.span[1], after)
        else:
            at = self._point(node.span[0], self.marked.marks[node.marks[0]].raw, free)
        at = free.nearest(at)
        return _Place((at, at), node)

    def _same(self, node: TagNode, free: FreePlaces) -> Span | None:
        """Return the span in the target with the same text as an element, the nearest to the proportional place."""
        text = self.source[slice(*node.span)].strip()
        if not text:
            return None
        starts = self._starts_of(text)
        wanted = node.span[0] / len(self.source) * len(self.target)
        behind = bisect_left(starts, wanted)
        # Search from the wanted place to both sides: a text may have thousands of such elements.
        starts_before = map(starts.__getitem__, range(behind - 1, -1, -1))
        starts_behind = map(starts.__getitem__, range(behind, len(starts)))
        for start in merge(starts_before, starts_behind, key=lambda start: abs(start - wanted)):
            if free.containing(start, start + len(text)):
                return start, start + len(text)
        return None

    def _starts_of(self, text: str) -> list[int]:
        """Return the offsets of a text in the target."""
        if text not in self._starts:
            starts, at = [], self.target.find(text)
            while at >= 0:
                starts.append(at)
                at = self.target.find(text, at + 1)
            self._starts[text] = starts
        return self._starts[text]

    def _point(self, at: int, raw: str, free: FreePlaces) -> int:
        """Return the free offset in the target for a mark at offset `at` of the source."""
        words = self.words
        left = words.left_of(at)
        inner = words.touched((at, at + 1))
        if raw in ACCELERATORS and inner:
            return self._key(inner[0], self.source[at], free)
        crossing = words.crossing(left)  # [T + 1], for each gap between target words
        costs = crossing.copy()
        # The gap after the translation of the left neighbour costs less, and that before that of the right one.
        for word, shift, neighbour in ((left - 1, 1, self.source[at - 1]), (left, 0, self.source[at])):
            targets, shares = words.shares_of(word)
            costs[targets + shift] -= (NEAR if neighbour.isspace() else GLUED) * shares
        places = self._places_at_gaps[self._side(at, left)]
        edges = np.array([*free.lows, *free.highs])
        at_edges = crossing[np.searchsorted(words.middles, edges, side="right")]
        allowed = np.flatnonzero(free.hold(places))
        # An edge of a free place costs the links that cross it, unless a gap is there.
        edges_alone = ~np.isin(edges, places[allowed])
        places = np.concatenate((places[allowed], edges[edges_alone]))
        # Rounded, as sums of equal costs may differ in their last digits.
        cost = np.concatenate((costs[allowed], at_edges[edges_alone])).round(9)
        return int(places[cost == cost.min()].min())

    @cached_property
    def _places_at_gaps(self) -> dict[str, Places]:
        """The offset of a mark in each gap of the target, by the side of the source words on which it stands."""
        starts, ends, core_starts, core_ends = columns_of(self.words.target)
        last = core_ends[-1:] or [0]
        return {
            "start": np.array(starts + last),
            "core": np.array(core_starts + last),
            "end": np.array([0, *core_ends]),
            "between": np.array([0, *ends[:-1], *core_ends[-1:]]),
        }

    def _side(self, at: int, left: int) -> str:
        """Return on which side of a source word an offset is; `left` words are before it."""
        words = self.words.source
        if left < len(words) and at == words[left].start:
            return "start"
        if left < len(words) and at == words[left].core_start:
            return "core"
        if left and at == words[left - 1].core_end:
            return "end"
        return "between"

    def _key(self, word: int, letter: str, free: FreePlaces) -> int:
        """Return the offset of an access key's letter in the translation of a word, or of its beginning."""
        targets, shares = self.words.shares_of(word)
        translation = self.words.target[targets[np.argmax(shares)] if len(targets) else 0]
        start = translation.core_start
        core = self.target[start : translation.core_end]
        places = [start + i for i, candidate in enumerate(core) if candidate.casefold() == letter.casefold()]
        for place in [*places, start]:
            if free.containing(place, place):
                return place
        return free.lows[0]

    def _leads(self, node: TagNode, parent: TagNode) -> bool:
        return not self.source[parent.span[0] : node.span[0]].strip()

    def _ends(self, node: TagNode, parent: TagNode) -> bool:
        return not self.source[node.span[1] : parent.span[1]].strip()


def _outside(target: str, places: list[_At], unsplit: Iterable[Span]) -> list[_At]:
    """Move marks that would split a placeholder, an address or the like to its nearer end."""
    spans: list[Span] = []
    for start, end in sorted([*unsplit, *((start, end) for _, start, end in kept_parts(target))]):
        if spans and start < spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    moved = []
    for i, at in places:
        before = bisect_left(spans, at, key=itemgetter(0)) - 1
        if before >= 0 and at < spans[before][1]:
            at = min(spans[before], key=lambda edge: abs(edge - at))
        moved.append((i, at))
    return moved


def _in_order(marks: Sequence[Mark], places: list[_At]) -> list[_At]:
    """Swap closing marks that come before their opening mark, as may happen if elements overlap in the source."""
    closing: dict[int, int] = {}
    for j, (opening_mark, opening_at) in enumerate(places):
        mark = marks[opening_mark]
        if mark.pair is None:
            continue
        if mark.side is Side.closes:
            closing.setdefault(mark.pair, j)
        elif mark.side is Side.opens and mark.pair in closing and opening_mark < places[closing[mark.pair]][0]:
            i = closing.pop(mark.pair)
            closing_mark, closing_at = places[i]
            places[i], places[j] = (opening_mark, closing_at), (closing_mark, opening_at)
    return places


def _spaced(source: TaggedText, target: str, places: Sequence[_At]) -> TaggedText:
    """Insert the marks into the target; single marks have spaces beside them as in the source."""
    written: list[Mark] = []
    text, done, waiting, last = "", 0, False, 0  # waiting: a space is due before the next words
    single = _single_marks(source)
    for i, at in places:
        mark = source.marks[i]
        if at > done:
            text += " " * (waiting and _wants_space(target[done : done + 1])) + target[done:at]
            done, waiting = at, False
        if i in single:
            left = _is_space(source.text[max(mark.at - 1, 0) : mark.at])
            if _separates_letters(source.text, mark):
                kept = written[-1].at if written else 0
                text, done = text[:kept] + text[kept:].rstrip(), len(target) - len(target[done:].lstrip())
            elif (left and text and not waiting and not text[-1].isspace()) or (waiting and mark.at > last):
                text += " "
            waiting, last = _is_space(source.text[mark.at : mark.at + 1]), mark.at
        elif waiting and mark.side is Side.opens:
            text, waiting = text + " ", False
        written.append(replace(mark, at=len(text)))
    return TaggedText(text + " " * (waiting and _wants_space(target[done:])) + target[done:], tuple(written))


def _separates_letters(text: str, mark: Mark) -> bool:
    """Whether a single mark, such as `<br/>`, separates words between which there is no space."""
    before, after = text[mark.at - 1 : mark.at], text[mark.at : mark.at + 1]
    between = (before.isalnum() or before in CLOSING) and bool(before) and after.isalnum()
    if isinstance(mark, KeptElement) and WITHOUT_SPACES.match(after):
        return False
    return between and separates_words(mark)


def separates_words(mark: Mark) -> bool:
    """Whether a mark, such as `<br/>`, separates words as a space does."""
    return mark.side is Side.alone and bool(_PARTS_WORDS.match(mark.raw))


def _is_space(character: str) -> bool:
    """Whether a character is white space, or missing, as at the end of a text."""
    return not character.strip()


def _wants_space(text: str) -> bool:
    return bool(text) and not text[0].isspace() and text[0] not in CLOSING


def _around(text: str) -> tuple[str, str]:
    """Return the white space at both ends of a text."""
    if not text.strip():
        return text, ""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
