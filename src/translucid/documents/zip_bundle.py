"""A packed file whose texts stand in several of its members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from translucid.documents.document import Document, SegmentList, Target
from translucid.documents.tag_repair import complete
from translucid.documents.zip_container import ZipContainer


class Bundle:
    """A packed file as a document."""

    def __init__(self, packed: ZipContainer) -> None:
        """Begin with none of its members."""
        self.packed = packed
        self.segments = SegmentList(packed.name)
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
        for segment in document.segments:
            self.segments.add(replace(segment, place=", ".join(filter(None, (part, segment.place)))))

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
