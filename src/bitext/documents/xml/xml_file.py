"""An XML file in memory, with the offsets of its elements, to replace spans, and the entities that it declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from io import BytesIO
from typing import Any

from bitext.documents.splicing import TextFile
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
