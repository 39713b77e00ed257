"""An XML file in memory, with the offsets of its elements and the entities that it declares; as a document with slots.

Slots are spans of the file that are written anew if their segments have translations.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from io import BytesIO
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from bitext.cancellation import between_steps
from bitext.documents.document import SegmentList, Target
from bitext.documents.splicing import TextFile
from bitext.documents.tag_tree import completed
from bitext.errors import UserError
from bitext.readers.xml_elements import Element, ElementReader

_ENCODING = re.compile(rb"""<\?xml[^>]{1,100}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_WITHOUT_MARK = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
LONGEST = 10_000
"""The largest number of characters of an entity: expat expands entities in attributes in any case."""
DEEPEST = 50
"""The largest depth of entities in entities."""
_REFERENCE = re.compile(r"&([^#&;][^&;]*);")


class XmlFile:
    """An XML file in memory. All offsets are in bytes of its text in UTF-8, whatever its encoding is."""

    def __init__(self, name: str, content: bytes, *, entities: bool = False) -> None:
        """Decode a file.

        Args:
            name: the file name for messages.
            content: the bytes; the encoding is that of the byte order mark or the XML declaration, else UTF-8.
            entities: whether the file may declare entities for texts; references to them are pieces.

        Raises:
            UserError: the bytes are not valid in that encoding.
        """
        declared = _ENCODING.match(content)
        encoding = declared[1].decode() if declared else _WITHOUT_MARK.get(content[:2])
        self.name, self.file = name, TextFile.of(name, content, encoding)
        self.content = self.file.text.encode()
        self.entities = entities

    def raw(self, start: int, end: int) -> str:
        """Return the characters of a span."""
        return self.content[start:end].decode()

    def units(self, roots: Collection[str], names: Collection[str], namespaces: Mapping[str, str]) -> Iterator[Element]:
        """Yield each element of some names, with its content; see `ElementReader` for the arguments.

        Raises:
            UserError: the file is empty, not well-formed XML of such a root, or harmful.
        """
        reader = ElementReader(self.name, roots, names, namespaces, encoding="utf-8")
        if self.entities:
            Entities.accept(reader)
        yield from reader.units(BytesIO(self.content))

    def error(self, what: str, line: int | None = None) -> UserError:
        """Return the error for invalid content."""
        return UserError(what, file=self.name, line=line, fix="Export it again.")

    def filled(self, content: bytes) -> bytes:
        """Return the file with new content in its encoding; characters that it lacks are written as `&#...;`."""
        if self.file.encoding == "utf-8":
            return self.file.bom + content
        return self.file.bom + content.decode().encode(self.file.encoding, "xmlcharrefreplace")


class Entities:
    """The entities of one file. Only internal entities with text are accepted, never external ones."""

    def __init__(self, error: Callable[[str], UserError]) -> None:
        """Start without entities; `error` creates the error for an invalid declaration."""
        self.error = error
        self.texts: dict[str, str] = {}

    @classmethod
    def accept(cls, reader: ElementReader) -> None:
        """Allow the file of a reader to declare entities that contain text."""
        entities = cls(reader.error)
        reader.may_declare = True
        reader.parser.EntityDeclHandler = entities.declared
        reader.parser.EndDoctypeDeclHandler = entities.check_sizes
        for handler in ("ElementDeclHandler", "AttlistDeclHandler", "NotationDeclHandler"):
            setattr(reader.parser, handler, entities.refuse)

    def declared(self, name: str, is_parameter: bool, text: str | None, *identifiers: str | None) -> None:
        """Add an entity; the parameters are those of expat's handler."""
        if is_parameter or text is None:
            raise self.error("declares entities that are no texts of its own, which is refused")
        self.texts.setdefault(name, text)  # By the XML standard, the first declaration counts.

    def refuse(self, *declaration: Any) -> None:
        """Refuse any other declaration."""
        raise self.error("declares elements or attributes of its own, which is refused")

    def check_sizes(self) -> None:
        """Refuse entities that are very long when expanded, or contain themselves."""
        sizes: dict[str, int] = {}
        for name in self.texts:
            self._size(name, sizes, ())

    def _size(self, name: str, sizes: dict[str, int], outer_names: tuple[str, ...]) -> int:
        """Return the number of characters of an entity, including the entities in it."""
        if name not in sizes:
            text = self.texts.get(name, "")
            if name in outer_names:
                raise self.error(f"declares the entity {name[:50]}, which contains itself")
            if len(outer_names) > DEEPEST:
                raise self.error(f"declares the entity {name[:50]}, which is nested in more than {DEEPEST} others")
            size = len(text)
            for reference in _REFERENCE.findall(text):
                size += self._size(reference, sizes, (*outer_names, name))
            sizes[name] = size
            if size > LONGEST:
                raise self.error(f"declares the entity {name[:50]}, which stands for more than {LONGEST:,} characters")
        return sizes[name]


