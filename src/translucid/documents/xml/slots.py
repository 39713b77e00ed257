"""Slots: spans of an XML file that are written anew if their segments have translations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from translucid.documents.document import SegmentList, Target
from translucid.documents.tag_tree import completed
from translucid.documents.xml.xml_file import XmlFile
from translucid.ground.cancellation import between_steps

Targets: TypeAlias = Mapping[int, Target]
"""Translations by the number of their segment."""
Kept: TypeAlias = Callable[[int, int], str]
"""A function that returns the content of a span of the file, with the slots in it filled."""


class Slot(NamedTuple):
    """A span of the file that gets a new content."""

    start: int
    end: int
    """The end of the span; the same as `start` for an insertion."""
    segments: range
    """The segments; the slot is written anew if one of them has a translation."""
    write: Callable[[Targets, Kept], str] | str
    """Returns the new content; or the content itself, if it does not depend on the translations."""


def _contains_any(segments: range, numbers: Sequence[int]) -> bool:
    """Whether a range contains one of some sorted numbers."""
    at = bisect_left(numbers, segments.start)
    return at < len(numbers) and numbers[at] < segments.stop


class SlottedXml:
    """An XML file as a document. Slots may be nested, but must not overlap."""

    def __init__(self, file: XmlFile) -> None:
        """Start without segments."""
        self.file = file
        self.segments = SegmentList(file.name)
        self._slots: list[Slot] = []

    def add_slot(self, start: int, end: int, segments: range, write: Callable[[Targets, Kept], str] | str) -> None:
        """Add a slot, in any order."""
        self._slots.append(Slot(start, end, segments, write))

    def filled(self, targets: Targets) -> bytes:
        """Return the file with translations; they get all tags of their source, so that the file stays well-formed."""
        new_targets = completed(self.segments, targets)
        numbers = sorted(new_targets)
        slots = [slot for slot in self._slots if _contains_any(slot.segments, numbers)]
        # At the same place, insertions come first, then the outer slot before those in it.
        slots.sort(key=lambda slot: (slot.start, slot.start < slot.end, -slot.end))
        key = attrgetter("start")

        def rendered(start: int, end: int) -> bytes:
            parts, at = [], start
            for slot in slots[bisect_left(slots, start, key=key) : bisect_left(slots, end, key=key)]:
                between_steps()
                if at <= slot.start and slot.end <= end:
                    new = slot.write if isinstance(slot.write, str) else slot.write(new_targets, kept)
                    parts += [self.file.content[at : slot.start], new.encode()]
                    at = slot.end
            return b"".join([*parts, self.file.content[at:end]])

        def kept(start: int, end: int) -> str:
            return rendered(start, end).decode()

        return self.file.filled(rendered(0, len(self.file.content)))
