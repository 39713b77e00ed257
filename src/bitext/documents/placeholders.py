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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bitext.documents import stand_ins
from bitext.documents.kept_elements import (
    Collapsed,
    Edit,
    Part,
    absorbed,
    are_nested,
    collapsed,
    edited,
    find_copies,
    spans_of,
    with_direction_signs,
    with_glued_letters,
    with_key,
    with_wordless_elements,
)
from bitext.documents.splicing import Edit as SplicedEdit
from bitext.documents.stand_ins import is_sign, occurrences, parts_of
from bitext.documents.tag_projection import Links, Span, project_tags, readable, with_copies
from bitext.documents.tagged_text import TaggedText
from bitext.protected_spans import differences, kept_parts, lost_numbers


class _StandIn(NamedTuple):
    """The part that a stand-in replaces."""

    raw: str
    touches_left: bool
    """Whether a letter touches the part on that side; the text for the model has a space there."""
    touches_right: bool


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
    stand_ins: Mapping[str, _StandIn]
    """The replaced parts by their stand-in."""
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
            {},
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
            if state.level == stand_ins.LAST_LEVEL:
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
        for name, stand_in in self.stand_ins.items():
            names[stand_in.raw] = name
            unsplit += occurrences(name, TaggedText(text))
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
        return absorbed(_with_elements(self._restored(target, joins=True), self.collapsed_source))

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
        return self._restored(TaggedText(text), joins=False).text

    @property
    def doubts(self) -> list[str]:
        """A doubt about the parts that were placed by alignment, if there are any."""
        guessed = [mark.raw for mark in self.source.marks if isinstance(mark, Part) and not is_sign(mark.raw)]
        guessed += sorted(self.state.hidden)
        return [f"placed: {' '.join(dict.fromkeys(guessed))}"] if guessed else []

    def _is_broken(self, source: str, target: str, translation: str) -> bool:
        """Whether a stand-in or a part is lost, doubled or invented, or well-nested tags have become badly nested."""
        text_for_model, translated = TaggedText(self.text), TaggedText(translation)
        for name in self.stand_ins:
            if len(occurrences(name, text_for_model)) != len(occurrences(name, translated)):
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

    def _restored(self, marked: TaggedText, *, joins: bool) -> TaggedText:
        """Return a text with the parts in place of their stand-ins.

        Args:
            marked: the text.
            joins: whether to remove the spaces that the stand-ins needed.
        """
        text = marked.text
        edits: list[Edit] = []
        for name, stand_in in self.stand_ins.items():
            for start, end in occurrences(name, marked):
                edits.append(Edit(start, end, stand_in.raw))
                if joins and stand_in.touches_left and text[max(start - 1, 0) : start] == " ":
                    edits.append(Edit(start - 1, start, ""))
                if joins and stand_in.touches_right and text.startswith(" ", end):
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
    units = [stand_ins.unit_of(copy.core, copy.start) for copy in replaced]
    merged = list(stand_ins.merged(source, (part for part in parts if part[1] not in in_copies)))
    if level or pieces:
        units += merged
    units += (unit for unit in stand_ins.numbers_of(source, state.lost) if unit.start not in in_copies)
    units.sort(key=lambda unit: unit.start)
    # At level 0 without pieces, only lost numbers and copies have stand-ins, as at level 1.
    names = stand_ins.stand_in_names(source.text, units, level if level or pieces else 1, pieces)
    if nameless := {copy.core for copy in replaced if copy.core not in names}:
        return _strategy(original, state._replace(hidden=state.hidden | nameless))
    space_left, space_right = stand_ins.needed_spaces(source, units, names)
    by_name: dict[str, _StandIn] = {}
    edits: list[Edit] = []
    removed = set[int]()
    for i, unit in enumerate(units):
        if unit.raw in names:
            name = names[unit.raw]
            edits.append(Edit(unit.start, unit.end, " " * space_left[i] + name + " " * space_right[i]))
            # The spaces are removed again only if the part touches letters wherever it occurs, and is not an address.
            previous = by_name.get(name, _StandIn(unit.raw, True, True))
            can_touch = not stand_ins.is_address(unit.raw)
            by_name[name] = _StandIn(
                unit.raw,
                previous.touches_left and space_left[i] and can_touch,
                previous.touches_right and space_right[i] and can_touch,
            )
        elif level or unit.raw in state.lost:
            edits.append(Edit(unit.start, unit.end, Part(0, unit.raw)))
            removed.update(range(unit.start, unit.end))
    expected = Counter(raw for raw, start, _ in parts if start not in removed)
    with_letters = frozenset(unit.raw for unit in merged if unit.has_letters)
    edited_source = edited(source, edits)
    return PlaceholderStrategy(original, collapsed_source, edited_source, by_name, expected, with_letters, state)


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

    Args:
        source: the source.
        target: the translation.
        numbers: whether lost numbers count too.
    """
    lost, invented = differences(
        Counter(raw for raw, _, _ in parts_of(source)), stand_ins.cut_at_marks(target), source.syntax
    )
    if numbers:
        lost += lost_numbers(readable(source).text, readable(target).text, syntax=source.syntax)
    doubts = []
    for kind, parts in (("lost", lost), ("invented", invented)):
        if parts:
            doubts.append(f"{kind}: {' '.join(parts)}")
    return doubts
