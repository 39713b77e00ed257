"""Strategies to preserve the parts of a text that must be in its translation exactly once, such as placeholders.

There are four levels; the next is tried if a part was lost, doubled or invented:
0. The parts stay in the text, as they are or as vocabulary pieces that the model has learned to copy.
1. A name or a number stands in for each part.
2. Likewise, with numbers instead of names and names instead of numbers.
3. The parts are removed from the text, and inserted into the translation by word alignment, as marks are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bitext.documents.kept_elements import (
    Collapsed,
    Edit,
    Part,
    absorbed,
    are_nested,
    collapsed,
    edited,
    find_copies,
    sliced,
    spans_of,
    with_direction_signs,
    with_key,
    with_wordless_elements,
)
from bitext.documents.tag_projection import Links, Span, project_tags, readable, with_copies
from bitext.documents.tagged_text import (
    KeptElement,
    Mark,
    TaggedText,
    cut_at_marks,
    parts_of,
    spans_between,
    stands_for_text,
    word_breaks,
)
from bitext.protected_spans import (
    PLACEHOLDERS,
    UNITS,
    StandIn,
    differences,
    is_address,
    is_number,
    is_sign,
    kept_parts,
    lost_numbers,
    numbers,
    restored,
)
from bitext.protected_spans import Edit as SplicedEdit
from bitext.words import is_letter

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
_SEPARATES_WORDS = re.compile(r"<(?:br|hr|img)\b|<[^>]*/>|&(?:nbsp|ensp|emsp|thinsp|#160|#xa0);", re.IGNORECASE)
"""Tags and entities that separate words without a space."""


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

    `first`: the smallest offset at which the letters may begin.
    """
    unit = _with_prefix(text, Unit("", offset, offset, counts=True), other_marks, first)
    unit = _with_unit(text, unit, other_marks)
    return (offset, offset) if unit.raw in _WORDS else (unit.start, unit.end)


def numbers_of(marked: TaggedText, values: Collection[str]) -> Iterator[Unit]:
    """Yield the numbers of a text that are in `values` as units."""
    marks = set(marked.mark_offsets)
    for start, end in spans_between(marked, word_breaks(marked), lambda text: numbers(text, marked.syntax)):
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
    """Return a unit extended by the letters before it, from `first` on, as in `v{version}`, except within a word."""
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


def with_glued_letters(source: TaggedText) -> TaggedText:
    """Return a text in which each mark for a placeholder is one mark with its letters, as in `v<x/>` and `<x/>px`."""
    pieces: list[str | Mark] = []
    counts = Counter(source.mark_offsets)
    others = set(counts)
    position = index = 0
    for i, mark in enumerate(source.marks):
        if not stands_for_text(mark) or counts[mark.offset] > 1:
            continue
        others.remove(mark.offset)
        start, end = with_letters(source.text, mark.offset, others, position)
        others.add(mark.offset)
        if start < end:
            pieces += sliced(source, position, start, index, i).parts
            content = sliced(source, start, end, i, i + 1)
            pieces.append(KeptElement(start, content.full_text, parts=tuple(content.parts)))
            position, index = end, i + 1
    pieces += sliced(source, position, len(source.text), index, len(source.marks)).parts
    return TaggedText.of(pieces, source.syntax)


class _State(NamedTuple):
    """The state of the attempts to translate a source."""

    level: int = 0
    lost: frozenset[str] = frozenset()
    """The numbers that an earlier translation lacked. Stand-ins replace them, or they are removed."""
    pieces: bool = False
    """Whether the model has learned to copy pieces."""
    replaced: frozenset[str] = frozenset()
    """The contents of elements without letters that stand-ins replace."""
    hidden: frozenset[str] = frozenset()
    """The contents that the model does not see."""
    attached: bool = False
    """Whether the model sees contents that touch a word."""

    def without(self, lost: Collection[str], contents: Iterable[str]) -> _State:
        """Return the next state after contents of elements were lost; the third time, all contents are hidden."""
        if self.replaced and self.hidden:
            return self._replace(hidden=self.hidden.union(contents))
        replaced = set[str]()
        if not self.replaced:
            replaced = {core for core in lost if not is_sign(core) and core[0] not in "[("}
        return self._replace(replaced=self.replaced | replaced, hidden=self.hidden.union(set(lost) - replaced))


