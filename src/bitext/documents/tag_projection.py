"""Tag projection: put the tags of a source into its translation by the word alignment.

The marks are a tree: an element is the text between the two marks of a pair. It encloses the run of target
words that matches its source words best, inside the run of its parent element and beside those of its siblings. So
well-nested tags stay well nested. A single mark goes where the fewest links cross it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
from bitext.protected_spans import kept_parts
from bitext.words import INVISIBLE, LINKED_WORD

Vector: TypeAlias = NDArray[np.float64]
"""One number for each target word, `[T]`."""
Indices: TypeAlias = NDArray[np.int64]

Links = Sequence[tuple[int, int, float]]
"""Links as the index of a source word, the index of a target word, and a weight in any unit; words are
those of `linked_words`."""
Span = tuple[int, int]
"""The start and end of a range of characters."""

FAINT = 0.2
"""The share of a word's links above which it counts as translated by an element."""
PUNCTUATION = frozenset(".,;:!?…()[]\"'“”‘’„«»‹›¿¡。，、；：！？（）「」『』।")
"""Punctuation before and after words; `%`, `{` and others belong to placeholders."""
_STRIPPED = "".join(PUNCTUATION)
_HALF = 0.5
"""The share of a word that a span must cover to contain it."""
_NOISE = 1e-9
"""Sums that differ by less count as equal: their order of addition may differ."""
_NO_LINKS = np.zeros(0, np.int64), np.zeros(0)
NEAR, GLUED = 0.75, 3.0
"""The gain of a single mark beside a word that is linked to its neighbor in the source, in units of crossing links:
with a space between mark and neighbor, and without."""
ACCELERATORS = frozenset("_&~")
"""Markers of access keys, which stand before the letter of the key."""
_QUOTES = str.maketrans(dict.fromkeys("“”„«»‹›‘’'", '"'))
"""Quotation marks, which differ between languages."""

_MarkOffset = tuple[int, int]
"""The index of a mark of the source, and its offset in the target."""


class Word(NamedTuple):
    """A word between spaces."""

    start: int
    end: int
    core_start: int
    """The start of the word without its punctuation."""
    core_end: int


class Run(NamedTuple):
    """Adjacent target words."""

    first: int
    last: int
    low: int
    """The start of the free span that contains them, in characters of the target."""
    high: int


class FreeSpans:
    """The free spans of the target, between the spans that elements have taken; they may be empty."""

    def __init__(self, span: Span) -> None:
        self.lows, self.highs = [span[0]], [span[1]]

    def take(self, span: Span) -> None:
        """Split the first free span that contains a span into the parts before and after it."""
        start, end = span
        i = bisect_left(self.highs, end)
        i = min(i, len(self.lows) - 1)
        self.highs.insert(i, start)
        self.lows.insert(i + 1, end)

    def containing(self, start: int, end: int) -> Span | None:
        """Return the free span that contains a span, if there is one."""
        i = bisect_left(self.highs, end)
        if i == len(self.lows) or start < self.lows[i]:
            return None
        return self.lows[i], self.highs[i]

    def contain(self, offsets: Indices) -> NDArray[np.bool_]:
        """Return for each offset whether it is in a free span."""
        indices = np.searchsorted(self.highs, offsets)
        return np.array([*self.lows, np.inf])[indices] <= offsets

    def nearest(self, offset: int) -> int:
        """Return the nearest offset in a free span."""
        i = bisect_left(self.highs, offset)
        edges = self.highs[max(i - 1, 0) : i]
        if i < len(self.lows):
            edges.append(max(offset, self.lows[i]))
        return min(edges, key=lambda edge: abs(edge - offset))


