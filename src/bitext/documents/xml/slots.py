"""Slots: spans of an XML file that are written anew if their segments have translations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from bitext.cancellation import between_steps
from bitext.documents.document import SegmentList, Target
from bitext.documents.tag_tree import completed
from bitext.documents.xml.xml_file import XmlFile

Targets: TypeAlias = Mapping[int, Target]
"""Translations by the number of their segment."""
Render: TypeAlias = Callable[[int, int], str]
"""A function that returns the content of a span of the file, with the slots in it filled."""


class Slot(NamedTuple):
    """A span of the file that gets a new content."""

    start: int
    end: int
    """The end of the span; the same as `start` for an insertion."""
    segments: range | None
    """The segments; the slot is written anew if one of them has a translation, or, without segments, if any has."""
    write: Callable[[Targets, Render], str] | str
    """Returns the new content; or the content itself, if it does not depend on the translations."""


def _contains_any(segments: range | None, numbers: Sequence[int]) -> bool:
    """Whether a range contains one of some sorted numbers; None contains all."""
    if segments is None:
        return True
    index = bisect_left(numbers, segments.start)
    return index < len(numbers) and numbers[index] < segments.stop


class SlottedXml:
    """An XML file as a document. Slots may be nested, but must not overlap."""

    def __init__(self, file: XmlFile) -> None:
        """Start without segments."""
        self.file = file
        self.segments = SegmentList(file.name)
        self._slots: list[Slot] = []

    def add_slot(
        self, start: int, end: int, segments: range | None, write: Callable[[Targets, Render], str] | str
    ) -> None:
        """Add a slot, in any order."""
        self._slots.append(Slot(start, end, segments, write))

    def filled(self, targets: Targets, *, is_translated: bool = False) -> bytes:
        """Return the file with translations; they get all tags of their source, so that the file stays well-formed.

        Args:
            targets: the translations.
            is_translated: whether the document that this file is a part of has translations elsewhere.
        """
        if not targets and not is_translated:
            return self.file.filled(self.file.content)
        completed_targets = completed(self.segments, targets)
        return self.file.filled(self.rendered(completed_targets, 0, len(self.file.content)))

    def rendered(self, targets: Targets, start: int, end: int) -> bytes:
        """Return a span of the file with translations, which have all tags of their source."""
        numbers = sorted(targets)
        slots = [slot for slot in self._slots if _contains_any(slot.segments, numbers)]
        # At the same offset, insertions come first, and outer slots come before those in them.
        slots.sort(key=lambda slot: (slot.start, slot.start < slot.end, -slot.end))
        key = attrgetter("start")

        def render_bytes(start: int, end: int) -> bytes:
            parts, position = [], start
            for slot in slots[bisect_left(slots, start, key=key) : bisect_left(slots, end, key=key)]:
                between_steps()
                if position <= slot.start and slot.end <= end:
                    content = slot.write if isinstance(slot.write, str) else slot.write(targets, render)
                    parts += [self.file.content[position : slot.start], content.encode()]
                    position = slot.end
            return b"".join([*parts, self.file.content[position:end]])

        def render(start: int, end: int) -> str:
            return render_bytes(start, end).decode()

        return render_bytes(start, end)
