"""What must come through a translation exactly once: placeholders, tags, addresses, signs and numbers.

There are four ways, each tried if the one before has lost, doubled or invented something. The parts stand in the text,
as they are or as pieces that the model has learned to copy; others stand in for them, a name or a number; likewise, the
other one; or they are taken out of the text, and put into the translation as marks are, by alignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from translucid.data.non_translatable import differences, kept_parts, lost_numbers
from translucid.documents.kept_elements import Collapsed, collapsed, copy_places, spans_of
from translucid.documents.stand_ins import (
    LAST,
    Unit,
    cut_at_marks,
    is_address,
    is_sign,
    merged,
    numbers_of,
    occurrences,
    parts_of,
    stand_in_names,
    touched,
    unit_of,
)
from translucid.documents.tag_projection import placed, readable
from translucid.documents.tagged_text import TaggedText
from translucid.documents.text_parts import (
    Edit,
    Part,
    absorbed,
    edited,
    nested,
    with_direction_signs,
    with_key,
    with_wordless_elements,
)
from translucid.documents.word_links import Links, with_copies


class _StandIn(NamedTuple):
    """What a word stands in for."""

    raw: str
    touches_left: bool
    """Whether a letter touches it on that side; in the text for the model there is a space."""
    touches_right: bool


class _State(NamedTuple):
    """What has been tried with a source."""

    level: int = 0
    lost: frozenset[str] = frozenset()
    """Numbers that are taken out, or that shorter ones stand in for."""
    pieces: bool = False
    """Whether the model has learned to copy pieces."""
    replaced: frozenset[str] = frozenset()
    """Contents of elements without letters that something stands in for."""
    hidden: frozenset[str] = frozenset()
    """Those that the model does not see."""
    attached: bool = False
    """Whether it sees those that touch a word."""

    def without(self, lost: Collection[str], every: Iterable[str]) -> _State:
        """Return what to try when contents of elements were lost, all of them at once the third time."""
        if self.replaced and self.hidden:
            return self._replace(hidden=self.hidden.union(every))
        replaced = set[str]()
        if not self.replaced:
            replaced = {core for core in lost if not is_sign(core) and core[0] not in "[("}
        hidden = self.hidden.union(core for core in lost if core not in replaced)
        return self._replace(replaced=self.replaced | replaced, hidden=hidden)


@dataclass(frozen=True)
class PlaceholderStrategy:
    """A source as the model is to read it."""

    whole: TaggedText
    """The source, with the sign of a key as a part."""
    shown: Collapsed
    """Likewise, its elements without letters as marks or copies."""
    source: TaggedText
    """With what stands in for some parts, and with others as marks."""
    stand_ins: Mapping[str, _StandIn]
    """By the word."""
    expected: Counter[str] = field(default_factory=Counter)
    """How often each part has to come out; those that are marks are not among them."""
    state: _State = field(default_factory=_State)

    @classmethod
    def first(cls, source: TaggedText, *, pieces: bool = False) -> PlaceholderStrategy:
        """Return the first one to try.

        Args:
            source: a text.
            pieces: whether the model has learned to copy pieces of the vocabulary that stand for placeholders.
        """
        return _way(with_wordless_elements(with_direction_signs(with_key(source))), _State(pieces=pieces))

    @classmethod
    def of_pair(cls, source: TaggedText, translation: str) -> PlaceholderStrategy:
        """Return one for a translation that is there; elements whose content it lacks are put into it with that."""
        whole = with_key(source)
        shown = collapsed(whole, attached=True)
        hidden = set[str]()
        while lost := copy_places(translation, shown)[1]:
            hidden |= lost
            shown = collapsed(whole, hidden, attached=True)
        return PlaceholderStrategy(
            whole, shown, shown.source, {}, state=_State(hidden=frozenset(hidden), attached=True)
        )

    @property
    def level(self) -> int:
        """Which of the four it is."""
        return self.state.level

    @property
    def text(self) -> str:
        """What the model translates."""
        return readable(self.source).text.strip()

    def after(self, translation: str) -> PlaceholderStrategy | None:
        """Return the way to try next; None if everything is in the translation of `text` that has to be."""
        source, target = self.restored(self.text), self.restored(translation)
        if lacking := copy_places(target, self.shown)[1]:
            return _way(self.whole, self.state.without(lacking, (copy.core for copy in self.shown.copies)))
        state = self.state
        if self._is_broken(source, target, translation):
            return _way(self.whole, state._replace(level=state.level + 1)) if state.level < LAST else None
        lost = frozenset(lost_numbers(source, target, syntax=self.whole.syntax)) - state.lost
        return _way(self.whole, state._replace(lost=state.lost | lost)) if lost else None

    def target(self, translation: str, links: Links) -> TaggedText:
        """Return the translation with the marks and parts of the source, each once.

        Args:
            translation: of `text`, with which `after` is content.
            links: between the words of both.
        """
        text, read = translation.strip(), readable(self.source).text
        names = {stand_in.raw: name for name, stand_in in self.stand_ins.items()}
        unsplit = [span for name in self.stand_ins for span in occurrences(name, TaggedText(text))]
        copied: list[tuple[int, int]] = []
        for word in {names.get(copy.core, copy.core) for copy in self.shown.copies}:
            before, behind = spans_of(word, read), spans_of(word, text)
            unsplit += behind
            if len(before) == len(behind):
                copied += zip((start for start, _ in before), (start for start, _ in behind), strict=True)
        marked = self._restored(placed(self.source, text, with_copies(links, read, text, copied), unsplit))
        return absorbed(_with_elements(marked, self.shown))

    def restored(self, text: str) -> str:
        """Return what somebody says of the text or its translation, with the parts themselves."""
        edits = [
            Edit(start, end, stand_in.raw)
            for name, stand_in in self.stand_ins.items()
            for start, end in occurrences(name, TaggedText(text))
        ]
        return edited(TaggedText(text), edits).text if edits else text

    @property
    def doubts(self) -> list[str]:
        """What a person should look at: parts whose place the words beside them decide."""
        guessed = [mark.raw for mark in self.source.marks if isinstance(mark, Part) and not is_sign(mark.raw)]
        guessed += sorted(self.state.hidden)
        return [f"placed: {' '.join(dict.fromkeys(guessed))}"] if guessed else []

    def _is_broken(self, source: str, target: str, translation: str) -> bool:
        """Whether something that stands in the text is lost, doubled or invented, or tags are in another order."""
        texts = TaggedText(self.text), TaggedText(translation)
        for name in self.stand_ins:
            before, after = (len(occurrences(name, text)) for text in texts)
            if before != after:
                return True
        if any(differences(self.expected, target, self.whole.syntax)):
            return True
        tags = [[part for part, _, _ in kept_parts(text, self.whole.syntax)] for text in (source, target)]
        return nested(tags[0]) and not nested(tags[1])

    def _restored(self, marked: TaggedText) -> TaggedText:
        """Return a text with the parts in the place of what stands in for them, without the spaces that it needed."""
        text = marked.text
        edits: list[Edit] = []
        for name, stand_in in self.stand_ins.items():
            for start, end in occurrences(name, marked):
                edits.append(Edit(start, end, stand_in.raw))
                if stand_in.touches_left and text[max(start - 1, 0) : start] == " ":
                    edits.append(Edit(start - 1, start, ""))
                if stand_in.touches_right and text.startswith(" ", end):
                    edits.append(Edit(end, end + 1, ""))
        return edited(marked, dict.fromkeys(edits))


def _way(whole: TaggedText, state: _State) -> PlaceholderStrategy:
    """Return a source on one of the levels; with numbers that were lost likewise, or shorter ones in their place."""
    level, pieces = state.level, state.pieces
    shown = collapsed(whole, state.hidden, attached=state.attached)
    source = shown.source
    in_copies = {at for copy in shown.copies for at in range(copy.start, copy.end)}
    replaced = [
        copy for copy in shown.copies if copy.core in state.replaced or (pieces and any(map(str.isalpha, copy.core)))
    ]
    parts = parts_of(source)
    units = list(merged(source, (part for part in parts if part[1] not in in_copies))) if level or pieces else []
    units += (unit for unit in numbers_of(source, state.lost) if unit.start not in in_copies)
    units += (unit_of(copy.core, copy.start) for copy in replaced)
    units.sort(key=lambda unit: unit.start)
    names = stand_in_names(source.text, units, level if level or pieces else 1, pieces)
    if nameless := {copy.core for copy in replaced if copy.core not in names}:
        return _way(whole, state._replace(hidden=state.hidden | nameless))
    left, right = touched(source.text, units, names)
    stand_ins: dict[str, _StandIn] = {}
    edits: list[Edit] = []
    taken: list[Unit] = []
    for i, unit in enumerate(units):
        if unit.raw in names:
            name = names[unit.raw]
            edits.append(Edit(unit.start, unit.end, " " * left[i] + name + " " * right[i]))
            same = stand_ins.get(name, _StandIn(unit.raw, True, True))
            touches = not is_address(unit.raw)
            stand_ins[name] = _StandIn(
                unit.raw, same.touches_left and left[i] and touches, same.touches_right and right[i] and touches
            )
        elif level or unit.raw[0].isdigit():
            edits.append(Edit(unit.start, unit.end, Part(0, unit.raw)))
            taken.append(unit)
    out = {at for unit in taken for at in range(unit.start, unit.end)}
    expected = Counter(raw for raw, start, _ in parts if start not in out)
    return PlaceholderStrategy(whole, shown, edited(source, edits), stand_ins, expected, state)


def _with_elements(marked: TaggedText, shown: Collapsed) -> TaggedText:
    """Return a translation with elements around the copies of their content, and the white space at its ends."""
    text, edits, done = marked.text, list[Edit](), 0
    left = dict.fromkeys(shown.copies)
    for start, end, copy in copy_places(text, shown)[0]:
        if start < done:
            continue
        del left[copy]
        content = "".join(part for part in copy.element.parts if isinstance(part, str))
        if content[0].isspace() and start > done and text[start - 1].isspace():
            start -= 1
        if content[-1].isspace() and text[end : end + 1].isspace():
            end += 1
        edits.append(Edit(start, end, copy.element))
        done = end
    edits += (Edit(len(text), len(text), copy.element) for copy in left)
    return edited(marked, edits)


def lost_and_invented_doubts(source: TaggedText, target: TaggedText, *, numbers: bool = True) -> list[str]:
    """Return what a person should know of a translation that lacks parts of its source, or has others.

    Args:
        source: of the translation.
        target: the translation.
        numbers: whether numbers that are not there count too.
    """
    lost, invented = differences(Counter(raw for raw, _, _ in parts_of(source)), cut_at_marks(target), source.syntax)
    if numbers:
        lost += lost_numbers(source.text, target.text, syntax=source.syntax)
    return [f"lost: {' '.join(lost)}"] * bool(lost) + [f"invented: {' '.join(invented)}"] * bool(invented)
