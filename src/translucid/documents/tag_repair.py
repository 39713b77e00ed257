"""Translations that have all marks of their source, whoever made them: what is written of them is well-formed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from translucid.documents.tagged_text import Mark, Side, TaggedText


def complete(source: TaggedText, target: TaggedText) -> TaggedText:
    """Return a translation that has each mark of its source once, and elements within each other where they were.

    Where it has not, what is lost or doubled is mended at the end of the text.
    """
    wanted = Counter((mark.raw, mark.side) for mark in source.marks)
    if Counter((mark.raw, mark.side) for mark in target.marks) == wanted and _nested(target) >= _nested(source):
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


def _nested(text: TaggedText) -> bool:
    """Whether each pair closes where it is the innermost one."""
    inside: list[int | None] = []
    for mark in text.marks:
        if mark.side is Side.opens:
            inside.append(mark.pair)
        elif mark.side is Side.closes and (not inside or inside.pop() != mark.pair):
            return False
    return not inside
