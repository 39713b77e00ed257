"""Tag projection: tags of a source are put into its translation by the word alignment.

The marks are a tree: an element is what stands between the two marks of a pair. It is put around the run of target
words that fits its source words best, inside of the run of the element that it stands in, and beside those of its
neighbours. So what is well nested stays so. A mark alone is put where the fewest links cross it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from translucid.data.non_translatable import kept_parts
from translucid.documents.stand_ins import WITHOUT_SPACES
from translucid.documents.tag_tree import TagNode, every_node, tag_tree
from translucid.documents.tagged_text import KeptElement, Mark, Side, TaggedText
from translucid.documents.word_links import FreePlaces, Indices, Links, Run, Span, Vector, WordLinks
from translucid.ground.cancellation import between_steps

NEAR, GLUED = 0.75, 3.0
"""What it is worth for a mark alone to stand beside a word that is linked to its neighbour, in links that cross it; and
to one with no space between."""
ACCELERATORS = frozenset("_&~")
"""Marks that stand before the letter of a key."""
_PARTS_WORDS = re.compile(r"<(?!wbr|!--|\?)|&(?:nbsp|ensp|emsp|thinsp|#160|#xa0);", re.IGNORECASE)
CLOSING = frozenset(".,;:!?…)]}»”’%。，、；：！？）」』")
"""No space goes before these."""


Places: TypeAlias = Indices
"""Characters of the target."""
_At = tuple[int, int]
"""The number of a mark of the source, and its place in the target."""


@dataclass(frozen=True)
class _Place:
    """Where a node goes in the target."""

    span: Span
    node: TagNode


def readable(source: TaggedText) -> TaggedText:
    """Return the text for the model.

    Where a mark alone such as `<br/>` stands between letters, there is a space; there is none before punctuation that
    only a mark parts from its word.

    >>> readable(TaggedText("Dear , onetwo", (Mark(5, "<x/>"), Mark(10, "<br/>")))).text
    'Dear, one two'
    """
    marks: list[Mark] = []
    text, done = "", 0
    alone = {i for node in every_node(tag_tree(source)) if node.span[0] == node.span[1] for i in node.marks}
    for i, mark in enumerate(source.marks):
        text, done = text + source.text[done : mark.at], max(done, mark.at)
        if i in alone:
            after = source.text[mark.at : mark.at + 1]
            if _parts_letters(source.text, mark):
                text += " " * (not text[-1:].isspace())
            elif isinstance(mark, KeptElement) and text[-1:].isspace() and after.isspace():
                done += 1  # one of the spaces around it is enough
            elif text[-1:].isspace() and text.strip() and after and after in CLOSING:
                text = text.rstrip()
                last = len(marks)
                while last and marks[last - 1].at > len(text):
                    last -= 1
                    marks[last] = replace(marks[last], at=len(text))
        marks.append(replace(mark, at=len(text)))
    return TaggedText(text + source.text[done:], tuple(marks))


def placed(source: TaggedText, translation: str, links: Links, unsplit: Iterable[Span] = ()) -> TaggedText:
    """Return the translation with all marks of its source, each once.

    White space at both ends is that of the source. What is well nested in the source is so in the translation. The text
    stays as it is, but for spaces beside marks.

    Args:
        source: what was translated.
        translation: of the text of `readable(source)`.
        links: between the words of both; without any, both are taken to have the same order.
        unsplit: spans of the translation, without white space at its ends, that no mark may part.
    """
    read = readable(source)
    before, after = _around(read.text)
    target = before + translation.strip() + after
    if not source.marks:
        return TaggedText(target)
    if not target.strip():
        return _spaced(source, target, [(i, 0) for i in range(len(source.marks))])
    unsplit = [(len(before) + start, len(before) + end) for start, end in unsplit]
    places = _outside(target, _Placing(read, target, links).marks(), unsplit)
    return _spaced(source, target, _in_order(source.marks, places))


class _Placing:
    """One text at work."""

    def __init__(self, source: TaggedText, target: str, links: Links) -> None:
        self.marked, self.source, self.target = source, source.text, target
        self.words = WordLinks(source.text, target, links)
        self._found: dict[str, list[int]] = {}

    def marks(self) -> list[_At]:
        """Return the marks of the source in the order of the target, each with its place there."""
        return list(self._within(_Place((0, len(self.target)), tag_tree(self.marked))))

    def _within(self, parent: _Place) -> Iterator[_At]:
        """Yield the marks inside of a node."""
        taken: list[_Place] = []
        free = FreePlaces(parent.span)
        nodes = parent.node.inside
        words = {
            i: found for i, node in enumerate(nodes) if self._spells(node) and (found := self.words.inside(node.span))
        }
        around = self.words.mass({word for found in words.values() for word in found})
        for i in sorted(words, key=lambda i: (-len(words[i]), nodes[i].span[0] - nodes[i].span[1])):
            between_steps()
            taken.append(self._element(nodes[i], words[i], around, parent, free, only=not taken))
            free.take(taken[-1].span)
        for i, node in enumerate(nodes):
            if i not in words:
                between_steps()
                place = self._wordless(node, parent, free)
                if place.span[0] < place.span[1]:  # no width is in nobody's way
                    free.take(place.span)
                taken.append(place)
        rank = {id(node): i for i, node in enumerate(nodes)}
        for place in sorted(taken, key=lambda place: (place.span, rank[id(place.node)])):
            yield place.node.marks[0], place.span[0]
            yield from self._within(place)
            for mark in place.node.marks[1:]:
                yield mark, place.span[1]

    def _spells(self, node: TagNode) -> bool:
        """Whether an element has a letter; signs and digits alone must not get one of the translation."""
        return any(map(str.isalpha, self.source[slice(*node.span)]))

    def _element(
        self, node: TagNode, inside: set[int], around: Vector, parent: _Place, free: FreePlaces, *, only: bool
    ) -> _Place:
        """Find the run of words for an element that has some; `only`: no other has been placed."""
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
        """Return the span of a run of target words; punctuation and white space at its ends are as in the source."""
        first, last = self.words.target[run.first], self.words.target[run.last]
        opening, closing = self.words.punctuation(node.span)
        bare = opening is None
        start, end = first.core_start, last.core_end
        behind = self.target[last.core_end : last.end]
        if closing and run.last == len(self.words.target) - 1 and not self.source[node.span[1] :].strip():
            end = last.end
        else:
            end += len(closing) if behind.startswith(closing) else 0
        if opening or (bare and end > last.core_end and self.target[first.start : first.core_start] in ("¿", "¡")):
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
        """Return the span of an element with all words of what it is in."""
        before, after = _around(self.target[slice(*span)])
        start, end = self._with_space(node, (span[0] + len(before), span[1] - len(after)))
        return max(start, span[0]), min(end, span[1])

    def _wordless(self, node: TagNode, parent: _Place, free: FreePlaces) -> _Place:
        """Find the place of a mark alone, or of an element that has no words, or none that are translated."""
        low, high = parent.span
        if (same := self._same(node, free)) is not None:
            return _Place(same, node)
        before, after = (0, 0) if parent.node.marks else map(len, _around(self.target))
        if self._leads(node, parent.node):
            at = low + min(node.span[0], before)
        elif self._ends(node, parent.node):
            at = high - min(len(self.source) - node.span[1], after)
        else:
            at = self._point(node.span[0], self.marked.marks[node.marks[0]].raw, free)
        at = free.nearest(at)
        return _Place((at, at), node)

    def _same(self, node: TagNode, free: FreePlaces) -> Span | None:
        """Return where the target has the punctuation that an element consists of, the nearest one in proportion."""
        text = self.source[slice(*node.span)].strip()
        if not text:
            return None
        starts = self._starts_of(text)
        wanted = node.span[0] / len(self.source) * len(self.target)
        behind = bisect_left(starts, wanted)
        before = behind - 1
        while before >= 0 or behind < len(starts):  # from the wanted place on to both sides
            back = behind == len(starts) or (before >= 0 and wanted - starts[before] <= starts[behind] - wanted)
            start = starts[before if back else behind]
            if free.containing(start, start + len(text)):
                return start, start + len(text)
            before, behind = (before - 1, behind) if back else (before, behind + 1)
        return None

    def _starts_of(self, text: str) -> list[int]:
        """Return where the target has a text."""
        if text not in self._found:
            starts, at = [], self.target.find(text)
            while at >= 0:
                starts.append(at)
                at = self.target.find(text, at + 1)
            self._found[text] = starts
        return self._found[text]

    def _point(self, at: int, raw: str, free: FreePlaces) -> int:
        """Return the free character before which a mark goes that stands before character `at` of the source."""
        words = self.words
        left = words.left_of(at)
        inner = words.touched((at, at + 1))
        if raw in ACCELERATORS and inner:
            return self._key(inner[0], self.source[at], free)
        near = [NEAR if side.isspace() else GLUED for side in (self.source[at - 1], self.source[at])]
        crossing = words.crossing(left)
        costs = crossing.copy()
        for word, shift, worth in ((left - 1, 1, near[0]), (left, 0, near[1])):
            targets, shares = words.shares_of(word)
            costs[targets + shift] -= worth * shares
        places = self._places_at_gaps[self._side(at, left)]
        edges = np.array([*free.lows, *free.highs])
        at_edges = crossing[np.searchsorted(words.middles, edges, side="right")]
        allowed = np.flatnonzero(free.hold(places))
        # What stands at an edge of a free place costs what crosses there, unless a gap is there.
        edges_alone = ~np.isin(edges, places[allowed])
        places = np.concatenate((places[allowed], edges[edges_alone]))
        price = np.concatenate((costs[allowed], at_edges[edges_alone])).round(9)
        return int(places[price == price.min()].min())

    @cached_property
    def _places_at_gaps(self) -> dict[str, Places]:
        """For each gap of the target, where a mark stands in it: by where it stands to words of the source."""
        target = self.words.target
        last = [word.core_end for word in target[-1:]]
        after_core = [0, *(word.core_end for word in target)]
        after = [0, *(word.end for word in target[:-1]), *last]
        return {
            "start": np.array([word.start for word in target] + (last or [0])),
            "core": np.array([word.core_start for word in target] + (last or [0])),
            "end": np.array(after_core),
            "between": np.array(after[: len(target) + 1]),
        }

    def _side(self, at: int, left: int) -> str:
        """Return where a place of the source is to the words beside it, the first `left` of which are before it."""
        words = self.words.source
        if left < len(words) and at in words[left][::2]:
            return "start" if at == words[left].start else "core"
        return "end" if left and at == words[left - 1].core_end else "between"

    def _key(self, word: int, letter: str, free: FreePlaces) -> int:
        """Return where the letter of a key is in what translates a word, or where that begins."""
        targets, shares = self.words.shares_of(word)
        found = self.words.target[targets[np.argmax(shares)] if len(targets) else 0]
        core = self.target[found.core_start : found.core_end]
        places = [found.core_start + i for i, other in enumerate(core) if other.casefold() == letter.casefold()]
        wanted = (place for place in [*places, found.core_start] if free.containing(place, place))
        return next(wanted, free.lows[0])

    def _leads(self, node: TagNode, parent: TagNode) -> bool:
        return not self.source[parent.span[0] : node.span[0]].strip()

    def _ends(self, node: TagNode, parent: TagNode) -> bool:
        return not self.source[node.span[1] : parent.span[1]].strip()


def _outside(target: str, places: list[_At], unsplit: Iterable[Span]) -> list[_At]:
    """Move what would stand inside of a placeholder, an address or the like to the nearer end of it."""
    spans: list[Span] = []
    for start, end in sorted([*unsplit, *((first, after) for _, first, after in kept_parts(target))]):
        if spans and start < spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    firsts = [first for first, _ in spans]
    found = []
    for i, at in places:
        before = bisect_left(firsts, at) - 1
        inside = spans[before] if before >= 0 and at < spans[before][1] else (at, at)
        found.append((i, min(inside, key=lambda edge: abs(edge - at))))
    return found


def _in_order(marks: Sequence[Mark], places: list[_At]) -> list[_At]:
    """Let no mark that closes stand before the one that opens, as it may where elements cross in the source."""
    closing: dict[int, int] = {}
    for j, (other, there) in enumerate(places):
        mark = marks[other]
        if mark.pair is None:
            continue
        if mark.side is Side.closes:
            closing.setdefault(mark.pair, j)
        elif mark.side is Side.opens and mark.pair in closing and other < places[closing[mark.pair]][0]:
            i = closing.pop(mark.pair)
            (one, at) = places[i]
            places[i], places[j] = (other, at), (one, there)
    return places


def _spaced(source: TaggedText, target: str, places: Sequence[_At]) -> TaggedText:
    """Write the marks into the text; spaces beside those alone are as in the source."""
    written: list[Mark] = []
    text, done, waiting, last = "", 0, False, 0
    alone = {i for node in every_node(tag_tree(source)) if node.span[0] == node.span[1] for i in node.marks}
    for i, at in places:
        mark = source.marks[i]
        if at > done:
            text += " " * (waiting and _wants_space(target[done : done + 1])) + target[done:at]
            done, waiting = at, False
        if i in alone:
            left, right = (
                _is_space(source.text[slice(*side)])
                for side in ((max(mark.at - 1, 0), mark.at), (mark.at, mark.at + 1))
            )
            if _parts_letters(source.text, mark):
                kept = written[-1].at if written else 0
                text, done = text[:kept] + text[kept:].rstrip(), len(target) - len(target[done:].lstrip())
            elif (left and text and not waiting and not text[-1].isspace()) or (waiting and mark.at > last):
                text += " "
            waiting, last = right, mark.at
        elif waiting and mark.side is Side.opens:
            text, waiting = text + " ", False
        written.append(replace(mark, at=len(text)))
    return TaggedText(text + " " * (waiting and _wants_space(target[done:])) + target[done:], tuple(written))


def _parts_letters(text: str, mark: Mark) -> bool:
    """Whether an element without content, such as `<br/>`, parts words as a space does, and there is none."""
    before, after = text[mark.at - 1 : mark.at], text[mark.at : mark.at + 1]
    between = (before.isalnum() or before in CLOSING) and bool(before) and after.isalnum()
    if isinstance(mark, KeptElement) and WITHOUT_SPACES.match(after):
        return False
    return between and parts_words(mark)


def parts_words(mark: Mark) -> bool:
    """Whether a mark, such as `<br/>`, parts words as a space does."""
    return mark.side is Side.alone and bool(_PARTS_WORDS.match(mark.raw))


def _is_space(character: str) -> bool:
    """Whether it is white space, or nothing, as at the end of a text."""
    return not character.strip()


def _wants_space(text: str) -> bool:
    return bool(text) and not text[0].isspace() and text[0] not in CLOSING


def _around(text: str) -> tuple[str, str]:
    """Return the white space at both ends of a text."""
    if not text.strip():
        return text, ""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