@dataclass(frozen=True)
class PlaceholderStrategy:
    """One way to translate a source: the text for the model, and the restoration of its translation."""

    original: TaggedText
    """The source, in which markers of access keys, direction controls and wordless elements are parts."""
    collapsed_source: Collapsed
    """The original with each element without letters collapsed to a mark or a copy."""
    source: TaggedText
    """The collapsed source with stand-ins for some parts, and marks for others."""
    stand_ins: Sequence[StandIn] = ()
    """The stand-ins of the replaced parts."""
    expected: Counter[str] = field(default_factory=Counter)
    """The number of times that the translation must contain each part that is not a mark."""
    with_letters: frozenset[str] = frozenset()
    """Units that include letters, such as `v{version}`: the translation must not lose the letters."""
    state: _State = field(default_factory=_State)

    @classmethod
    def first(cls, source: TaggedText, *, pieces: bool = False) -> PlaceholderStrategy:
        """Return the first strategy to try.

        Args:
            source: the text to translate.
            pieces: whether the model has learned to copy pieces of the vocabulary that stand for placeholders.
        """
        original = with_direction_signs(with_key(source))
        return _strategy(with_glued_letters(with_wordless_elements(original)), _State(pieces=pieces))

    @classmethod
    def of_pair(cls, source: TaggedText, translation: str) -> PlaceholderStrategy:
        """Return a strategy for an existing translation; elements with missing content are appended as a whole."""
        original = with_key(source)
        collapsed_source = collapsed(original, attached=True)
        hidden = set[str]()
        while lost := find_copies(translation, collapsed_source)[1]:
            hidden |= lost
            collapsed_source = collapsed(original, hidden, attached=True)
        return PlaceholderStrategy(
            original,
            collapsed_source,
            collapsed_source.source,
            state=_State(hidden=frozenset(hidden), attached=True),
        )

    @property
    def level(self) -> int:
        """The level, from 0 to 3."""
        return self.state.level

    @property
    def text(self) -> str:
        """The text for the model."""
        return readable(self.source).text.strip()

    def after(self, translation: str) -> PlaceholderStrategy | None:
        """Return the next strategy to try; None if the translation of `text` has all parts, or at the last level."""
        source, target = self.restored(self.text), self.restored(translation)
        state = self.state
        if missing := find_copies(target, self.collapsed_source)[1]:
            return _strategy(
                self.original, state.without(missing, (copy.core for copy in self.collapsed_source.copies))
            )
        if self._is_broken(source, target, translation):
            if state.level == LAST_LEVEL:
                return None
            return _strategy(self.original, state._replace(level=state.level + 1))
        lost = frozenset(lost_numbers(source, target, syntax=self.original.syntax)) - state.lost
        return _strategy(self.original, state._replace(lost=state.lost | lost)) if lost else None

    def target(self, translation: str, links: Links) -> TaggedText:
        """Return the translation with the marks and parts of the source, each once.

        Args:
            translation: a translation of `text` that passed `after`.
            links: the links between the words of both.
        """
        text, model_text = translation.strip(), readable(self.source).text
        names: dict[str, str] = {}
        unsplit: list[Span] = []
        for stand_in in self.stand_ins:
            names[stand_in.source] = stand_in.word
            unsplit += ((start, end) for _, start, end in stand_in.found_in(text))
        copied: list[tuple[int, int]] = []
        # Equal contents are searched for once.
        words = {names.get(copy.core, copy.core) for copy in self.collapsed_source.copies}
        for word in words:
            source_spans, target_spans = spans_of(word, model_text), spans_of(word, text)
            unsplit += target_spans
            if len(source_spans) == len(target_spans):
                for (source_start, _), (target_start, _) in zip(source_spans, target_spans, strict=True):
                    copied.append((source_start, target_start))
        target = project_tags(self.source, text, with_copies(links, model_text, text, copied), unsplit)
        return absorbed(_with_elements(self._restored(target), self.collapsed_source))

    def continued(self, target: TaggedText) -> TaggedText:
        """Return a translation whose first word begins in lower case if it continues a part, as in `%s went home`.

        A model that does not see the part begins a sentence after it, with a capital.
        """
        for mark in self.source.marks:
            if not isinstance(mark, Part) or is_sign(mark.raw):
                continue
            source_start, start = _after(mark.raw, self.original.text), _after(mark.raw, target.text)
            if source_start is None or start is None:
                continue
            first, second = target.text[start], target.text[start + 1 : start + 2]
            if self.original.text[source_start].islower() and first.isupper() and not second.isupper():
                return target.spliced([SplicedEdit(start, start + 1, first.lower())])
        return target

    def restored(self, text: str) -> str:
        """Return the text for the model, or a translation of it, with the parts in place of their stand-ins."""
        return restored(text, self.stand_ins)

    @property
    def doubts(self) -> list[str]:
        """A doubt about the parts that were placed by alignment, if there are any."""
        guessed = [mark.raw for mark in self.source.marks if isinstance(mark, Part) and not is_sign(mark.raw)]
        guessed += sorted(self.state.hidden)
        return [f"placed: {' '.join(dict.fromkeys(guessed))}"] if guessed else []

    def _is_broken(self, source: str, target: str, translation: str) -> bool:
        """Whether a stand-in or a part is lost, doubled or invented, or well-nested tags have become badly nested."""
        for stand_in in self.stand_ins:
            if stand_in.count(self.text) != stand_in.count(translation):
                return True
        if any(differences(self.expected, target, self.original.syntax)):
            return True
        # A language may put a space before a unit of measurement.
        without_spaces = "".join(source.split()), "".join(target.split())
        for raw in map("".join, map(str.split, self.with_letters)):
            if without_spaces[0].count(raw) > without_spaces[1].count(raw):
                return True
        return self._is_nested(source) and not self._is_nested(target)

    def _is_nested(self, text: str) -> bool:
        return are_nested(part for part, _, _ in kept_parts(text, self.original.syntax))

    def _restored(self, marked: TaggedText) -> TaggedText:
        """Return a text with the parts in place of their stand-ins, and without the spaces that these needed."""
        text = marked.text
        edits: list[Edit] = []
        for stand_in in self.stand_ins:
            touches_left, touches_right = stand_in.touches
            for start, end in spans_between(marked, marked.mark_offsets, stand_in.found_in):
                edits.append(Edit(start, end, stand_in.target))
                if touches_left and text[max(start - 1, 0) : start] == " ":
                    edits.append(Edit(start - 1, start, ""))
                if touches_right and text.startswith(" ", end):
                    edits.append(Edit(end, end + 1, ""))
        return edited(marked, dict.fromkeys(edits))  # Two stand-ins may share the space between them.


