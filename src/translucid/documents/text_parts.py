"""Parts of a text, such as tags in the strings of a program, that become marks during translation."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from translucid.data.non_translatable import kept_parts
from translucid.documents.kept_elements import expanded
from translucid.documents.spans import DIRECTION_SIGNS
from translucid.documents.stand_ins import is_address, letters_before, parts_of
from translucid.documents.tagged_text import Mark, Side, TaggedText

_TAG = re.compile(
    r"<(?P<closes>/?)(?P<name>[A-Za-z0-9][^\s<>/]*)[^<>]*?(?P<empty>/?)>"
    r"|\{\{(?P<open_block>[#^])\s*(?P<block>\w+)[^{}]*\}\}|\{\{/\s*(?P<end_of_block>\w+)\s*\}\}"
)
_KEY = re.compile(r"(?<!\S)(?:[^\W_]{1,2})?_(?=[^\W\d_])|(?<!\S)(?:[^\W_]+)?&(?=[a-zß-ÿ])|(?<!\S)&(?=[^\W\d_])")
"""The marker of an access key: `_` or `&` before a letter, as in `_File` (GTK) and `&File` (Qt, Windows)."""

_DIRECTION_SIGN = re.compile(f"[{DIRECTION_SIGNS}]")


@dataclass(frozen=True)
class Part(Mark):
    """A part of the text that is a mark only during translation."""


class Edit(NamedTuple):
    """The replacement of a range of a text by a text or a mark."""

    start: int
    end: int
    new: str | Mark


def with_key(source: TaggedText) -> TaggedText:
    """Return a text with the marker of its access key as a part, if it has exactly one."""
    markers = list(_KEY.finditer(source.text))
    if len(markers) != 1 or source.text.count(markers[0][0][-1]) != 1:
        return source
    at = markers[0].end() - 1
    for _, start, end in kept_parts(source.text, source.syntax):
        if start <= at < end:
            return source
    return edited(source, [Edit(at, at + 1, Part(0, source.text[at]))])


def with_wordless_elements(source: TaggedText) -> TaggedText:
    """Return a text with elements without translatable letters, such as `<sup>2</sup>` in `m<sup>2</sup>`, as parts."""
    if "<" not in source.text:
        return source
    parts = parts_of(source)
    letters = letters_before(source.text, parts)
    tags = [part for part in parts if part[0].startswith("<")]
    edits: list[Edit] = []
    done = -1
    # Sorted by the opening tag, an outer element comes before the elements in it, which it includes.
    for first, last in sorted(_pairs(tags)):
        inside = source.text[tags[first][2] : tags[last][1]]
        if first > done and inside.strip() and letters[tags[first][2]] == letters[tags[last][1]]:
            for raw, start, end in tags[first : last + 1]:
                edits.append(Edit(start, end, Part(0, raw)))
            done = last
    return edited(source, edits)


def with_direction_signs(source: TaggedText) -> TaggedText:
    """Return a text with its controls of writing direction as parts."""
    return edited(source, [Edit(*sign.span(), Part(0, sign[0])) for sign in _DIRECTION_SIGN.finditer(source.text)])


def _pairs(tags: Iterable[tuple[str, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the indices of tags that open and close the same element and have no unclosed tag between them."""
    waiting: list[tuple[str, int]] = []
    for i, (raw, _, _) in enumerate(tags):
        opens, closes = tag_names(raw)
        if opens:
            waiting.append((opens, i))
        elif closes and waiting and waiting[-1][0] == closes:
            yield waiting.pop()[1], i


def edited(marked: TaggedText, edits: Iterable[Edit]) -> TaggedText:
    """Return a text with ranges replaced by texts or parts; marks keep their place relative to the rest.

    A tag becomes a mark of a pair if its partner becomes a mark too.
    """
    ordered = sorted(edits, key=lambda edit: edit.start)
    if not ordered:
        return marked
    text: list[str] = []
    size = at = 0
    marks: list[Mark] = []
    waiting = deque(marked.marks)

    def write(new: str) -> None:
        nonlocal size
        text.append(new)
        size += len(new)

    def take(end: int) -> None:
        """Copy the text up to a character, and the marks before it."""
        nonlocal at
        while waiting and waiting[0].at <= end:
            mark = waiting.popleft()
            write(marked.text[at : mark.at])
            at = max(at, mark.at)
            marks.append(replace(mark, at=size))
        write(marked.text[at:end])
        at = max(at, end)

    for edit in ordered:
        take(edit.start)
        at = edit.end
        if isinstance(edit.new, Mark):
            marks.append(replace(edit.new, at=size))
        else:
            write(edit.new)
    take(len(marked.text))
    return replace(marked, text="".join(text), marks=tuple(_paired(marks)))


def _paired(marks: list[Mark]) -> Iterator[Mark]:
    """Yield the marks; parts that are the tags of an element become a pair."""
    pairs: dict[int, tuple[Side, int]] = {}  # by the index of the mark
    waiting: list[int] = []
    opened: dict[str, list[int]] = defaultdict(list)  # by name, places in `waiting`
    names: list[str] = []
    for i, mark in enumerate(marks):
        if not isinstance(mark, Part):
            continue
        opens, closes = tag_names(mark.raw)
        if opens:
            opened[opens].append(len(waiting))
            waiting.append(i)
            names.append(opens)
        elif closes and opened[closes]:
            depth = opened[closes][-1]
            opening = waiting[depth]
            pair = -1 - opening  # negative, because the document's pairs are counted from 0
            pairs[opening], pairs[i] = (Side.opens, pair), (Side.closes, pair)
            while len(waiting) > depth:
                waiting.pop()
                opened[names.pop()].pop()
    for i, mark in enumerate(marks):
        if i in pairs:
            side, pair = pairs[i]
            yield replace(mark, side=side, pair=pair)
        else:
            yield mark


def tag_names(raw: str) -> tuple[str, str]:
    """Return the names of what a tag or a template block such as `{{#if x}}` opens and closes; "" for neither."""
    tag = _TAG.fullmatch(raw)
    if not tag:
        return "", ""
    if tag["closes"] or tag["end_of_block"]:
        return "", tag["name"] or "{{" + tag["end_of_block"]
    if tag["empty"]:
        return "", ""
    return tag["name"] or "{{" + tag["block"], ""


def absorbed(marked: TaggedText) -> TaggedText:
    """Return a text with its parts as text again.

    A space separates addresses from letters, which would otherwise become part of them.
    """
    text: list[str] = []
    marks: list[Mark] = []
    size = 0
    last = ""  # the text or part before, if no mark stands between
    for piece in expanded(marked.parts):
        if isinstance(piece, Part):
            new = piece.raw
        elif isinstance(piece, Mark):
            marks.append(replace(piece, at=size))
            last = ""
            continue
        else:
            new = piece
        if (is_address(last) or is_address(new)) and last[-1:].isalnum() and new[:1].isalnum():
            new = f" {new}"
        text.append(new)
        size += len(new)
        last = new
    return replace(marked, text="".join(text), marks=tuple(marks))


def nested(parts: Iterable[str]) -> bool:
    """Whether each closing tag closes the last tag that is still open."""
    waiting: list[str] = []
    for part in parts:
        opens, closes = tag_names(part)
        if closes and (not waiting or waiting.pop() != closes):
            return False
        if opens:
            waiting.append(opens)
    return not waiting
