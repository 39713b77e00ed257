"""Pairs of tags, and the repair of translations whose tags differ from those of their source."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from translucid.documents.tagged_text import Mark, Side, TaggedText

Tag: TypeAlias = tuple[Side | None, Hashable]
"""The side of a tag, and the name or number that it shares with its partner; None is no tag."""


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


def complete(source: TaggedText, target: TaggedText) -> TaggedText:
    """Return a translation with each mark of its source once, well nested if those of the source are.

    Elements, and marks that are lost, go to the end of the text; marks that are doubled are removed.
    """
    wanted = Counter((mark.raw, mark.side) for mark in source.marks)
    is_complete = Counter((mark.raw, mark.side) for mark in target.marks) == wanted
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


def _is_nested(text: TaggedText) -> bool:
    return nested([(mark.side, mark.pair) for mark in text.marks])
