"""The interface of all documents: a document has segments, and writes itself with their translations."""

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
"""The largest number of bytes of a document, and of the unpacked content of a zip file."""
MOST_SEGMENTS = 250_000
"""The largest number of segments of a document."""
MOST_PARTS = 200_000
"""The largest number of tags and texts between tags in a segment."""
_max_segments: ContextVar[int] = ContextVar("max_segments", default=MOST_SEGMENTS)


@dataclass(frozen=True, slots=True)
class Segment:
    """A unit of a document that is translated as a whole: a paragraph, a message, a caption."""

    source: TaggedText
    place: str
    """The position in the document for people: `line 12`, `slide 3`."""
    existing: str | None = None
    """The translation that the document already has; it stays unless the user asks for a new one."""
    note: str | None = None
    """A comment in the document for translators."""
    longest: int | None = None
    """The largest number of characters of the translation, if the document limits it."""


@contextmanager
def limit_segments(limit: int) -> Iterator[None]:
    """Limit the number of segments of documents that are read in this context; reading stops once it is exceeded."""
    token = _max_segments.set(min(limit, MOST_SEGMENTS))
    try:
        yield
    finally:
        _max_segments.reset(token)


class TooManyParts(Exception):  # noqa: N818  # The caller that knows the file's name turns it into a `UserError`.
    """A text has more than `MOST_PARTS` parts."""


def max_segments() -> int:
    """Return the largest number of segments that a document may have in this context."""
    return _max_segments.get()


class SegmentList(list[Segment]):
    """The segments of a document that is being read; one with too many is refused before it fills the memory."""

    def __init__(self, name: str) -> None:
        """Create an empty list for the file called `name`."""
        super().__init__()
        self.name, self.limit = name, _max_segments.get()

    def add(self, segment: Segment) -> int:
        """Append a segment, and return its number.

        Raises:
            UserError: the document has too many segments.
            Cancelled: the request for the document was cancelled.
        """
        between_steps()
        self.need_room(len(self) + 1)
        self.append(segment)
        return len(self) - 1

    def need_room(self, segments: int) -> None:
        """Refuse a document that has, or will have, more segments than the limit.

        Raises:
            UserError: `segments` is over the limit.
        """
        if segments > self.limit:
            raise UserError(f"has more than {self.limit:,} texts", file=self.name, fix="Split it.")


class NearMatch(NamedTuple):
    """An entry of a translation memory that is similar to a segment."""

    percent: int
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Target:
    """The translation of a segment, its origin and its quality."""

    marked: TaggedText
    origin: Literal["model", "memory", "person"] = "model"
    confidence: float | None = None
    """The calibrated probability that the translation is good, if the run can estimate it."""
    doubts: tuple[str, ...] = ()
    """Results of the quality checks, each as `kind: finding`."""
    matches: tuple[NearMatch, ...] = ()
    """Similar entries of the memory, the best first; empty if the translation itself is from the memory."""
    alternatives: tuple[TaggedText, ...] = ()
    """Other translations, the best first, if the caller asked for more than one."""

    def within(self, longest: int | None) -> Target:
        """Return the translation, with another doubt if it has more than `longest` characters; None means no limit."""
        length = len(self.marked.text)
        if longest is None or length <= longest:
            return self
        return replace(self, doubts=(*self.doubts, f"length: {length} characters, {longest} at most"))


class Document(Protocol):
    """A document after parsing."""

    @property
    def segments(self) -> list[Segment]:
        """The translatable segments, in reading order."""

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the document with the translations of segments, by their numbers; every other byte is unchanged.

        Without translations, the result is the original document.
        """
