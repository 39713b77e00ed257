"""Parts of a text, such as tags in a string of a program, that are marks while the text is translated."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from translucid.data.non_translatable import kept_parts
from translucid.documents.kept_elements import expanded
from translucid.documents.spans import DIRECTION_SIGNS
from translucid.documents.stand_ins import is_address, parts_of
from translucid.documents.tagged_text import Mark, Side, TaggedText

_TAG = re.compile(
    r"<(?P<closes>/?)(?P<name>[A-Za-z0-9][^\s<>/]*)[^<>]*?(?P<empty>/?)>"
    r"|\{\{(?P<open_block>[#^])\s*(?P<block>\w+)[^{}]*\}\}|\{\{/\s*(?P<end_of_block>\w+)\s*\}\}"
)
_KEY = re.compile(r"(?<!\S)(?:[^\W_]{1,2})?_(?=[^\W\d_])|(?<!\S)(?:[^\W_]+)?&(?=[a-zß-ÿ])|(?<!\S)&(?=[^\W\d_])")
"""`_` or `&` before the letter of a key."""

_DIRECTION_SIGN = re.compile(f"[{DIRECTION_SIGNS}]")


@dataclass(frozen=True)
class Part(Mark):
    """What is a mark for the time of the translation, and text before and afterwards."""


class Edit(NamedTuple):
    """What a span of a text becomes."""

    start: int
    end: int
    new: str | Mark


def with_key(source: TaggedText) -> TaggedText:
    """Return a text with the sign before the letter of a key as a part, if it has one, as `_File` does."""
    found = list(_KEY.finditer(source.text))
    if len(found) != 1 or source.text.count(found[0][0][-1]) != 1:
        return source
    at = found[0].end() - 1
    if any(first <= at < after for _, first, after in kept_parts(source.text, source.syntax)):
        return source
    return edited(source, [Edit(at, at + 1, Part(0, source.text[at]))])


def with_wordless_elements(source: TaggedText) -> TaggedText:
    """Return a text with the tags around, and in, what has no letter to translate as parts, as in `m<sup>2</sup>`."""
    if "<" not in source.text:
        return source
    parts = list(parts_of(source))
    letters = [character.isalpha() for character in source.text]
    for _, start, end in parts:
        letters[start:end] = [False] * (end - start)
    before = [0, *accumulate(map(int, letters))]
    tags = [part for part in parts if part[0].startswith("<")]
    edits: list[Edit] = []
    done = -1
    for first, last in sorted(_pairs(tags)):
        inside = source.text[tags[first][2] : tags[last][1]]
        if first > done and inside.strip() and before[tags[first][2]] == before[tags[last][1]]:
            edits += (Edit(start, end, Part(0, raw)) for raw, start, end in tags[first : last + 1])
            done = last
    return edited(source, edits) if edits else source


def with_direction_signs(source: TaggedText) -> TaggedText:
    """Return a text with the invisible signs that say in which direction it is written as parts."""
    signs = [Edit(*match.span(), Part(0, match[0])) for match in _DIRECTION_SIGN.finditer(source.text)]
    return edited(source, signs) if signs else source


def _pairs(tags: Iterable[tuple[str, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of tags that open and close the same element, nothing in it left open."""
    waiting: list[tuple[str, int]] = []
    for i, (raw, _, _) in enumerate(tags):
        opens, closes = tag_names(raw)
        if opens:
            waiting.append((opens, i))
        elif closes and waiting and waiting[-1][0] == closes:
            yield waiting.pop()[1], i


def edited(marked: TaggedText, edits: Iterable[Edit]) -> TaggedText:
    """Return a text with spans replaced by other texts or by parts; the marks keep their places to the rest.

    A tag becomes a mark of a pair if its partner becomes one too.
    """
    coming = sorted(edits, key=lambda edit: edit.start)
    text: list[str] = []
    size = at = 0
    marks: list[Mark] = []
    waiting = deque(marked.marks)

    def write(new: str) -> None:
        nonlocal size
        text.append(new)
        size += len(new)

    def take(end: int) -> None:
        """Go on to a character of the text, with the marks before it."""
        nonlocal at
        while waiting and waiting[0].at <= end:
            mark = waiting.popleft()
            write(marked.text[at : mark.at])
            at = max(at, mark.at)
            marks.append(replace(mark, at=size))
        write(marked.text[at:end])
        at = max(at, end)

    for edit in coming:
        take(edit.start)
        at = edit.end
        if isinstance(edit.new, Mark):
            marks.append(replace(edit.new, at=size))
        else:
            write(edit.new)
    take(len(marked.text))
    return replace(marked, text="".join(text), marks=tuple(_paired(marks)))


def _paired(marks: list[Mark]) -> Iterator[Mark]:
    """Yield the marks, parts that are tags as pairs."""
    partner: dict[int, int] = {}
    waiting: list[int] = []
    opened: dict[str, list[int]] = defaultdict(list)  # by name, places in `waiting`
    names: list[str] = []
    for i, mark in enumerate(marks):
        opens, closes = tag_names(mark.raw) if isinstance(mark, Part) else ("", "")
        if opens:
            opened[opens].append(len(waiting))
            waiting.append(i)
            names.append(opens)
        elif closes and opened[closes]:
            depth = opened[closes][-1]
            partner[i] = partner[waiting[depth]] = -1 - waiting[depth]  # the document's own pairs are counted from 0
            while len(waiting) > depth:
                waiting.pop()
                opened[names.pop()].pop()
    for i, mark in enumerate(marks):
        if i in partner:
            yield replace(mark, side=Side.closes if tag_names(mark.raw)[1] else Side.opens, pair=partner[i])
        else:
            yield mark


def tag_names(raw: str) -> tuple[str, str]:
    """Return the name of what a tag, or a sign of a template such as `{{#if x}}`, opens; and of what it closes."""
    tag = _TAG.fullmatch(raw)
    if not tag:
        return "", ""
    if tag["closes"] or tag["end_of_block"]:
        return "", tag["name"] or "{{" + tag["end_of_block"]
    return "" if tag["empty"] else tag["name"] or "{{" + tag["block"], ""


def absorbed(marked: TaggedText) -> TaggedText:
    """Return a text with its parts as text again; letters do not touch an address, which they would become part of."""
    text: list[str] = []
    marks: list[Mark] = []
    size = 0
    last = ""  # the text or part before, if no mark stands between
    for piece in expanded(marked.parts):
        if isinstance(piece, Mark) and not isinstance(piece, Part):
            marks.append(replace(piece, at=size))
            last = ""
            continue
        new = piece.raw if isinstance(piece, Mark) else piece
        if (is_address(last) or is_address(new)) and last[-1:].isalnum() and new[:1].isalnum():
            new = f" {new}"
        text.append(new)
        size += len(new)
        last = new
    return replace(marked, text="".join(text), marks=tuple(marks))


def nested(parts: Iterable[str]) -> bool:
    """Whether each tag that closes belongs to the last one that is open."""
    waiting: list[str] = []
    for part in parts:
        opens, closes = tag_names(part)
        if closes and (not waiting or waiting.pop() != closes):
            return False
        if opens:
            waiting.append(opens)
    return not waiting
