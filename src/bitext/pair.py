"""A sentence and its translation."""

from __future__ import annotations

from typing import NamedTuple, Self

ALONE = "\0"
"""The name of the document of a pair that belongs to none; no XML file contains this character."""


class _Texts(NamedTuple):
    source: str
    target: str


class Pair(_Texts):
    """A sentence and its translation."""

    document: int | None = None
    """The unique number of the document; None for a pair without a document, or if documents are not read."""
    references: tuple[str, ...] = ()
    """Further translations of the source, which some test sets have."""
    original: Pair | None = None
    """The pair as it was read, if its texts have been changed."""
    formality: str | None = None
    """How the target addresses the reader, `formal` or `informal`, if the corpus says so."""
    control: str | None = None
    """The control token that the model reads before the source, if any."""

    def of_document(self, number: int | None) -> Self:
        """Set the number of the document, and return the pair."""
        if number is not None:
            self.document = number
        return self

    def like(self, other: Pair) -> Self:
        """Take over the document and the formality of another pair, and return the pair."""
        if other.formality:
            self.formality = other.formality
        return self.of_document(other.document)

    @property
    def swapped(self) -> Pair:
        """The pair with its sides exchanged."""
        return Pair(self.target, self.source).of_document(self.document)
