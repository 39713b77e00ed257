"""What must come through a translation exactly once: placeholders, tags, addresses, signs and numbers.

There are four ways, each tried if the one before has lost, doubled or invented something. The parts stand in the text,
as they are or as pieces that the model has learned to copy; others stand in for them, a name or a number; likewise, the
other one; or they are taken out of the text, and put into the translation as marks are, by alignment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from translucid.data.fixed import kept_parts, lost_numbers, numbers
from translucid.documents.marked import Mark, Marked, Side
from translucid.documents.placing import placed, readable
from translucid.documents.word_links import Links

NAMES = "Tom", "Max", "Nina", "Oscar", "Eva", "Victor", "Sonia", "Martin"
"""They are the same in many languages."""
NUMBERS = "47", "58", "63", "72", "86", "94", "35", "29"
LAST = 3
"""The way in which nothing can be lost."""
_COUNTS = re.compile(
    r"%[-+#0 ]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[diufFeEgGxXo]"
    r"|\{(?:\d+|n|num|number|count|total)\}|%\((?:n|num|number|count|total)\)[sd]"
)
"""Placeholders that numbers take the place of."""
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>[A-Za-z0-9][^\s<>/]*)[^<>]*?(?P<empty>/?)>")
_KEY = re.compile(r"(?<!\S)(?:[^\W_]{1,2})?_(?=[^\W\d_])|(?<!\S)(?:[^\W_]+)?&(?=[a-zß-ÿ])|(?<!\S)&(?=[^\W\d_])")
"""`_` or `&` before the letter of a key."""


@dataclass(frozen=True)
class Part(Mark):
    """What is a mark for the time of the translation, and text before and afterwards."""


class _Edit(NamedTuple):
    start: int
    end: int
    new: str | Part


@dataclass(frozen=True)
class Way:
    """A source as the model is to read it."""

    whole: Marked
    """The source, with the sign of a key as a part."""
    source: Marked
    """With what stands in for some parts, and with others as marks."""
    stand_ins: dict[str, str]
    """By what stands in for it, the part."""
    level: int = 0
    lost: frozenset[str] = frozenset()
    """Numbers that are taken out."""

    @classmethod
    def first(cls, source: Marked) -> Way:
        """Return the first one to try."""
        return _way(_with_key(source), 0, frozenset())

    @property
    def text(self) -> str:
        """What the model translates."""
        return readable(self.source).text.strip()

    def after(self, translation: str) -> Way | None:
        """Return the way to try next; None if everything is in the translation of `text` that has to be."""
        if self._broken(translation):
            return _way(self.whole, self.level + 1, self.lost) if self.level < LAST else None
        lost = frozenset(lost_numbers(self.text, translation)) - self.lost
        return _way(self.whole, self.level, self.lost | lost) if lost else None

    def target(self, translation: str, links: Links) -> Marked:
        """Return the translation with the marks and parts of the source, each once.

        Args:
            translation: of `text`, with which `after` is content.
            links: between the words of both.
        """
        found = placed(self.source, translation, links)
        edits = [
            _Edit(*match.span(), part)
            for name, part in self.stand_ins.items()
            for match in _occurrences(name, found.text)
        ]
        return _absorbed(_edited(found, edits))

    @property
    def doubts(self) -> list[str]:
        """What a person should look at: parts whose place the words beside them decide."""
        guessed = [mark.raw for mark in self.source.marks if isinstance(mark, Part) and not _is_sign(mark.raw)]
        return [f"placed: {' '.join(dict.fromkeys(guessed))}"] if guessed else []

    def _broken(self, translation: str) -> bool:
        """Whether something that stands in the text is lost, doubled or invented, or tags are in another order."""
        text = self.text
        if any(len(_occurrences(name, translation)) != len(_occurrences(name, text)) for name in self.stand_ins):
            return True
        before, after = ([part for part, _, _ in kept_parts(one)] for one in (text, translation))
        if any(translation.count(part) != text.count(part) for part in before) or {*after} - {*before}:
            return True
        return _nested(before) and not _nested(after)


def _way(whole: Marked, level: int, lost: frozenset[str]) -> Way:
    """Return a source on one of the levels; with numbers that were lost likewise, or shorter ones in their place."""
    edits: list[_Edit] = []
    stand_ins: dict[str, str] = {}
    parts = [*kept_parts(whole.text)] if level else []
    for part, first, after in [*parts, *(one for one in numbers(whole.text) if one[0] in lost)]:
        name = None
        if level < LAST and not _is_sign(part):
            name = stand_ins.get(part) or _free_name(part, level, whole.text, stand_ins.values())
        if name:
            stand_ins[part] = name
        edits.append(_Edit(first, after, name or Part(0, part)))
    return Way(whole, _edited(whole, edits), {name: part for part, name in stand_ins.items()}, level, lost)


def _free_name(part: str, level: int, text: str, taken: Iterable[str]) -> str | None:
    """Return what stands in for a part: a number for what counts, a name for others; on level 2, the other one."""
    counts = part[0].isdigit() or bool(_COUNTS.fullmatch(part)) == (level == 1)
    return next((name for name in (NUMBERS if counts else NAMES) if name not in text and name not in {*taken}), None)


def _is_sign(part: str) -> bool:
    """Whether a part is a tag, an entity or a picture, which no word stands in for."""
    return part[0] in "<&_" or (not any(map(str.isalnum, part.replace("⟦", "a"))) and part[0] not in "{%$#")


def _occurrences(name: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", text))


def _with_key(source: Marked) -> Marked:
    """Return a text with the sign before the letter of a key as a part, if it has one, as `_File` does."""
    found = list(_KEY.finditer(source.text))
    if len(found) != 1 or source.text.count(found[0][0][-1]) != 1:
        return source
    at = found[0].end() - 1
    if any(first <= at < after for _, first, after in kept_parts(source.text)):
        return source
    return _edited(source, [_Edit(at, at + 1, Part(0, source.text[at]))])


def _edited(marked: Marked, edits: Iterable[_Edit]) -> Marked:
    """Return a text with spans replaced by other texts or by parts; the marks keep their places to the rest.

    A tag becomes a mark of a pair if its partner becomes one too.
    """
    coming = sorted(edits, key=lambda edit: edit.start)
    text, at, marks = "", 0, []
    waiting = list(marked.marks)

    def take(end: int) -> None:
        """Go on to a character of the text, with the marks before it."""
        nonlocal text, at
        while waiting and waiting[0].at <= end:
            mark = waiting.pop(0)
            text, at = text + marked.text[at : mark.at], max(at, mark.at)
            marks.append(replace(mark, at=len(text)))
        text, at = text + marked.text[at:end], max(at, end)

    for edit in coming:
        take(edit.start)
        at = edit.end
        if isinstance(edit.new, Part):
            marks.append(replace(edit.new, at=len(text)))
        else:
            text += edit.new
    take(len(marked.text))
    return Marked(text, tuple(_paired(marks)))


def _paired(marks: list[Mark]) -> Iterator[Mark]:
    """Yield the marks, parts that are tags as pairs."""
    partner: dict[int, int] = {}
    waiting: list[tuple[int, str]] = []
    for i, mark in enumerate(marks):
        tag = _TAG.fullmatch(mark.raw) if isinstance(mark, Part) else None
        if tag and not tag["closes"] and not tag["empty"]:
            waiting.append((i, tag["name"]))
        elif tag and tag["closes"] and (same := [one for one in waiting if one[1] == tag["name"]]):
            partner[i] = partner[same[-1][0]] = -1 - same[-1][0]  # the document's own pairs are counted from 0
            del waiting[waiting.index(same[-1]) :]
    for i, mark in enumerate(marks):
        if i in partner:
            yield replace(mark, side=Side.closes if mark.raw.startswith("</") else Side.opens, pair=partner[i])
        else:
            yield mark


def _absorbed(marked: Marked) -> Marked:
    """Return a text with its parts as text again."""
    text, marks = "", []
    for piece in marked.parts:
        if isinstance(piece, Part):
            text += piece.raw
        elif isinstance(piece, Mark):
            marks.append(replace(piece, at=len(text)))
        else:
            text += piece
    return Marked(text, tuple(marks))


def _nested(parts: Iterable[str]) -> bool:
    """Whether each tag that closes belongs to the last one that is open."""
    waiting: list[str] = []
    for part in parts:
        tag = _TAG.fullmatch(part)
        if tag and tag["closes"]:
            if not waiting or waiting.pop() != tag["name"]:
                return False
        elif tag and not tag["empty"]:
            waiting.append(tag["name"])
    return not waiting
