"""A packed file whose texts stand in several of its members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from translucid.documents.complete import complete
from translucid.documents.document import Document, Segment, Target
from translucid.documents.packed import Packed
from translucid.documents.slots import MOST_SEGMENTS


class Bundle:
    """A packed file as a document."""

    def __init__(self, packed: Packed) -> None:
        """Begin with none of its members."""
        self.packed = packed
        self.segments: list[Segment] = []
        self._members: list[tuple[str, int, Document]] = []
        """Name of each member, number of its first segment, and the member as a document."""

    def add(self, member: str, document: Document, part: str) -> None:
        """Take in the texts of a member.

        Args:
            member: its name.
            document: what it is.
            part: what a person calls it.

        Raises:
            UserError: there are too many of them.
        """
        self._members.append((member, len(self.segments), document))
        self.segments += [replace(one, place=", ".join(filter(None, (part, one.place)))) for one in document.segments]
        if len(self.segments) > MOST_SEGMENTS:
            raise self.packed.refused(f"has more than {MOST_SEGMENTS:,} texts")

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`."""
        new = {}
        for member, first, document in self._members:
            own = {
                i: replace(target, marked=complete(segment.source, target.marked))
                for i, segment in enumerate(document.segments)
                if (target := targets.get(first + i))
            }
            if own:
                new[member] = document.filled(own)
        return self.packed.filled(new) if new else self.packed.content
