"""A set of 8-byte digests in little memory: 11 to 32 bytes for each digest, where Python's set takes 60 to 90."""

from __future__ import annotations

from array import array

FULLEST = 0.75
"""The load factor above which the table is enlarged."""


class DigestSet:
    """A hash table with open addressing and linear probing; a digest is its own hash."""

    def __init__(self) -> None:
        """Create an empty set."""
        # The size is a power of two, so that a mask finds the place; 0 is an empty place.
        self._places = array("Q", [0]) * 1024
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, digest: int) -> bool:
        """Add a digest; return whether it is new. The digest 0 is treated as 1, because 0 is an empty place."""
        digest = digest or 1
        place = self._place(digest)
        if self._places[place]:
            return False
        self._places[place] = digest
        self._count += 1
        if self._count > FULLEST * len(self._places):
            self._grow()
        return True

    def _place(self, digest: int) -> int:
        places, mask = self._places, len(self._places) - 1
        at = digest & mask
        while places[at] and places[at] != digest:
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        before = self._places
        self._places = array("Q", [0]) * (2 * len(before))
        for digest in filter(None, before):
            self._places[self._place(digest)] = digest
