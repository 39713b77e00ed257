"""Tag projection: put the tags of a source into its translation by the word alignment.

The marks are a tree: an element is the text between the two marks of a pair. It encloses the run of target
words that matches its source words best, inside the run of its parent element and beside those of its siblings. So
well-nested tags stay well nested. A single mark goes where the fewest links cross it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from bitext.cancellation import between_steps
from bitext.documents.tagged_text import (
    CLOSING,
    KeptElement,
    Mark,
    Side,
    TaggedText,
    TagNode,
    is_space,
    outer_space,
    separates_letters,
    tag_tree,
    walk,
    wants_space,
)
from bitext.documents.word_links import FreeSpans, Indices, Links, Run, Span, Vector, WordLinks, columns_of
from bitext.protected_spans import kept_parts
from bitext.words import INVISIBLE

NEAR, GLUED = 0.75, 3.0
"""The gain of a single mark beside a word that is linked to its neighbor in the source, in units of crossing links:
with a space between mark and neighbor, and without."""
ACCELERATORS = frozenset("_&~")
"""Markers of access keys, which stand before the letter of the key."""
_QUOTES = str.maketrans(dict.fromkeys("“”„«»‹›‘’'", '"'))
"""Quotation marks, which differ between languages."""

Offsets: TypeAlias = Indices
"""Offsets of characters in the target, `[N]`."""
_MarkOffset = tuple[int, int]
"""The index of a mark of the source, and its offset in the target."""


@dataclass(frozen=True)
class _Placement:
    """The span of a node in the target."""

    span: Span
    node: TagNode


def readable(source: TaggedText) -> TaggedText:
    """Return the text for the model.

    A single mark such as `<br/>` between letters becomes a space; a space that only a mark separates from punctuation
    is removed, and so are invisible characters in words, such as soft hyphens.

    >>> readable(TaggedText("Dear , onetwo", (Mark(5, "<x/>"), Mark(10, "<br/>")))).text
    'Dear, one two'
    """
    source = source.replaced(INVISIBLE, "") if INVISIBLE.search(source.text) else source
    marks: list[Mark] = []
    text, copied = "", 0
    single = _single_marks(source)
    for i, mark in enumerate(source.marks):
        text += source.text[copied : mark.offset]
        copied = max(copied, mark.offset)
        if i in single:
            following = source.text[mark.offset : mark.offset + 1]
            if separates_letters(source.text, mark):
                text += " " * (not text[-1:].isspace())
            elif isinstance(mark, KeptElement) and text[-1:].isspace() and following.isspace():
                copied += 1  # One of the spaces around an invisible element is enough.
            elif text[-1:].isspace() and text.strip() and following and following in CLOSING:
                text = text.rstrip()
                index = len(marks)
                while index and marks[index - 1].offset > len(text):
                    index -= 1
                    marks[index] = replace(marks[index], offset=len(text))
        marks.append(replace(mark, offset=len(text)))
    return TaggedText(text + source.text[copied:], tuple(marks))


def _single_marks(source: TaggedText) -> set[int]:
    """Return the indices of the marks around no text: single marks, and those of empty elements."""
    single = set[int]()
    for node in walk(tag_tree(source)):
        if node.span[0] == node.span[1]:
            single.update(node.marks)
    return single


def project_tags(source: TaggedText, translation: str, links: Links, unsplit: Iterable[Span] = ()) -> TaggedText:
    """Return the translation with all marks of its source, each once.

    White space at both ends is that of the source. Tags that are well nested in the source stay well nested. The text
    does not change, except for spaces beside marks.

    Args:
        source: the source.
        translation: a translation of `readable(source).text`.
        links: the links between the words of both; without links, the same word order is assumed.
        unsplit: spans of the translation, stripped of white space, that no mark may split.
    """
    readable_source = readable(source)
    before, after = outer_space(readable_source.text)
    target = before + translation.strip() + after
    if not source.marks:
        return TaggedText(target)
    if not target.strip():
        return _spaced(source, target, list(enumerate([0] * len(source.marks))))
    unsplit = [(len(before) + start, len(before) + end) for start, end in unsplit]
    offsets = _outside(target, _Projection(readable_source, target, links).marks(), unsplit)
    return _spaced(source, target, _in_order(source.marks, offsets))


class _Projection:
    """The projection of the marks of one text."""

    def __init__(self, source: TaggedText, target: str, links: Links) -> None:
        self.marked, self.source, self.target = source, source.text, target
        self.words = WordLinks(source.text, target, links)
        self._starts: dict[str, list[int]] = {}

    def marks(self) -> list[_MarkOffset]:
        """Return the marks of the source in the order of the target, each with its offset there."""
        return list(self._within(_Placement((0, len(self.target)), tag_tree(self.marked))))

    def _within(self, parent: _Placement) -> Iterator[_MarkOffset]:
        """Place the nodes in a placed node, and yield their marks."""
        placements: list[_Placement] = []
        free = FreeSpans(parent.span)
        nodes = parent.node.children
        words_of_node: dict[int, set[int]] = {}
        for i, node in enumerate(nodes):
            # Elements without letters must not enclose a letter of the translation.
            has_letters = any(map(str.isalpha, self.source[slice(*node.span)]))
            if has_letters and (source_words := self.words.covered_words(node.span)):
                words_of_node[i] = source_words
        sibling_mass = self.words.mass(set[int]().union(*words_of_node.values()))
        # The largest elements come first; smaller ones fit into the remaining free spans.
        for i in sorted(words_of_node, key=lambda i: (-len(words_of_node[i]), nodes[i].span[0] - nodes[i].span[1])):
            between_steps()
            placements.append(
                self._element(nodes[i], words_of_node[i], sibling_mass, parent, free, is_only=not placements)
            )
            free.take(placements[-1].span)
        for i, node in enumerate(nodes):
            if i not in words_of_node:
                between_steps()
                placement = self._wordless(node, parent, free)
                if placement.span[0] < placement.span[1]:  # An empty span takes no space from others.
                    free.take(placement.span)
                placements.append(placement)
        rank = {id(node): i for i, node in enumerate(nodes)}
        for placement in sorted(placements, key=lambda placement: (placement.span, rank[id(placement.node)])):
            yield placement.node.marks[0], placement.span[0]
            yield from self._within(placement)
            for mark in placement.node.marks[1:]:
                yield mark, placement.span[1]

    def _element(
        self,
        node: TagNode,
        source_words: set[int],
        sibling_mass: Vector,
        parent: _Placement,
        free: FreeSpans,
        *,
        is_only: bool,
    ) -> _Placement:
        """Place an element with words; `is_only`: no other element has been placed."""
        is_first, is_last = self._is_first(node, parent.node), self._is_last(node, parent.node)
        if is_first and is_last and is_only:
            return _Placement(self._without_outer_space(node, parent.span), node)
        run = self.words.best_run(source_words, sibling_mass, free)
        if run is None:
            return self._wordless(node, parent, free)
        run = self.words.grown(run, is_first, is_last)
        start, end = self.words.part_of_word(node.span, run) or self._edges(node, run)
        start = max(start, run.low)
        return _Placement((start, max(start, min(end, run.high))), node)

    def _edges(self, node: TagNode, run: Run) -> Span:
        """Return the span of a run of target words, with the punctuation and white space of the source at its ends."""
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
        """Return the span of an element that contains all words of its parent."""
        before, after = outer_space(self.target[slice(*span)])
        start, end = self._with_space(node, (span[0] + len(before), span[1] - len(after)))
        return max(start, span[0]), min(end, span[1])

    def _wordless(self, node: TagNode, parent: _Placement, free: FreeSpans) -> _Placement:
        """Place a single mark, or an element without words or without translated words."""
        low, high = parent.span
        if (same_text := self._same_text(node, free)) is not None:
            return _Placement(same_text, node)
        before = after = 0
        if not parent.node.marks:  # At the ends of the whole text, marks keep their position in the white space.
            before, after = map(len, outer_space(self.target))
        if self._is_first(node, parent.node):
            offset = low + min(node.span[0], before)
        elif self._is_last(node, parent.node):
            offset = high - min(len(self.source) - node.span[1], after)
        else:
            offset = self._point(node.span[0], self.marked.marks[node.marks[0]].raw, free)
        offset = free.nearest(offset)
        return _Placement((offset, offset), node)

    def _same_text(self, node: TagNode, free: FreeSpans) -> Span | None:
        """Return the target span with the same text as an element, nearest to its relative position in the source."""
        text = self.source[slice(*node.span)].strip()
        if not text:
            return None
        starts = self._starts_of(text)
        expected = node.span[0] / len(self.source) * len(self.target)
        index = bisect_left(starts, expected)
        # Search from the expected offset in both directions: a text may have thousands of such elements.
        starts_before = map(starts.__getitem__, range(index - 1, -1, -1))
        starts_after = map(starts.__getitem__, range(index, len(starts)))
        for start in merge(starts_before, starts_after, key=lambda start: abs(start - expected)):
            if free.containing(start, start + len(text)):
                return start, start + len(text)
        return None

    def _starts_of(self, text: str) -> list[int]:
        """Return the offsets of a text in the target."""
        if text not in self._starts:
            starts, start = [], self.target.find(text)
            while start >= 0:
                starts.append(start)
                start = self.target.find(text, start + 1)
            self._starts[text] = starts
        return self._starts[text]

    def _point(self, offset: int, raw: str, free: FreeSpans) -> int:
        """Return the free offset in the target for a mark at offset `offset` of the source."""
        words = self.words
        left_count = words.left_of(offset)
        touched = words.touched((offset, offset + 1))
        if raw in ACCELERATORS and touched:
            return self._key(touched[0], self.source[offset], free)
        crossing = words.crossing(left_count)  # [T + 1], for each gap between target words
        gap_costs = crossing.copy()
        # The gaps after the translation of the left neighbor and before that of the right neighbor cost less.
        for word, shift, neighbor in (
            (left_count - 1, 1, self.source[offset - 1]),
            (left_count, 0, self.source[offset]),
        ):
            targets, shares = words.shares_of(word)
            gap_costs[targets + shift] -= (NEAR if neighbor.isspace() else GLUED) * shares
        offsets = self._gap_offsets[self._side(offset, left_count)]
        edges = np.array([*free.lows, *free.highs])
        edge_costs = crossing[np.searchsorted(words.middles, edges, side="right")]
        allowed = np.flatnonzero(free.contain(offsets))
        # An edge of a free span costs the links that cross it, unless it is at a gap.
        edges_alone = ~np.isin(edges, offsets[allowed])
        offsets = np.concatenate((offsets[allowed], edges[edges_alone]))
        # Rounded, because sums of equal costs may differ in their last digits.
        candidate_costs = np.concatenate((gap_costs[allowed], edge_costs[edges_alone])).round(9)
        return int(offsets[candidate_costs == candidate_costs.min()].min())

    @cached_property
    def _gap_offsets(self) -> dict[str, Offsets]:
        """The offset of a mark in each gap of the target, by its side of a source word."""
        starts, ends, core_starts, core_ends = columns_of(self.words.target)
        last = core_ends[-1:] or [0]
        return {
            "start": np.array(starts + last),
            "core": np.array(core_starts + last),
            "end": np.array([0, *core_ends]),
            "between": np.array([0, *ends[:-1], *core_ends[-1:]]),
        }

    def _side(self, offset: int, left_count: int) -> str:
        """Return on which side of a source word an offset is; `left_count` words are before it."""
        words = self.words.source
        if left_count < len(words) and offset == words[left_count].start:
            return "start"
        if left_count < len(words) and offset == words[left_count].core_start:
            return "core"
        if left_count and offset == words[left_count - 1].core_end:
            return "end"
        return "between"

    def _key(self, word: int, letter: str, free: FreeSpans) -> int:
        """Return the offset of an access key's letter in the translation of a word, else the start of that."""
        targets, shares = self.words.shares_of(word)
        translation = self.words.target[targets[np.argmax(shares)] if len(targets) else 0]
        start = translation.core_start
        core = self.target[start : translation.core_end]
        offsets = [start + i for i, candidate in enumerate(core) if candidate.casefold() == letter.casefold()]
        for offset in [*offsets, start]:
            if free.containing(offset, offset):
                return offset
        return free.lows[0]

    def _is_first(self, node: TagNode, parent: TagNode) -> bool:
        return not self.source[parent.span[0] : node.span[0]].strip()

    def _is_last(self, node: TagNode, parent: TagNode) -> bool:
        return not self.source[node.span[1] : parent.span[1]].strip()


