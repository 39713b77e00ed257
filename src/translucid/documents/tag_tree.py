"""Pairs of tags, the tree of elements that they form, and the repair of translations whose tags differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeAlias

from translucid.documents.document import Segment, Target
from translucid.documents.tagged_text import Mark, Side, TaggedText

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
    waiting: list[tuple[Hashable, int]] = []  # the names and indices of the open tags
    depths = defaultdict[Hashable, list[int]](list)  # by name, the places of its tags in `waiting`
    for i, (side, name) in enumerate(tags):
        if side is Side.opens:
            depths[name].append(len(waiting))
            waiting.append((name, i))
        elif side is Side.closes and depths[name]:
            depth = depths[name][-1]
            pairs.append((waiting[depth][1], i))
            for ended, _ in waiting[depth:]:
                depths[ended].pop()
            del waiting[depth:]
    return pairs


def nested(tags: Sequence[Tag]) -> bool:
    """Whether each closing tag closes the last tag that is still open, and none stays open."""
    count = sum(side in (Side.opens, Side.closes) for side, _ in tags)
    return count == 2 * len(matched_tags(tags))


@dataclass
class TagNode:
    """An element, a single mark, or the whole text."""

    span: tuple[int, int]
    """The span in the source."""
    marks: list[int]
    """The indices of its marks: two of an element, one of a single mark, none of the whole text."""
    inside: list[TagNode] = field(default_factory=list)


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
        at = min(max(mark.at, 0), length)
        partner_index = partner.get(i, -1)
        if partner_index > i and len(path) <= DEEPEST:
            end = min(max(source.marks[partner_index].at, at), length)
            node = TagNode((at, end), [i, partner_index])
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


def complete(source: TaggedText, target: TaggedText) -> TaggedText:
    """Return a translation with each mark of its source once, well nested if those of the source are.

    Elements, and marks that are lost, go to the end of the text; marks that are doubled are removed.
    """
    kind = attrgetter("raw", "side")
    wanted = Counter(map(kind, source.marks))
    is_complete = Counter(map(kind, target.marks)) == wanted
    if is_complete and (_is_nested(target) or not _is_nested(source)):
        return target
    marks = list[Mark]()
    for mark in target.marks:
        if mark.side is Side.alone and wanted[mark.raw, mark.side] > 0:
            wanted[mark.raw, mark.side] -= 1
            marks.append(mark)
    for mark in source.marks:
        if mark.side is not Side.alone or wanted[mark.raw, mark.side] > 0:
            wanted[mark.raw, mark.side] -= 1
            marks.append(replace(mark, at=len(target.text)))
    return TaggedText(target.text, tuple(marks))


def completed(segments: Sequence[Segment], targets: Mapping[int, Target]) -> dict[int, Target]:
    """Return the translations of segments, by their numbers, each with all tags of its source."""
    result: dict[int, Target] = {}
    for number, target in targets.items():
        result[number] = replace(target, marked=complete(segments[number].source, target.marked))
    return result


def _is_nested(text: TaggedText) -> bool:
    return nested(list(map(SIDE_AND_PAIR, text.marks)))
