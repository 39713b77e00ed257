"""The interface of all documents: a document has segments, and writes itself with their translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from bitext.cancellation import between_steps
from bitext.documents.limits import LONGEST_NOTE, LONGEST_PLACE, max_characters, max_segments, shortened
from bitext.documents.tagged_text import TaggedText, complete
from bitext.errors import UserError


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


class SegmentList(list[Segment]):
    """The segments of a document that is being read; one with too many is refused before it fills the memory."""

    def __init__(self, name: str) -> None:
        """Create an empty list for the file called `name`."""
        super().__init__()
        self.name, self.limit = name, max_segments()
        self._room = max_characters()
        self._long_note: str | None = None
        self._short_note: str | None = None
        self.remarks: list[str] = []
        """What the user should know about the choice of the texts, one clause each, without a final period."""

    def add(self, segment: Segment) -> int:
        """Append a segment, and return its number. A place or a note that is too long loses its middle.

        Raises:
            UserError: the document has too many segments, or too many characters in them.
            Cancelled: the request for the document was cancelled.
        """
        between_steps()
        self.need_room(len(self) + 1)
        segment = self._with_short_texts(segment)
        self._room -= _characters(segment)
        if self._room < 0:
            fix = "Split it, or shorten the notes and names that it repeats."
            raise UserError("has far more text than its size, as it repeats notes or names", file=self.name, fix=fix)
        self.append(segment)
        return len(self) - 1

    def _with_short_texts(self, segment: Segment) -> Segment:
        """Return a segment whose place and note are not too long."""
        note = segment.note
        if len(segment.place) <= LONGEST_PLACE and (note is None or len(note) <= LONGEST_NOTE):
            return segment
        if note is not self._long_note:  # segments that share a note share its short form, too
            self._long_note = note
            self._short_note = None if note is None else shortened(note, LONGEST_NOTE)
        return replace(segment, place=shortened(segment.place, LONGEST_PLACE), note=self._short_note)

    def need_room(self, segments: int) -> None:
        """Refuse a document that has, or will have, more segments than the limit.

        Raises:
            UserError: `segments` is over the limit.
        """
        if segments > self.limit:
            raise UserError(f"has more than {self.limit:,} texts", file=self.name, fix="Split it.")


def _characters(segment: Segment) -> int:
    """Return the number of characters of all texts of a segment."""
    count = len(segment.source.text) + len(segment.place) + len(segment.note or "") + len(segment.existing or "")
    for mark in segment.source.marks:
        count += len(mark.raw)
    return count


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


_SENTENCES = {
    "lost": "Missing: {}.",
    "invented": "Not in the source: {}.",
    "placed": "Check the place of {}.",
    "length": "The translation is too long: {}.",
    "long": "The text is too long for the model: {}.",
    "too short": "The translation may be incomplete: {}.",
    "too long": "The translation may have too much: {}.",
    "repeated": "The translation repeats itself: {}.",
    "copied": "The translation may be a copy: {}.",
    "wrong language": "Check the language: {}.",
    "unknown characters": "The model does not know these characters: {}",
    "unknown words": "The model may not know all words: {}.",
    "capitals": "Check the meaning: {}.",
    "lower case": "Check the meaning: {}.",
    "term not used": "A term is not used: {}.",
    "improbable": "The text is unlike what the model has learned: {}.",
    "detached attention": "The translation may not follow the text: {}.",
    "placeholders": "Check the placeholders: {}.",
}
"""The sentences for translators by the kind of a doubt."""


def sentence(doubt: str) -> str:
    """Return a doubt about a translation as a sentence for translators.

    >>> sentence("lost: %d")
    'Missing: %d.'
    """
    kind, _, details = " ".join(doubt.split()).partition(": ")
    if kind in _SENTENCES and details:
        return _SENTENCES[kind].format(details)
    text = f"{kind}: {details}" if details else kind
    return f"{text[:1].upper()}{text[1:]}."


class Document(Protocol):
    """A document after parsing."""

    @property
    def segments(self) -> SegmentList:
        """The translatable segments, in reading order."""

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the document with the translations of segments, by their numbers; every other byte is unchanged.

        Without translations, the result is the original document.
        """


def completed(segments: Sequence[Segment], targets: Mapping[int, Target]) -> dict[int, Target]:
    """Return the translations of segments, by their numbers, each with all tags of its source."""
    result: dict[int, Target] = {}
    for number, target in targets.items():
        result[number] = replace(target, marked=complete(segments[number].source, target.marked))
    return result
