"""The tags of a text as a tree of elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from translucid.documents.tag_pairs import matched_tags
from translucid.documents.tagged_text import TaggedText
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
    partner: dict[int, int] = {}
    for opening, closing in matched_tags((mark.side, mark.pair) for mark in source.marks):
        partner.update({opening: closing, closing: opening})
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
