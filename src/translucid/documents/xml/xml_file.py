"""An XML file in memory, whose elements have offsets, so that spans can be replaced."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO

from translucid.data.readers.xml_elements import Element, ElementReader
from translucid.documents.splicing import TextFile
from translucid.documents.xml.entities import Entities
from translucid.ground.errors import UserError

_ENCODING = re.compile(rb"""<\?xml[^>]{1,100}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_WITHOUT_MARK = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}


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

    def units(self, roots: Collection[str], names: Collection[str], spaces: Mapping[str, str]) -> Iterator[Element]:
        """Yield each element of some names, with its content; see `ElementReader` for the arguments.

        Raises:
            UserError: the file is empty, not well-formed XML of such a root, or harmful.
        """
        reader = ElementReader(self.name, roots, names, spaces, encoding="utf-8")
        if self.entities:
            Entities.accept(reader)
        yield from reader.units(BytesIO(self.content))

    def refused(self, what: str, line: int | None = None) -> UserError:
        """Return the error for invalid content."""
        return UserError(what, file=self.name, line=line, fix="Export it again.")

    def filled(self, content: bytes) -> bytes:
        """Return the file with new content in its encoding; characters that it lacks are written as `&#...;`."""
        if self.file.encoding == "utf-8":
            return self.file.mark + content
        return self.file.mark + content.decode().encode(self.file.encoding, "xmlcharrefreplace")