def _outside(target: str, offsets: list[_MarkOffset], unsplit: Iterable[Span]) -> list[_MarkOffset]:
    """Move marks that would split a placeholder or an address to its nearer end."""
    spans: list[Span] = []
    for start, end in sorted([*unsplit, *((start, end) for _, start, end in kept_parts(target))]):
        if spans and start < spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    moved = []
    for i, offset in offsets:
        index = bisect_left(spans, offset, key=itemgetter(0)) - 1
        if index >= 0 and offset < spans[index][1]:
            offset = min(spans[index], key=lambda edge: abs(edge - offset))
        moved.append((i, offset))
    return moved


def _in_order(marks: Sequence[Mark], offsets: list[_MarkOffset]) -> list[_MarkOffset]:
    """Swap marks of a pair if the closing one comes first, as may happen if elements overlap in the source."""
    closing: dict[int, int] = {}
    for j, (opening_mark, opening_offset) in enumerate(offsets):
        mark = marks[opening_mark]
        if mark.pair is None:
            continue
        if mark.side is Side.closes:
            closing.setdefault(mark.pair, j)
        elif mark.side is Side.opens and mark.pair in closing and opening_mark < offsets[closing[mark.pair]][0]:
            i = closing.pop(mark.pair)
            closing_mark, closing_offset = offsets[i]
            offsets[i], offsets[j] = (opening_mark, closing_offset), (closing_mark, opening_offset)
    return offsets


