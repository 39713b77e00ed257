"""Marks of a source put into its translation, where the word alignment says.

The marks are a tree: an element is what stands between the two marks of a pair. It is put around the run of target
words that fits its source words best, inside of the run of the element that it stands in, and beside those of its
neighbours. So what is well nested stays so. A mark alone is put where the fewest links cross it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from translucid.data.fixed import kept_parts
from translucid.documents.marked import Mark, Marked, Side
from translucid.documents.word_links import Links, Run, Span, WordLinks

NEAR, GLUED = 0.75, 3.0
"""What it is worth for a mark alone to stand beside a word that is linked to its neighbour, in links that cross it; and
to one with no space between."""
ACCELERATORS = frozenset("_&~")
"""Marks that stand before the letter of a key."""
_PARTS_WORDS = re.compile(r"<(?!wbr)|&(?:nbsp|ensp|emsp|thinsp|#160|#xa0);", re.IGNORECASE)
CLOSING = frozenset(".,;:!?…)]}»”’%。，、；：！？）」』")
"""No space goes before these."""


_At = tuple[int, int]
"""The number of a mark of the source, and its place in the target."""


@dataclass
class _Node:
    """An element, a mark alone, or the whole text."""

    span: Span
    """Of the source."""
    marks: list[int]
    """The numbers of its marks: two of an element, one of a mark alone, none of the whole text."""
    inside: list[_Node] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """Where a node goes in the target."""

    span: Span
    node: _Node


def readable(source: Marked) -> Marked:
    """Return the text for the model.

    Where a mark alone such as `<br/>` stands between letters, there is a space; there is none before punctuation that
    only a mark parts from its word.

    >>> readable(Marked("Dear , onetwo", (Mark(5, "<x/>"), Mark(10, "<br/>")))).text
    'Dear, one two'
    """
    marks: list[Mark] = []
    text, done = "", 0
    alone = {i for node in _every(_tree(source)) if node.span[0] == node.span[1] for i in node.marks}
    for i, mark in enumerate(source.marks):
        text, done = text + source.text[done : mark.at], max(done, mark.at)
        if i in alone:
            after = source.text[mark.at : mark.at + 1]
            if _parts_letters(source.text, mark):
                text += " " * (not text[-1:].isspace())
            elif text[-1:].isspace() and text.strip() and after and after in CLOSING:
                text = text.rstrip()
                marks = [replace(one, at=min(one.at, len(text))) for one in marks]
        marks.append(replace(mark, at=len(text)))
    return Marked(text + source.text[done:], tuple(marks))


def placed(source: Marked, translation: str, links: Links) -> Marked:
    """Return the translation with all marks of its source, each once.

    White space at both ends is that of the source. What is well nested in the source is so in the translation. The text
    stays as it is, but for spaces beside marks.

    Args:
        source: what was translated.
        translation: of the text of `readable(source)`.
        links: between the words of both; without any, both are taken to have the same order.
    """
    before, after = _around(source.text)
    target = before + translation.strip() + after
    if not source.marks:
        return Marked(target)
    if not target.strip():
        return _spaced(source, target, [(i, 0) for i in range(len(source.marks))])
    read = readable(source)
    places = _outside(target, _Placing(read, target, links).marks())
    return _spaced(source, target, _in_order(source.marks, places))


class _Placing:
    """One text at work."""

    def __init__(self, source: Marked, target: str, links: Links) -> None:
        self.marked, self.source, self.target = source, source.text, target
        self.words = WordLinks(source.text, target, links)

    def marks(self) -> list[_At]:
        """Return the marks of the source in the order of the target, each with its place there."""
        return list(self._within(_Place((0, len(self.target)), _tree(self.marked))))

    def _within(self, parent: _Place) -> Iterator[_At]:
        """Yield the marks inside of a node."""
        taken: list[_Place] = []
        nodes = parent.node.inside
        words = {i: found for i, node in enumerate(nodes) if (found := self.words.inside(node.span))}
        for i in sorted(words, key=lambda i: (-len(words[i]), nodes[i].span[0] - nodes[i].span[1])):
            elsewhere = set().union(*(found for other, found in words.items() if other != i)) - words[i]
            taken.append(self._element(nodes[i], words[i], elsewhere, parent, taken))
        for i, node in enumerate(nodes):
            if i not in words:
                taken.append(self._wordless(node, parent, taken))
        rank = {id(node): i for i, node in enumerate(nodes)}
        for place in sorted(taken, key=lambda place: (place.span, rank[id(place.node)])):
            yield place.node.marks[0], place.span[0]
            yield from self._within(place)
            for mark in place.node.marks[1:]:
                yield mark, place.span[1]

    def _element(
        self, node: _Node, inside: set[int], elsewhere: set[int], parent: _Place, taken: Sequence[_Place]
    ) -> _Place:
        """Find the run of words for an element that has some."""
        leads, ends = self._leads(node, parent.node), self._ends(node, parent.node)
        if leads and ends and not taken:
            return _Place(self._without_outer_space(node, parent.span), node)
        run = self.words.best_run(inside, elsewhere, _free(taken, parent.span))
        if run is None:
            return self._wordless(node, parent, taken)
        run = self.words.grown(run, leads, ends)
        start, end = self.words.part_of_word(node.span, run) or self._edges(node, run)
        start = max(start, run.low)
        return _Place((start, max(start, min(end, run.high))), node)

    def _edges(self, node: _Node, run: Run) -> Span:
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

    def _with_space(self, node: _Node, span: Span) -> Span:
        start, end = span
        if self.source[node.span[0]].isspace():
            start = len(self.target[:start].rstrip())
        if self.source[node.span[1] - 1].isspace():
            end = len(self.target) - len(self.target[end:].lstrip())
        return start, end

    def _without_outer_space(self, node: _Node, span: Span) -> Span:
        """Return the span of an element with all words of what it is in."""
        before, after = _around(self.target[slice(*span)])
        start, end = self._with_space(node, (span[0] + len(before), span[1] - len(after)))
        return max(start, span[0]), min(end, span[1])

    def _wordless(self, node: _Node, parent: _Place, taken: Sequence[_Place]) -> _Place:
        """Find the place of a mark alone, or of an element that has no words, or none that are translated."""
        low, high = parent.span
        free = _free(taken, parent.span)
        if (same := self._same(node, free)) is not None:
            return _Place(same, node)
        before, after = (0, 0) if parent.node.marks else map(len, _around(self.target))
        if self._leads(node, parent.node):
            at = low + min(node.span[0], before)
        elif self._ends(node, parent.node):
            at = high - min(len(self.source) - node.span[1], after)
        else:
            at = self._point(node.span[0], self.marked.marks[node.marks[0]].raw, free)
        at = min((min(max(at, low), high) for low, high in free), key=lambda place: abs(place - at))
        return _Place((at, at), node)

    def _same(self, node: _Node, free: Sequence[Span]) -> Span | None:
        """Return where the target has the punctuation that an element consists of, the nearest one in proportion."""
        text = self.source[slice(*node.span)].strip()
        if not text:
            return None
        starts = [i for i in range(len(self.target)) if self.target.startswith(text, i)]
        spans = [(i, i + len(text)) for i in starts if any(low <= i and i + len(text) <= high for low, high in free)]
        wanted = node.span[0] / len(self.source) * len(self.target)
        return min(spans, key=lambda span: abs(span[0] - wanted), default=None)

    def _point(self, at: int, raw: str, free: Sequence[Span]) -> int:
        """Return the free character before which a mark goes that stands before character `at` of the source."""
        words = self.words
        left = words.left_of(at)
        inner = next((word for word in words.source if word.core_start <= at < word.core_end), None)
        if raw in ACCELERATORS and inner is not None:
            return self._key(words.source.index(inner), self.source[at], free)
        near = [NEAR if side.isspace() else GLUED for side in (self.source[at - 1], self.source[at])]
        costs: dict[int, float] = {}
        crossing = words.crossing(left)
        for gap, crossed in enumerate(crossing):
            before = words.shares[gap - 1].get(left - 1, 0.0) if gap else 0.0
            behind = words.shares[gap].get(left, 0.0) if gap < len(words.target) else 0.0
            place, cost = self._at_gap(at, gap), crossed - near[0] * before - near[1] * behind
            costs[place] = min(cost, costs.get(place, cost))
        allowed = {place: cost for place, cost in costs.items() if any(low <= place <= high for low, high in free)}
        edges = {place: float(crossing[words.before(place)]) for span in free for place in span}
        costs = {**edges, **allowed}
        return min(costs, key=lambda place: (costs[place], place))

    def _at_gap(self, at: int, gap: int) -> int:
        """Return the character in a gap of the target at which a mark stands to the words as it does in the source."""
        words, left = self.words, self.words.left_of(at)
        before = words.target[gap - 1] if gap else None
        behind = words.target[gap] if gap < len(words.target) else None
        if behind and left < len(words.source) and at in words.source[left][::2]:
            return behind.start if at == words.source[left].start else behind.core_start
        if before and ((left and at == words.source[left - 1].core_end) or not behind):  # it does not end the source
            return before.core_end
        return before.end if before else 0

    def _key(self, word: int, letter: str, free: Sequence[Span]) -> int:
        """Return where the letter of a key is in what translates a word, or where that begins."""
        shares = [shares.get(word, 0.0) for shares in self.words.shares]
        found = [self.words.target[t] for t in sorted(range(len(shares)), key=lambda t: -shares[t])[:1]]
        places = [
            place
            for one in found
            for place in range(one.core_start, one.core_end)
            if self.target[place].casefold() == letter.casefold()
        ]
        wanted = [*places, *(one.core_start for one in found)]
        inside = (place for place in wanted if any(low <= place <= high for low, high in free))
        return next(inside, free[0][0])

    def _leads(self, node: _Node, parent: _Node) -> bool:
        return not self.source[parent.span[0] : node.span[0]].strip()

    def _ends(self, node: _Node, parent: _Node) -> bool:
        return not self.source[node.span[1] : parent.span[1]].strip()


def _tree(source: Marked) -> _Node:
    """Return the elements of a text as they contain one another.

    A mark without its partner, or whose partner stands in another element, is taken to stand alone.
    """
    partner = _partners(source.marks)
    length = len(source.text)
    root = _Node((0, length), [])
    path = [root]
    for i, mark in enumerate(source.marks):
        at = min(max(mark.at, 0), length)
        if partner.get(i, -1) > i:
            end = min(max(source.marks[partner[i]].at, at), length)
            node = _Node((at, end), [i, partner[i]])
            path[-1].inside.append(node)
            path.append(node)
        elif i in partner:
            path.pop()
        else:
            path[-1].inside.append(_Node((at, at), [i]))
    return root


def _every(node: _Node) -> Iterator[_Node]:
    yield node
    for inner in node.inside:
        yield from _every(inner)


def _partners(marks: Sequence[Mark]) -> dict[int, int]:
    """Return for each mark of a well nested pair the number of the other one."""
    partner: dict[int, int] = {}
    waiting: list[int] = []
    places: dict[int, list[int]] = {}
    """By pair, the places of its marks in `waiting`."""
    for i, mark in enumerate(marks):
        if mark.pair is None:
            continue
        if mark.side is Side.opens:
            places.setdefault(mark.pair, []).append(len(waiting))
            waiting.append(i)
        elif mark.side is Side.closes:
            same = places.get(mark.pair, [])
            while same and (same[-1] >= len(waiting) or marks[waiting[same[-1]]].pair != mark.pair):
                same.pop()  # it went with a pair that it stood in
            if same:
                opening = waiting[same[-1]]
                partner[i], partner[opening] = opening, i
                del waiting[same.pop() :]
    return partner


def _free(taken: Sequence[_Place], span: Span) -> list[Span]:
    """Return what is left of a span of the target; places between neighbours count, even if nothing stands there."""
    low, high = span
    free = []
    for start, end in sorted(place.span for place in taken):
        free.append((low, start))
        low = end
    return [*free, (low, high)]


def _outside(target: str, places: list[_At]) -> list[_At]:
    """Move what would stand inside of a placeholder, an address or the like to the nearer end of it."""
    spans = [(first, after) for _, first, after in kept_parts(target)]
    found = []
    for i, at in places:
        inside = next((span for span in spans if span[0] < at < span[1]), (at, at))
        found.append((i, min(inside, key=lambda edge: abs(edge - at))))
    return found


def _in_order(marks: Sequence[Mark], places: list[_At]) -> list[_At]:
    """Let no mark that closes stand before the one that opens, as it may where elements cross in the source."""
    for i, (one, at) in enumerate(places):
        for j in range(i + 1, len(places)):
            other, there = places[j]
            same = marks[one].pair == marks[other].pair is not None
            if same and other < one and (marks[other].side, marks[one].side) == (Side.opens, Side.closes):
                places[i], places[j] = (other, at), (one, there)
                break
    return places


def _spaced(source: Marked, target: str, places: Sequence[_At]) -> Marked:
    """Write the marks into the text; spaces beside those alone are as in the source."""
    written: list[Mark] = []
    text, done, waiting, last = "", 0, False, 0
    alone = {i for node in _every(_tree(source)) if node.span[0] == node.span[1] for i in node.marks}
    for i, at in places:
        mark = source.marks[i]
        if at > done:
            text += " " * (waiting and _wants_space(target[done:])) + target[done:at]
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
    return Marked(text + " " * (waiting and _wants_space(target[done:])) + target[done:], tuple(written))


def _parts_letters(text: str, mark: Mark) -> bool:
    """Whether an element without content, such as `<br/>`, parts words as a space does, and there is none."""
    before, after = text[mark.at - 1 : mark.at], text[mark.at : mark.at + 1]
    between = (before.isalnum() or before in CLOSING) and bool(before) and after.isalnum()
    return between and mark.side is Side.alone and bool(_PARTS_WORDS.match(mark.raw))


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
