"""The tags of a text as a tree of elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.documents.word_links import Span

DEEPEST = 200
"""The largest depth of nested elements; the tags of deeper ones count as single marks."""


@dataclass
class TagNode:
    """An element, a single mark, or the whole text."""

    span: Span
    """The span in the source."""
    marks: list[int]
    """The indices of its marks: two of an element, one of a single mark, none of the whole text."""
    inside: list[TagNode] = field(default_factory=list)


def tag_tree(source: TaggedText) -> TagNode:
    """Return the whole text as a node that contains its elements.

    A mark without a partner, or whose partner is in another element, counts as a single mark.
    """
    partner = _partners(source.marks)
    length = len(source.text)
    root = TagNode((0, length), [])
    path = [root]
    for i, mark in enumerate(source.marks):
        at = min(max(mark.at, 0), length)
        other = partner.get(i, -1)
        if other > i and len(path) <= DEEPEST:
            end = min(max(source.marks[other].at, at), length)
            node = TagNode((at, end), [i, other])
            path[-1].inside.append(node)
            path.append(node)
        elif path[-1].marks[1:] == [i]:
            path.pop()
        else:
            path[-1].inside.append(TagNode((at, at), [i]))
    return root


def every_node(node: TagNode) -> Iterator[TagNode]:
    """Yield a node and all its descendants."""
    yield node
    for inner in node.inside:
        yield from every_node(inner)


def _partners(marks: Sequence[Mark]) -> dict[int, int]:
    """Return the index of the partner for each mark of a well nested pair."""
    partner: dict[int, int] = {}
    waiting: list[int] = []
    places: dict[int, list[int]] = {}  # for each pair, the places of its marks in `waiting`
    for i, mark in enumerate(marks):
        if mark.pair is None:
            continue
        if mark.side is Side.opens:
            places.setdefault(mark.pair, []).append(len(waiting))
            waiting.append(i)
        elif mark.side is Side.closes:
            same = places.get(mark.pair, [])
            while same and (same[-1] >= len(waiting) or marks[waiting[same[-1]]].pair != mark.pair):
                same.pop()  # A pair around it was closed before.
            if same:
                opening = waiting[same[-1]]
                partner[i], partner[opening] = opening, i
                del waiting[same.pop() :]
    return partner
