"""The tags of a text as elements that stand in each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.documents.word_links import Span

DEEPEST = 200
"""Elements within each other whose tags go together; those of deeper ones stand alone."""


@dataclass
class TagNode:
    """An element, a mark alone, or the whole text."""

    span: Span
    """Of the source."""
    marks: list[int]
    """The numbers of its marks: two of an element, one of a mark alone, none of the whole text."""
    inside: list[TagNode] = field(default_factory=list)


def tag_tree(source: TaggedText) -> TagNode:
    """Return the elements of a text as they contain one another.

    A mark without its partner, or whose partner stands in another element, is taken to stand alone, and so are those
    that stand too deep.
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
    """Yield an element and all that stand in it, at any depth."""
    yield node
    for inner in node.inside:
        yield from every_node(inner)


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
