"""Stand-ins that a model reads instead of placeholders: names, numbers, or pieces that it has learned to copy."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from bitext.documents.tagged_text import TaggedText, word_breaks
from bitext.protected_spans import BBCODES, PART_MARK, PLACEHOLDERS, UNITS, is_number, kept_parts, numbers
from bitext.words import WITHOUT_SPACES

NAMES = "Tom", "Max", "Nina", "Oscar", "Eva", "Victor", "Sonia", "Martin"
"""Names that are the same in many languages."""
NUMBERS = "47", "58", "63", "72", "86", "94", "35", "29"
LAST_LEVEL = 3
"""The level at which no part can be lost."""
_COUNTS = re.compile(
    r"%[-+#0 ]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[diufFeEgGxXo]"
    r"|\{(?:\d+|n|num|number|count|total)\}|%\((?:n|num|number|count|total)\)[sd]"
)
"""Placeholders for numbers."""
_UNIT = re.compile(rf"(?:{UNITS})(?![^\W_])")
_TIMES = re.compile(r"[xXkKM](?![^\W_])")
"""A letter that belongs to the number before it, as in `{n}x`."""
_PREFIX = re.compile(r"(?<![\w'’\\&%])(?:[A-Za-z]|[A-Z]{2,4})\Z")
"""A letter or an abbreviation that belongs to the placeholder after it, as in `v{version}` and `SP%d`."""
_LONGEST_PREFIX = 4
_WORDS = {"a", "A", "I"}
"""Words that do not belong to a mark that touches them."""
_ENDINGS = {"s", "in"}
"""Units that may also be the ending of a word, as in `{name}s`."""
_BLOCK = re.compile(r"\{\{\s*(?:[#/^!>]|else\b)|\{[#/:@]|\{%|<%(?!=)|<\?php")
"""The start, middle or end of a template block, which no word can stand in for."""
_CODE = re.compile(
    rf"\[/|\[(?:{BBCODES})[\]=]|\[[\w-]+[ =]|§.\Z|\|[cr]|\^\d\Z|\\[CcIiGgSsFf]\[|\\[Nnh]\Z|:[\w+-]+:\Z|[(*]"
)
"""Tags in square brackets, codes of games and of subtitles, names of emoji, and patterns of file names."""
_SEPARATES_WORDS = re.compile(r"<(?:br|hr|img)\b|<[^>]*/>|&(?:nbsp|ensp|emsp|thinsp|#160|#xa0);", re.IGNORECASE)
"""Tags and entities that separate words without a space."""
_ADDRESS = re.compile(r"[\w.+-]++@|[a-z][a-z0-9+.-]*://|www\.|mailto:|tel:|sms:")
_LATIN = "A-Za-z\u00c0-\u024f"


class Unit(NamedTuple):
    """One part of a text, or several adjacent parts, with one stand-in."""

    raw: str
    start: int
    end: int
    is_sign: bool = False
    """Whether it is a tag, an entity or a pictogram, which no word can stand in for."""
    counts: bool = False
    """Whether it is a number, or a placeholder for one."""
    has_letters: bool = False
    """Whether it includes letters that touch its parts, such as a unit of measurement."""


def parts_of(marked: TaggedText) -> list[tuple[str, int, int]]:
    """Return the parts that `kept_parts` yields, with their spans; marks end words, as in `%s<b>dogs</b>`."""
    spans = ((start, end) for _, start, end in kept_parts(cut_at_marks(marked), marked.syntax))
    return [(marked.text[start:end], start, end) for start, end in _uncut(_cuts(marked), spans)]


def letters_before(text: str, parts: Iterable[tuple[str, int, int]]) -> list[int]:
    """Return the number of letters outside of parts before each character of a text, and before its end."""
    letters = list(map(str.isalpha, text))
    for _, start, end in parts:
        letters[start:end] = [False] * (end - start)
    return [0, *accumulate(letters)]


def cut_at_marks(marked: TaggedText) -> str:
    """Return a text with the character `PART_MARK` in place of each mark within it."""
    return _cut(marked.text, _cuts(marked))


def _cut(text: str, cuts: Sequence[int]) -> str:
    """Return a text with the character `PART_MARK` at these offsets, which are in order."""
    return PART_MARK.join(text[start:end] for start, end in pairwise([0, *cuts, len(text)]))


def _uncut(cuts: Sequence[int], spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Convert spans of a text with `PART_MARK` at these offsets to spans of the text without."""
    offsets = [cut + i for i, cut in enumerate(cuts)]
    for start, end in spans:
        yield start - bisect_left(offsets, start), end - bisect_left(offsets, end)