def _strategy(original: TaggedText, state: _State) -> PlaceholderStrategy:
    """Return the strategy of a state: with stand-ins for some units of the source, and with others as marks."""
    level, pieces = state.level, state.pieces
    collapsed_source = collapsed(original, state.hidden, attached=state.attached)
    source = collapsed_source.source
    replaced, in_copies = [], set[int]()
    for copy in collapsed_source.copies:
        in_copies.update(range(copy.start, copy.end))
        if copy.core in state.replaced or (pieces and any(map(str.isalpha, copy.core))):
            replaced.append(copy)
    parts = parts_of(source)
    units = [unit_of(copy.core, copy.start) for copy in replaced]
    joined = list(merged(source, (part for part in parts if part[1] not in in_copies)))
    if level or pieces:
        units += joined
    units += (unit for unit in numbers_of(source, state.lost) if unit.start not in in_copies)
    units.sort(key=lambda unit: unit.start)
    # At level 0 without pieces, only lost numbers and copies have stand-ins, as at level 1.
    names = stand_in_names(source.text, units, level if level or pieces else 1, pieces)
    if nameless := {copy.core for copy in replaced if copy.core not in names}:
        return _strategy(original, state._replace(hidden=state.hidden | nameless))
    space_left, space_right = needed_spaces(source, units, names)
    by_name: dict[str, StandIn] = {}
    edits: list[Edit] = []
    removed = set[int]()
    for i, unit in enumerate(units):
        if unit.raw in names:
            name = names[unit.raw]
            edits.append(Edit(unit.start, unit.end, " " * space_left[i] + name + " " * space_right[i]))
            # The spaces are removed again only if the part touches letters wherever it occurs, and is not an address.
            left, right = by_name[name].touches if name in by_name else (True, True)
            can_touch = not is_address(unit.raw)
            touches = left and space_left[i] and can_touch, right and space_right[i] and can_touch
            by_name[name] = StandIn(name, unit.raw, unit.raw, touches=touches)
        elif level or unit.raw in state.lost:
            edits.append(Edit(unit.start, unit.end, Part(0, unit.raw)))
            removed.update(range(unit.start, unit.end))
    expected = Counter(raw for raw, start, _ in parts if start not in removed)
    with_letters = frozenset(unit.raw for unit in joined if unit.has_letters)
    replacing = tuple(by_name.values())
    edited_source = edited(source, edits)
    return PlaceholderStrategy(original, collapsed_source, edited_source, replacing, expected, with_letters, state)


def _after(part: str, text: str) -> int | None:
    """Return the offset of the letter that follows a part at the beginning of a text after white space."""
    match = re.match(rf"\s*{re.escape(part)}\s+(?=[^\W\d_])", text)
    return match.end() if match else None


def _with_elements(marked: TaggedText, collapsed_source: Collapsed) -> TaggedText:
    """Return a translation in which each copy becomes its element, with the white space at the ends of its content."""
    text, edits, last_end = marked.text, list[Edit](), 0
    missing = dict.fromkeys(collapsed_source.copies)
    for start, end, copy in find_copies(text, collapsed_source)[0]:
        if start < last_end:
            continue
        del missing[copy]
        content = "".join(part for part in copy.element.parts if isinstance(part, str))
        # The element contains this white space itself.
        if content[0].isspace() and start > last_end and text[start - 1].isspace():
            start -= 1
        if content[-1].isspace() and text[end : end + 1].isspace():
            end += 1
        edits.append(Edit(start, end, copy.element))
        last_end = end
    edits += (Edit(len(text), len(text), copy.element) for copy in missing)
    return edited(marked, edits)


def lost_and_invented_doubts(source: TaggedText, target: TaggedText, *, numbers: bool = True) -> list[str]:
    """Return doubts about a translation that lacks parts of its source, or has parts that the source lacks.

    `numbers`: whether lost numbers count too.
    """
    lost, invented = differences(Counter(raw for raw, _, _ in parts_of(source)), cut_at_marks(target), source.syntax)
    if numbers:
        lost += lost_numbers(readable(source).text, readable(target).text, syntax=source.syntax)
    doubts = []
    for kind, parts in (("lost", lost), ("invented", invented)):
        if parts:
            doubts.append(f"{kind}: {' '.join(parts)}")
    return doubts
