"""A zip file with texts in several members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from translucid.documents.document import Document, SegmentList, Target
from translucid.documents.tag_pairs import complete
from translucid.documents.zip_container import ZipContainer


class Bundle:
    """A zip file as a document."""

    def __init__(self, packed: ZipContainer) -> None:
        """Start without members."""
        self.packed = packed
        self.segments = SegmentList(packed.name)
        # The name of each member, the number of its first segment, and the member as a document.
        self._members: list[tuple[str, int, Document]] = []

    def add(self, member: str, document: Document, part: str) -> None:
        """Add the segments of a member.

        Args:
            member: the name of the member.
            document: the member as a document.
            part: the name of the member for people.

        Raises:
            UserError: the file has too many segments.
        """
        self._members.append((member, len(self.segments), document))
        for segment in document.segments:
            self.segments.add(replace(segment, place=", ".join(filter(None, (part, segment.place)))))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, which get all tags of their source, so that XML stays well-formed."""
        new = {}
        for member, first, document in self._members:
            of_member = {}
            for i, segment in enumerate(document.segments):
                if target := targets.get(first + i):
                    of_member[i] = replace(target, marked=complete(segment.source, target.marked))
            if of_member:
                new[member] = document.filled(of_member)
        return self.packed.filled(new) if new else self.packed.content
