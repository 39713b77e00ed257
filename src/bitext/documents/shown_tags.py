"""Tags that stand for the marks of a text when a person reads and edits it: ⟨1⟩bold⟨/1⟩, ⟨2/⟩."""

from __future__ import annotations

import re
from collections import defaultdict, deque

from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.errors import UserError

SHOWN_TAG = re.compile(r"⟨(?:[1-9][0-9]{0,5}/?|/[1-9][0-9]{0,5})⟩")
"""A tag as people see it."""


def tags_of(source: TaggedText) -> dict[str, Mark]:
    """Return the marks of a source by their tags, in the order of the text.

    >>> list(tags_of(TaggedText("a", (Mark(0, "<b>", Side.opens, 0), Mark(1, "</b>", Side.closes, 0), Mark(1, "%s")))))
    ['⟨1⟩', '⟨/1⟩', '⟨2/⟩']
    """
    numbers: dict[object, int] = {}
    tags: dict[str, Mark] = {}
    for i, mark in enumerate(source.marks):
        if mark.side is Side.alone:
            tags[f"⟨{numbers.setdefault(('alone', i), len(numbers) + 1)}/⟩"] = mark
            continue
        number = numbers.setdefault(mark.pair, len(numbers) + 1)  # an opening and a closing mark share theirs
        tags[f"⟨{number}⟩" if mark.side is Side.opens else f"⟨/{number}⟩"] = mark
    return tags


def shown(source: TaggedText, marked: TaggedText) -> str:
    """Return a text with tags in place of its marks.

    Args:
        source: the text with the marks.
        marked: the same text, or its translation.
    """
    unused = defaultdict[tuple[object, ...], deque[str]](deque)  # equal marks use their tags in order
    for tag, mark in tags_of(source).items():
        unused[_identity(mark)].append(tag)
    parts = []
    for part in marked.parts:
        if isinstance(part, Mark):
            tags = unused[_identity(part)]
            part = tags.popleft() if tags else part.raw  # a mark that is not in the source stays as it is
        parts.append(part)
    return "".join(parts)


def _identity(mark: Mark) -> tuple[object, ...]:
    """Return the properties that a mark shares with the same mark in a translation."""
    return mark.raw, mark.side, mark.pair


def read_shown(source: TaggedText, text: str) -> TaggedText:
    """Return the translation that a person has written with tags, with the marks of its source.

    Raises:
        UserError: a tag is missing, occurs twice, or closes the wrong one.
    """
    tags = tags_of(source)
    missing = dict(tags)
    words: list[str] = []
    marks: list[Mark] = []
    open_tags: list[str] = []
    position = size = 0
    for match in SHOWN_TAG.finditer(text):
        tag = match[0]
        if tag not in tags:
            continue  # the text itself may contain such brackets
        if tag not in missing:
            raise UserError(f"{tag} is there twice", fix="Each stands once.")
        mark = missing.pop(tag)
        words.append(text[position : match.start()])
        size, position = size + len(words[-1]), match.end()
        marks.append(Mark(size, mark.raw, mark.side, mark.pair))
        if mark.side is Side.opens:
            open_tags.append(tag)
        elif mark.side is Side.closes and (not open_tags or open_tags.pop() != tag.replace("/", "")):
            raise UserError(f"{tag} does not close what was opened last", fix="Put it behind its beginning.")
    if missing:
        raise UserError(f"{next(iter(missing))} is missing", fix="Put it where it belongs.")
    return TaggedText("".join([*words, text[position:]]), tuple(marks))


def read_leniently(source: TaggedText, text: str) -> TaggedText:
    """Return a translation that was shown with tags, with the marks of its source as far as their tags are there."""
    missing = tags_of(source)
    parts: list[str | Mark] = []
    position = 0
    for match in SHOWN_TAG.finditer(text):
        mark = missing.pop(match[0], None)
        if mark:
            parts += [text[position : match.start()], mark]
            position = match.end()
    return TaggedText.of([*parts, text[position:]])
