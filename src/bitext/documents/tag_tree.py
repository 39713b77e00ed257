"""Pairs of tags, the tree of elements that they form, and the repair of translations whose tags differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeAlias

from bitext.documents.document import Segment, Target
from bitext.documents.tagged_text import Mark, Side, TaggedText

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
    open_tags: list[tuple[Hashable, int]] = []  # the names and indices of the open tags
    depths = defaultdict[Hashable, list[int]](list)  # by name, the indices of its tags in `open_tags`
    for i, (side, name) in enumerate(tags):
        if side is Side.opens:
            depths[name].append(len(open_tags))
            open_tags.append((name, i))
        elif side is Side.closes and depths[name]:
            depth = depths[name][-1]
            pairs.append((open_tags[depth][1], i))
            for ended, _ in open_tags[depth:]:
                depths[ended].pop()
            del open_tags[depth:]
    return pairs


def nested(tags: Sequence[Tag]) -> bool:
    """Whether each closing tag closes the last open tag, and no tag stays open."""
    count = sum(side in (Side.opens, Side.closes) for side, _ in tags)
    return count == 2 * len(matched_tags(tags))


@dataclass
class TagNode:
    """An element, a single mark, or the whole text."""

    span: tuple[int, int]
    """The span in the source."""
    marks: list[int]
    """The indices of its marks: two for an element, one for a single mark, none for the whole text."""
    children: list[TagNode] = field(default_factory=list)


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
        start = min(max(mark.offset, 0), length)
        partner_index = partner.get(i, -1)
        if partner_index > i and len(path) <= DEEPEST:
            end = min(max(source.marks[partner_index].offset, start), length)
            node = TagNode((start, end), [i, partner_index])
            path[-1].children.append(node)
            path.append(node)
        elif path[-1].marks[1:] == [i]:
            path.pop()
        else:
            path[-1].children.append(TagNode((start, start), [i]))
    return root


def walk(node: TagNode) -> Iterator[TagNode]:
    """Yield a node and all its descendants."""
    yield node
    for child in node.children:
        yield from walk(child)


def complete(source: TaggedText, target: TaggedText) -> TaggedText:
    """Return a translation with each mark of its source once, and well nested if the source is.

    The tags of elements and lost marks are appended to the text; duplicate marks are removed.
    """
    kind = attrgetter("raw", "side")
    needed = Counter(map(kind, source.marks))
    is_complete = Counter(map(kind, target.marks)) == needed
    if is_complete and (_is_nested(target) or not _is_nested(source)):
        return target
    marks = list[Mark]()
    for mark in target.marks:
        if mark.side is Side.alone and needed[mark.raw, mark.side] > 0:
            needed[mark.raw, mark.side] -= 1
            marks.append(mark)
    for mark in source.marks:
        if mark.side is not Side.alone or needed[mark.raw, mark.side] > 0:
            needed[mark.raw, mark.side] -= 1
            marks.append(replace(mark, offset=len(target.text)))
    return TaggedText(target.text, tuple(marks))


def completed(segments: Sequence[Segment], targets: Mapping[int, Target]) -> dict[int, Target]:
    """Return the translations of segments, by their numbers, each with all tags of its source."""
    result: dict[int, Target] = {}
    for number, target in targets.items():
        result[number] = replace(target, marked=complete(segments[number].source, target.marked))
    return result


def _is_nested(text: TaggedText) -> bool:
    return nested(list(map(SIDE_AND_PAIR, text.marks)))