def _spaced(source: TaggedText, target: str, offsets: Sequence[_MarkOffset]) -> TaggedText:
    """Insert the marks into the target; single marks keep the spaces beside them from the source."""
    marks: list[Mark] = []
    text = ""
    copied = 0  # the end of the part of the target that is in `text`
    last_offset = 0  # the offset of the last single mark in the source
    needs_space = False  # whether a space is due before the next words
    single = _single_marks(source)
    for i, offset in offsets:
        mark = source.marks[i]
        if offset > copied:
            text += " " * (needs_space and wants_space(target[copied : copied + 1])) + target[copied:offset]
            copied, needs_space = offset, False
        if i in single:
            space_before = is_space(source.text[max(mark.offset - 1, 0) : mark.offset])
            if separates_letters(source.text, mark):
                start = marks[-1].offset if marks else 0
                text = text[:start] + text[start:].rstrip()
                copied = len(target) - len(target[copied:].lstrip())
            elif (space_before and text and not needs_space and not text[-1].isspace()) or (
                needs_space and mark.offset > last_offset
            ):
                text += " "
            needs_space = is_space(source.text[mark.offset : mark.offset + 1])
            last_offset = mark.offset
        elif needs_space and mark.side is Side.opens:
            text, needs_space = text + " ", False
        marks.append(replace(mark, offset=len(text)))
    text += " " * (needs_space and wants_space(target[copied:])) + target[copied:]
    return TaggedText(text, tuple(marks))
