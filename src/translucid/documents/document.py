"""What every kind of document can do: show its segments, and take their translations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from translucid.documents.marked import Marked

LARGEST = 64 * 1024 * 1024
"""Bytes of a document, and of what is packed in it, at most."""


@dataclass(frozen=True)
class Segment:
    """A piece of a document that is translated as a whole: a paragraph, a message, a caption."""

    source: Marked
    place: str
    """Where it stands, as a person would say it: `line 12`, `slide 3`."""
    existing: str | None = None
    """The translation that the document already has for it and that stays unless another one is asked for."""
    note: str | None = None
    """What the document says about it to a translator."""
    longest: int | None = None
    """Characters that its translation may have, if the document says so."""


class NearMatch(NamedTuple):
    """What a translation memory has that is like a segment."""

    percent: int
    source: str
    target: str


@dataclass(frozen=True)
class Target:
    """The translation of a segment, and what is known of it."""

    marked: Marked
    origin: Literal["model", "memory", "person"] = "model"
    confidence: float | None = None
    """Probability that it is good, calibrated, if the run can tell."""
    doubts: tuple[str, ...] = ()
    """What looks wrong, each as `kind: what was seen`."""
    matches: tuple[NearMatch, ...] = ()
    """Near ones, the best first, if these are wanted, there is a memory, and the translation is not from it."""
    alternatives: tuple[Marked, ...] = ()
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
