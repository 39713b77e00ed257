"""What every kind of document can do: show its segments, and take their translations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from translucid.documents.tagged_text import TaggedText
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

LARGEST = 64 * 1024 * 1024
"""Bytes of a document, and of what is packed in it, at most."""
MOST_SEGMENTS = 250_000
"""Of a document."""
MOST_PARTS = 200_000
"""Tags, and texts between them, of a segment."""
_most: ContextVar[int] = ContextVar("most", default=MOST_SEGMENTS)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a document that is translated as a whole: a paragraph, a message, a caption."""

    source: TaggedText
    place: str
    """Where it stands, as a person would say it: `line 12`, `slide 3`."""
    existing: str | None = None
    """The translation that the document already has for it and that stays unless another one is asked for."""
    note: str | None = None
    """What the document says about it to a translator."""
    longest: int | None = None
    """Characters that its translation may have, if the document says so."""


@contextmanager
def at_most(segments: int) -> Iterator[None]:
    """Let documents that are read within have so many segments at most: reading ends at the first that is too much."""
    before = _most.set(min(segments, MOST_SEGMENTS))
    try:
        yield
    finally:
        _most.reset(before)


class TooManyParts(Exception):  # noqa: N818  # whoever knows the name of the file makes an error of it
    """A text has more than `MOST_PARTS`."""


def most_segments() -> int:
    """Return how many segments a document may have that is read now."""
    return _most.get()


class SegmentList(list[Segment]):
    """The segments of a document while it is read: counted before all of it fills the memory."""

    def __init__(self, name: str) -> None:
        """`name`: of the file."""
        super().__init__()
        self.name, self.most = name, _most.get()

    def add(self, segment: Segment) -> int:
        """Take in the next one, and return its number.

        Raises:
            UserError: there are too many.
            Cancelled: nobody wants the document any more.
        """
        between_steps()
        self.need_room(len(self) + 1)
        self.append(segment)
        return len(self) - 1

    def need_room(self, segments: int) -> None:
        """Refuse a document that has, or will have, more segments than it may.

        Raises:
            UserError: it has.
        """
        if segments > self.most:
            raise UserError(f"has more than {self.most:,} texts", file=self.name, fix="Split it.")


class NearMatch(NamedTuple):
    """What a translation memory has that is like a segment."""

    percent: int
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Target:
    """The translation of a segment, and what is known of it."""

    marked: TaggedText
    origin: Literal["model", "memory", "person"] = "model"
    confidence: float | None = None
    """Probability that it is good, calibrated, if the run can tell."""
    doubts: tuple[str, ...] = ()
    """What looks wrong, each as `kind: what was seen`."""
    matches: tuple[NearMatch, ...] = ()
    """Near ones, the best first, if these are wanted, there is a memory, and the translation is not from it."""
    alternatives: tuple[TaggedText, ...] = ()
    """Other translations, the best first, if the model was asked for more than one."""

    def within(self, longest: int | None) -> Target:
        """Return it with one doubt more if it has more characters than it may; none: any number."""
        length = len(self.marked.text)
        if longest is None or length <= longest:
            return self
        return replace(self, doubts=(*self.doubts, f"length: {length} characters, {longest} at most"))


class Document(Protocol):
    """A document that was read."""

    @property
    def segments(self) -> list[Segment]:
        """All that can be translated in it, in the order of reading; what must not be is not among them."""

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the document with these translations, by the number of the segment; all else byte for byte as it was.

        With none of them, it is the document itself.
        """
