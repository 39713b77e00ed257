"""Places of an XML file that are written anew where their segments are translated."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.tag_repair import complete
from translucid.documents.xml.xml_spans import XmlFile
from translucid.ground.cancellation import between_steps

Targets: TypeAlias = Mapping[int, Target]
"""Translations by the number of the segment."""
Kept: TypeAlias = Callable[[int, int], str]
"""Gives what stands in a span of the file, with the slots that lie in it filled."""


class Slot(NamedTuple):
    """A span, and what is written there."""

    start: int
    end: int
    """The same as `start` where something is only put in."""
    segments: range
    """It is written anew if one of them is translated; else it stays as it is."""
    write: Callable[[Targets, Kept], str]


def _touched(segments: range, numbers: Sequence[int]) -> bool:
    """Whether one of some sorted numbers is in a range."""
    at = bisect_left(numbers, segments.start)
    return at < len(numbers) and numbers[at] < segments.stop


class SlottedXml:
    """An XML file as a document. Slots may lie in one another but don't overlap."""

    def __init__(self, file: XmlFile) -> None:
        """Begin with no segment."""
        self.file = file
        self.segments = SegmentList(file.name)
        self._slots: list[Slot] = []

    def add_segment(self, segment: Segment) -> int:
        """Take a segment in and return its number.

        Raises:
            UserError: there are too many.
        """
        return self.segments.add(segment)

    def add_slot(self, start: int, end: int, segments: range, write: Callable[[Targets, Kept], str]) -> None:
        """Take a slot in."""
        self._slots.append(Slot(start, end, segments, write))

    def filled(self, targets: Targets) -> bytes:
        """See `Document`."""
        targets = {
            i: replace(target, marked=complete(self.segments[i].source, target.marked)) for i, target in targets.items()
        }
        numbers = sorted(targets)
        slots = [slot for slot in self._slots if _touched(slot.segments, numbers)]
        slots.sort(key=lambda slot: (slot.start, slot.start < slot.end, -slot.end))
        starts = [slot.start for slot in slots]

        def rendered(start: int, end: int) -> bytes:
            parts, at = [], start
            for slot in slots[bisect_left(starts, start) : bisect_left(starts, end)]:
                between_steps()
                if at <= slot.start and slot.end <= end:
                    parts += [self.file.content[at : slot.start], slot.write(targets, kept).encode()]
                    at = slot.end
            return b"".join([*parts, self.file.content[at:end]])

        def kept(start: int, end: int) -> str:
            return rendered(start, end).decode()

        return self.file.filled(rendered(0, len(self.file.content)))