class WordLinks:
    """Two texts and the links between their words."""

    def __init__(self, source: str, target: str, links: Links) -> None:
        """Ignore links to words that do not exist; without links, assume the same word order in both texts."""
        self.texts = source, target
        self.source, self.target = words_of(source), words_of(target)
        sizes = len(self.source), len(self.target)
        if not links and all(sizes):
            links = [(t * sizes[0] // sizes[1], t, 1.0) for t in range(sizes[1])]
        self.shares: list[dict[int, float]] = [{} for _ in self.target]
        for s, t, weight in links:
            if 0 <= s < sizes[0] and 0 <= t < sizes[1] and weight > 0:
                self.shares[t][s] = self.shares[t].get(s, 0.0) + weight
        targets_of, shares_of = defaultdict[int, list[int]](list), defaultdict[int, list[float]](list)
        for t, shares in enumerate(self.shares):
            total = sum(shares.values())
            for s in shares:
                shares[s] /= total
                targets_of[s].append(t)
                shares_of[s].append(shares[s])
        # For each source word: the target words that it is linked to, and its share of each.
        self._of_source: dict[int, tuple[Indices, Vector]] = {}
        for s, targets in targets_of.items():
            self._of_source[s] = np.array(targets, np.int64), np.array(shares_of[s])
        # The number of source words left of the last cut, and their mass: cuts move from left to right.
        self._on_left = 0, np.zeros(len(self.target))
        self.linked = np.array(list(map(bool, self.shares)), bool)
        _, _, self._starts, self._ends = columns_of(self.target)
        _, _, self._source_starts, self._source_ends = columns_of(self.source)
        self._source_middles = list(map(_middle, self.source))

    def touched(self, span: Span) -> range:
        """Return the source words that overlap a span by at least one letter."""
        return range(bisect_right(self._source_ends, span[0]), bisect_left(self._source_starts, span[1]))

    def covered_words(self, span: Span) -> set[int]:
        """Return the source words of which a span covers at least half, else the one that it covers most."""
        shares: dict[int, float] = {}
        for i in self.touched(span):
            word = self.source[i]
            covered = min(word.core_end, span[1]) - max(word.core_start, span[0])
            if covered > 0:
                shares[i] = covered / (word.core_end - word.core_start)
        words = {i for i, share in shares.items() if share >= _HALF}
        if words or not shares:
            return words
        return {max(shares, key=shares.__getitem__)}

    def mass(self, words: Iterable[int]) -> Vector:
        """Return for each target word the share of its links to the given source words."""
        mass = np.zeros(len(self.target))
        for s in words:
            targets, shares = self.shares_of(s)
            mass[targets] += shares
        return mass

    def weights(self, source_words: set[int], sibling_mass: Vector) -> Vector:
        """Return for each target word the gain of having it in an element; words with a negative gain stay outside.

        `sibling_mass`: the mass of the words of this element and its siblings.
        """
        own_mass = self.mass(source_words)
        return np.where(self.linked, 2 * own_mass - sibling_mass - _HALF, 0.0)

    def best_run(self, source_words: set[int], sibling_mass: Vector, free: FreeSpans) -> Run | None:
        """Return the run of target words with the greatest weight within one free span, if there is one.

        The run may contain words without links, but does not begin or end with one.
        """
        weights = self.weights(source_words, sibling_mass)
        best_total, run = _NOISE, None
        # Only free spans that contain a word with a gain can have a run.
        candidates = np.flatnonzero(weights > _NOISE)
        free_spans = dict.fromkeys(free.containing(self._starts[t], self._ends[t]) for t in candidates)
        for free_span in filter(None, free_spans):
            start = bisect_left(self._starts, free_span[0])
            first, last, total = _heaviest(weights[start : bisect_right(self._ends, free_span[1])])
            if total > best_total + _NOISE:
                best_total, run = total, Run(start + first, start + last, *free_span)
        if run is None:
            return self._single(source_words, free)
        unlinked = int(np.argmax(self.linked[run.first :]))
        return run._replace(first=run.first + unlinked)

    def _single(self, source_words: set[int], free: FreeSpans) -> Run | None:
        """Return the free word with the strongest links to an element, even if it has stronger links to others."""
        mass = self.mass(source_words)
        for t in np.argsort(-mass, kind="stable"):
            if mass[t] <= FAINT:
                break
            if free_span := free.containing(self._starts[t], self._ends[t]):
                return Run(int(t), int(t), *free_span)
        return None

    def grown(self, run: Run, is_first: bool, is_last: bool) -> Run:
        """Extend a run by the unlinked words before it if it is first in its parent, and after it if it is last."""
        first, last = run.first, run.last
        while is_first and first and not self.shares[first - 1] and self.target[first - 1].start >= run.low:
            first -= 1
        last_index = len(self.target) - 1
        while is_last and last < last_index and not self.shares[last + 1] and self.target[last + 1].end <= run.high:
            last += 1
        return run._replace(first=first, last=last)

    def part_of_word(self, span: Span, run: Run) -> Span | None:
        """Return the part of a target run that matches part of a source word; None if the span is not part of one word.

        If the run contains the same letters, these are the result. Otherwise, the result is as many letters at the
        beginning or end of a single target word, or the words at the same relative position in a run of several.
        """
        touched = self.touched(span)
        if len(touched) != 1:
            return None
        word = self.source[touched[0]]
        size = word.core_end - word.core_start
        before, after = span[0] - word.core_start, word.core_end - span[1]
        if before <= 0 and after <= 0:
            return None
        words = self.target[run.first : run.last + 1]
        low, high = words[0].core_start, words[-1].core_end
        source_part = self.texts[0][max(span[0], word.core_start) : min(span[1], word.core_end)]
        copy_start = self.texts[1].find(source_part, low, high)
        if copy_start >= 0 and len(source_part) > 1:
            return copy_start, copy_start + len(source_part)
        expected = low + (high - low) * max(before, 0) / size, high - (high - low) * max(after, 0) / size
        if len(words) > 1:
            first = min(words, key=lambda word: abs(word.core_start - expected[0]))
            last = min(words[words.index(first) :], key=lambda word: abs(word.core_end - expected[1]))
            return first.core_start, last.core_end
        letters = min(len(source_part), max(high - low - 1, 1))
        if before <= 0:
            return low, low + letters
        if after <= 0:
            return high - letters, high
        start = min(round(expected[0]), high - 1)
        return start, max(round(expected[1]), start + 1)

    def punctuation(self, span: Span) -> tuple[str | None, str]:
        """Return the punctuation before and after the source words in a span, limited to the span.

        The former is None if the first word has no punctuation before it.
        """
        touched = self.touched(span)
        first, last = self.source[touched[0]], self.source[touched[-1]]
        text = self.texts[0]
        opening = None
        if first.start < first.core_start:
            opening = text[max(first.start, span[0]) : first.core_start]
        return opening, text[last.core_end : min(last.end, span[1])]

    def left_of(self, offset: int) -> int:
        """Return the number of source words before an offset."""
        return bisect_right(self._source_middles, offset)

    @cached_property
    def middles(self) -> Vector:
        """The middle of each target word, in characters."""
        return np.array(list(map(_middle, self.target)))

    def crossing(self, left_count: int) -> Vector:
        """Return for each gap between target words, from the one before the first, the mass of the links that cross it.

        A link crosses the cut between the texts if only one of its words is before the cut. `left_count`: the number of
        source words before it.
        """
        last_count, on_left = self._on_left
        if left_count < last_count:
            last_count, on_left = 0, np.zeros(len(self.target))
        on_left = on_left + self.mass(range(last_count, left_count))
        self._on_left = left_count, on_left
        # In the gap before the first target word, all links of the left words cross. In the gap after a target word,
        # its links to the left do not cross, and its links to the right do.
        return np.cumsum(np.concatenate(([on_left.sum()], self.linked - 2 * on_left)))  # [T + 1]

    def shares_of(self, source: int) -> tuple[Indices, Vector]:
        """Return the target words linked to a source word, and its share of each; none if it does not exist."""
        return self._of_source.get(source, _NO_LINKS)


def with_copies(links: Links, source: str, target: str, copies: Iterable[tuple[int, int]]) -> Links:
    """Return the links of a model, if there are any, in which copied words are linked to their copies only.

    `copies`: the offsets of copied words in both texts.
    """
    if not links:
        return links
    source_words, target_words, start = words_of(source), words_of(target), attrgetter("start")
    pairs: dict[int, int] = {}
    for s, t in copies:
        pairs[bisect_right(source_words, s, key=start) - 1] = bisect_right(target_words, t, key=start) - 1
    copied = set(pairs.values())
    corrected = [link for link in links if link[0] not in pairs and link[1] not in copied]
    for s, t in pairs.items():
        corrected.append((s, t, 1.0))
    return corrected


def _heaviest(weights: Vector) -> tuple[int, int, float]:
    """Return the first and last index of the run with the greatest sum (the shortest of equal ones), and the sum."""
    sums = np.cumsum(weights)
    before = np.concatenate(([0.0], sums[:-1]))
    totals = sums - np.minimum.accumulate(before)  # the greatest sum of a run that ends here
    last = int(np.argmax(totals >= totals.max() - _NOISE))
    minimum = before[: last + 1].min() + _NOISE
    first = last - int(np.argmax(before[last::-1] <= minimum))
    return first, last, float(totals[last])


def _middle(word: Word) -> float:
    return (word.core_start + word.core_end) / 2


def columns_of(words: Iterable[Word]) -> tuple[list[int], ...]:
    """Return the starts of words, their ends, the starts of their cores, and the ends of their cores."""
    return tuple(map(list, zip(*words, strict=True))) or ([], [], [], [])


def words_of(text: str) -> list[Word]:
    """Return the words of a text, as `linked_words` separates them.

    >>> words_of("«yes» …")
    [Word(start=0, end=5, core_start=1, core_end=4), Word(start=6, end=7, core_start=6, core_end=7)]
    """
    words = []
    for match in LINKED_WORD.finditer(text):
        start, end = match.span()
        core_start = end - len(match[0].lstrip(_STRIPPED))
        core_end = start + len(match[0].rstrip(_STRIPPED))
        if core_start == end:  # punctuation alone
            core_start, core_end = start, end
        words.append(Word(start, end, core_start, core_end))
    return words


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
    def _gap_offsets(self) -> dict[str, Indices]:
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
