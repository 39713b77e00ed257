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

    def of_document(self, number: int | None) -> Self:
        """Set the number of the document, and return the pair."""
        if number is not None:
            self.document = number
        return self

    @property
    def swapped(self) -> Pair:
        """The pair with its sides exchanged."""
        return Pair(self.target, self.source).of_document(self.document)