def _cuts(marked: TaggedText) -> list[int]:
    return sorted({mark.offset for mark in marked.marks if 0 < mark.offset < len(marked.text)})


def merged(marked: TaggedText, parts: Iterable[tuple[str, int, int]]) -> Iterator[Unit]:
    """Yield units of adjacent parts, with the letters that belong to them.

    Signs, and parts with a mark between them, are not merged. An `x` joins two parts, as in `{width}x{height}`.
    """
    text, marks = marked.text, set(marked.mark_offsets)
    units: list[Unit] = []
    for raw, start, end in parts:
        unit = Unit(raw, start, end, is_sign(raw), counts=bool(_COUNTS.fullmatch(raw)))
        previous = units[-1] if units else None
        if previous and not unit.is_sign and not previous.is_sign and start not in marks:
            joint = text[previous.end : start]
            if not joint or (joint == "x" and previous.end not in marks):
                has_letters = previous.has_letters or bool(joint)
                units[-1] = Unit(previous.raw + joint + raw, previous.start, end, has_letters=has_letters)
                continue
        units.append(unit)
    last_end = 0
    for unit in units:
        with_letters = _with_prefix(text, _with_unit(text, unit, marks), marks, last_end)
        yield with_letters
        last_end = with_letters.end


def with_letters(text: str, offset: int, other_marks: Collection[int], first: int) -> tuple[int, int]:
    """Return the span of the letters that belong to a mark for a placeholder, as in `v<x/>` and `<x/>px`.

    Args:
        text: the text.
        offset: the offset of the mark.
        other_marks: the offsets of the other marks.
        first: the smallest offset at which the letters may begin.
    """
    unit = _with_prefix(text, Unit("", offset, offset, counts=True), other_marks, first)
    unit = _with_unit(text, unit, other_marks)
    return (offset, offset) if unit.raw in _WORDS else (unit.start, unit.end)


def numbers_of(marked: TaggedText, values: Collection[str]) -> Iterator[Unit]:
    """Yield the numbers of a text that are in `values` as units."""
    marks, breaks = set(marked.mark_offsets), sorted(word_breaks(marked))
    spans = ((start, end) for _, start, end in numbers(_cut(marked.text, breaks), marked.syntax))
    for start, end in _uncut(breaks, spans):
        raw = marked.text[start:end]
        if raw in values:
            yield _with_unit(marked.text, Unit(raw, start, end, counts=True), marks)


def unit_of(raw: str, start: int) -> Unit:
    """Return a text at an offset as a unit."""
    return Unit(raw, start, start + len(raw), counts=is_number(raw) or bool(_COUNTS.fullmatch(raw)))


def _with_unit(text: str, unit: Unit, marks: Collection[int]) -> Unit:
    """Return a unit extended by an adjacent unit of measurement, as in `%dpx` and `10kg`."""
    if unit.is_sign or unit.end in marks:
        return unit
    match = _UNIT.match(text, unit.end)
    if match and match[0] in _ENDINGS and not unit.counts:
        return unit
    if not match and unit.counts:
        match = _TIMES.match(text, unit.end)
    return unit._replace(raw=unit.raw + match[0], end=match.end(), has_letters=True) if match else unit


def _with_prefix(text: str, unit: Unit, marks: Collection[int], first: int) -> Unit:
    """Return a unit extended by the letters before it, as in `v{version}`, unless it is within a word.

    Args:
        text: the text.
        unit: the unit.
        marks: the offsets of marks.
        first: the smallest offset at which the letters may begin.
    """
    is_in_word = is_letter(text[unit.end : unit.end + 1])
    if unit.is_sign or unit.start in marks or is_in_word or is_address(unit.raw):
        return unit
    match = _PREFIX.search(text, max(first, unit.start - _LONGEST_PREFIX), unit.start)
    if not match:
        return unit
    return unit._replace(raw=match[0] + unit.raw, start=match.start(), has_letters=True)