Targets: TypeAlias = Mapping[int, Target]
"""Translations by the number of their segment."""
Render: TypeAlias = Callable[[int, int], str]
"""A function that returns the content of a span of the file, with the slots in it filled."""


class Slot(NamedTuple):
    """A span of the file that gets a new content."""

    start: int
    end: int
    """The end of the span; the same as `start` for an insertion."""
    segments: range | None
    """The segments; the slot is written anew if one of them has a translation, or, without segments, if any has."""
    write: Callable[[Targets, Render], str] | str
    """Returns the new content; or the content itself, if it does not depend on the translations."""


def _contains_any(segments: range | None, numbers: Sequence[int]) -> bool:
    """Whether a range contains one of some sorted numbers; None contains all."""
    if segments is None:
        return True
    index = bisect_left(numbers, segments.start)
    return index < len(numbers) and numbers[index] < segments.stop


class SlottedXml:
    """An XML file as a document. Slots may be nested, but must not overlap."""

    def __init__(self, file: XmlFile) -> None:
        """Start without segments."""
        self.file = file
        self.segments = SegmentList(file.name)
        self._slots: list[Slot] = []

    def add_slot(
        self, start: int, end: int, segments: range | None, write: Callable[[Targets, Render], str] | str
    ) -> None:
        """Add a slot, in any order."""
        self._slots.append(Slot(start, end, segments, write))

    def filled(self, targets: Targets, *, is_translated: bool = False) -> bytes:
        """Return the file with translations; they get all tags of their source, so that the file stays well-formed.

        Args:
            targets: the translations.
            is_translated: whether the document that this file is a part of has translations elsewhere.
        """
        if not targets and not is_translated:
            return self.file.filled(self.file.content)
        completed_targets = completed(self.segments, targets)
        return self.file.filled(self.rendered(completed_targets, 0, len(self.file.content)))

    def rendered(self, targets: Targets, start: int, end: int) -> bytes:
        """Return a span of the file with translations, which have all tags of their source."""
        numbers = sorted(targets)
        slots = [slot for slot in self._slots if _contains_any(slot.segments, numbers)]
        # At the same offset, insertions come first, and outer slots come before those in them.
        slots.sort(key=lambda slot: (slot.start, slot.start < slot.end, -slot.end))
        key = attrgetter("start")

        def render_bytes(start: int, end: int) -> bytes:
            parts, position = [], start
            for slot in slots[bisect_left(slots, start, key=key) : bisect_left(slots, end, key=key)]:
                between_steps()
                if position <= slot.start and slot.end <= end:
                    content = slot.write if isinstance(slot.write, str) else slot.write(targets, render)
                    parts += [self.file.content[position : slot.start], content.encode()]
                    position = slot.end
            return b"".join([*parts, self.file.content[position:end]])

        def render(start: int, end: int) -> str:
            return render_bytes(start, end).decode()

        return render_bytes(start, end)
