"""Repair of translations whose tags differ from those of their source, so that the document stays well-formed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from translucid.documents.tagged_text import Mark, Side, TaggedText


def complete(source: TaggedText, target: TaggedText) -> TaggedText:
    """Return a translation with each mark of its source once, well nested if those of the source are.

    Elements, and marks that are lost, go to the end of the text; marks that are doubled are removed.
    """
    wanted = Counter((mark.raw, mark.side) for mark in source.marks)
    is_complete = Counter((mark.raw, mark.side) for mark in target.marks) == wanted
    if is_complete and (_nested(target) or not _nested(source)):
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
    """Whether each closing mark closes the innermost open pair."""
    inside: list[int | None] = []
    for mark in text.marks:
        if mark.side is Side.opens:
            inside.append(mark.pair)
        elif mark.side is Side.closes and (not inside or inside.pop() != mark.pair):
            return False
    return not inside