def stand_in_names(text: str, units: Iterable[Unit], level: int, pieces: bool) -> dict[str, str]:
    """Return the stand-in of each unit by its text; units without one must be removed from the text.

    At level 0, a model that has learned pieces reads these. At level 1, a number stands in for a number, and a name for
    any other unit; at level 2, a name stands in for a number, and a number for any other unit.
    """
    names: dict[str, str] = {}
    unused = {NAMES: _not_in(text, NAMES), NUMBERS: _not_in(text, NUMBERS), PLACEHOLDERS: iter(PLACEHOLDERS)}
    for unit in units:
        if unit.raw in names or level == LAST_LEVEL or (unit.is_sign and level):
            continue
        words: tuple[str, ...] = NAMES
        if pieces and not level and not is_number(unit.raw):
            words = PLACEHOLDERS
        elif is_number(unit.raw) or unit.counts == (level == 1):
            words = NUMBERS
        if name := next(unused[words], None):
            names[unit.raw] = name
    return names


def _not_in(text: str, words: Iterable[str]) -> Iterator[str]:
    return (word for word in words if word not in text)


def needed_spaces(marked: TaggedText, units: Sequence[Unit], names: Mapping[str, str]) -> tuple[list[bool], list[bool]]:
    """Return for each unit whether its stand-in needs a space on the left, and on the right.

    It needs one if a letter or another stand-in touches it there, unless the other stand-in provides the space, or a
    mark such as a line end is in between.
    """
    text, breaks = marked.text, word_breaks(marked)

    def needs_space(ordered_units: Iterable[Unit], is_forward: bool) -> Iterator[bool]:
        touches, previous_end = False, -1
        for unit in ordered_units:
            near_end, far_end, neighbor = unit.start, unit.end, text[unit.start - 1 : unit.start]
            if not is_forward:
                near_end, far_end, neighbor = unit.end, unit.start, text[unit.end : unit.end + 1]
            if near_end != previous_end:
                touches = is_letter(neighbor) and near_end not in breaks
            has_word = unit.raw in names and not unit.is_sign
            yield has_word and touches
            # Backwards, the unit on the left needs no space if this unit provides it.
            touches = is_forward if has_word else touches and not _SEPARATES_WORDS.match(unit.raw)
            previous_end = far_end

    return list(needs_space(units, True)), list(needs_space(reversed(units), False))[::-1]


def is_letter(character: str) -> bool:
    """Whether a character is a letter or a digit of a script with spaces between words."""
    return character.isalnum() and not WITHOUT_SPACES.match(character)


def is_sign(part: str) -> bool:
    """Whether a part is a tag, an entity or a pictogram, which no word can stand in for."""
    if part[0] in "<&" and not part.startswith(("<%=", "<?=")):
        return True
    if part in "_&" or _BLOCK.match(part) or _CODE.match(part):
        return True
    return not any(map(str.isalnum, part.replace("⟦", "a"))) and part[0] not in "{%$#"


def is_address(part: str) -> bool:
    """Whether a part is an address, so that letters after it would become part of it."""
    return bool(_ADDRESS.match(part))


def occurrences(name: str, marked: TaggedText) -> list[tuple[int, int]]:
    """Return the spans of a stand-in; letters may touch a number, as in `47kg`, but not a name."""
    if name not in marked.text:
        return []
    if name in PLACEHOLDERS:
        pattern = re.escape(name)
    elif name.isdigit():
        pattern = rf"(?<!\d)(?<!\d[.,]){name}(?!\d|[.,]\d)"
    else:
        pattern = rf"(?<![{_LATIN}\d]){name}(?![{_LATIN}\d])"
    return list(_uncut(_cuts(marked), map(re.Match.span, re.finditer(pattern, cut_at_marks(marked)))))
