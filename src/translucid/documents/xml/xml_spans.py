"""The elements of an XML file with their places in its bytes, unit by unit, so that spans of it can be replaced.

Strangers' files can do no harm (docs/security.md): entities are never expanded in texts and nothing outside of the file
is read, the nesting has an end, and so has what is in a unit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from xml.parsers import expat

from translucid.documents.splicing import TextFile
from translucid.documents.xml.entities import Entities
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

CHUNK = 1 << 16
"""Bytes that are parsed at a time."""
DEEPEST = 200
"""Elements within each other, at most."""
MOST_PARTS = 200_000
"""Elements and texts of a unit, at most."""
_ENCODING = re.compile(rb"""<\?xml[^>]{1,100}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_WITHOUT_MARK = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_XML = "http://www.w3.org/XML/1998/namespace"
_FIX = "Export it again."


@dataclass(slots=True)
class Piece:
    """What stands between two tags: text, a CDATA section, or something else (a comment, an entity)."""

    kind: Literal["text", "cdata", "other"]
    text: str
    """Characters; none of what is something else."""
    start: int
    end: int = -1


@dataclass(slots=True, eq=False)
class Element:
    """An element, and where it is: `start`, tag, `inner`, content, `inner_end`, tag, `end`."""

    name: str
    """With the prefix that the reader has given to its name space."""
    attributes: dict[str, str]
    parent: Element | None
    line: int
    start: int
    inner: int = -1
    inner_end: int = -1
    end: int = -1
    comment: str = ""
    """The comment before it, of a unit."""
    parts: list[Element | Piece] = field(default_factory=list)
    """What is in it, of a unit and all within it."""

    @property
    def children(self) -> list[Element]:
        """The elements in it."""
        return [part for part in self.parts if isinstance(part, Element)]

    def child(self, *names: str) -> Element | None:
        """Return the last of its elements of some names."""
        return next((one for one in reversed(self.children) if one.name in names), None)

    def within(self, *names: str) -> Iterator[Element]:
        """Yield the elements of some names in it, at any depth, but none inside another of them."""
        for one in self.children:
            if one.name in names:
                yield one
            else:
                yield from one.within(*names)

    def inherited(self, name: str) -> str | None:
        """Return the value of an attribute of the innermost element around it, or itself, that has it."""
        one: Element | None = self
        while one is not None:
            if name in one.attributes:
                return one.attributes[name]
            one = one.parent
        return None

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(part.text for part in self.parts)


class XmlFile:
    """An XML file in memory. Places in it are bytes of its text in UTF-8, whatever encoding it has."""

    def __init__(self, name: str, content: bytes, *, entities: bool = False) -> None:
        """Decode a file.

        Args:
            name: for messages.
            content: bytes; a byte order mark or the XML declaration says the encoding, else it is UTF-8.
            entities: whether it may declare entities that stand for texts; references to them are pieces.

        Raises:
            UserError: it is not in its encoding.
        """
        declared = _ENCODING.match(content)
        encoding = declared[1].decode() if declared else _WITHOUT_MARK.get(content[:2])
        self.name, self.file = name, TextFile.of(name, content, encoding)
        self.content = self.file.text.encode()
        self.entities = entities

    def raw(self, start: int, end: int) -> str:
        """Return what stands in a span."""
        return self.content[start:end].decode()

    def units(self, roots: Collection[str], names: Collection[str], spaces: Mapping[str, str]) -> Iterator[Element]:
        """Yield each element of some names, with all that is in it.

        Args:
            roots: what the outermost element may be called; anything if there is none.
            names: of the units; those within another unit are parts of that.
            spaces: the prefix, as used in names, of each name space; names of all others have the prefix `?`.

        Raises:
            UserError: it is no well-formed XML of such a root, or harmful.
        """
        reader = _Reader(self.name, roots, names, spaces)
        if self.entities:
            reader.take_entities()
        at, size = 0, CHUNK
        while at < len(self.content):
            between_steps()
            seen = reader.parser.CurrentByteIndex
            reader.parse(self.content[at : at + size])
            yield from reader.taken()
            at += size
            # Expat reads a token anew with each chunk until it is complete: one of many megabytes gets larger chunks.
            size = CHUNK if reader.parser.CurrentByteIndex > seen else 2 * size
        reader.parse(b"", last=True)
        yield from reader.taken()

    def refused(self, what: str, line: int | None = None) -> UserError:
        """Return the error that something in it is wrong."""
        return UserError(what, file=self.name, line=line, fix=_FIX)

    def filled(self, content: bytes) -> bytes:
        """Return the file with another content, in the encoding of the file; what that lacks is written as `&#...;`."""
        if self.file.encoding == "utf-8":
            return self.file.mark + content
        return self.file.mark + content.decode().encode(self.file.encoding, "xmlcharrefreplace")


class _Reader:
    def __init__(self, name: str, roots: Collection[str], names: Collection[str], spaces: Mapping[str, str]) -> None:
        self.name, self.roots, self.names = name, roots, names
        self.spaces = {_XML: "xml", **spaces}
        self.known: dict[str, str] = {}
        self.parser = parser = expat.ParserCreate("utf-8", " ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartCdataSectionHandler = lambda: self._piece("cdata")
        parser.EndCdataSectionHandler = self._cdata_ends
        parser.CommentHandler = self._comment
        parser.ProcessingInstructionHandler = lambda target, data: self._piece("other")
        parser.SkippedEntityHandler = lambda entity, is_parameter: self._piece("other")
        parser.StartDoctypeDeclHandler = self._doctype
        # This one, unlike DefaultHandlerExpand, keeps entities of the file from being expanded in texts.
        parser.DefaultHandler = self._default
        self.depth, self.inside, self.count = 0, 0, 0
        self.open: Element | None = None
        self.unit: Element | None = None
        self.pending: tuple[Element | Piece, str] | None = None
        """Whose place is where the next event begins: the end of the last tag or piece."""
        self.piece: Piece | None = None
        self.texts: list[str] = []
        """Of the piece."""
        self.comment = ""
        self.ready: list[Element] = []
        self.entities: Entities | None = None

    def take_entities(self) -> None:
        """Let the file declare entities that stand for texts."""
        self.entities = entities = Entities(self.refused)
        self.parser.EntityDeclHandler = entities.declared
        self.parser.EndDoctypeDeclHandler = entities.check_sizes
        for other in ("ElementDeclHandler", "AttlistDeclHandler", "NotationDeclHandler"):
            setattr(self.parser, other, entities.refuse)

    def parse(self, chunk: bytes, *, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise UserError(f"is no XML ({what})", file=self.name, line=error.lineno, fix=_FIX) from error
        if last:
            self._here()

    def taken(self) -> list[Element]:
        """Return the units whose ends are known."""
        if not self.ready or (self.pending and self.pending[0] is self.ready[-1]):
            return []
        ready, self.ready = self.ready, []
        return ready

    def refused(self, what: str) -> UserError:
        return UserError(what, file=self.name, line=self.parser.CurrentLineNumber, fix=_FIX)

    def _here(self) -> int:
        """Return where an event begins; what came before it ends there."""
        at = self.parser.CurrentByteIndex
        if self.pending:
            setattr(*self.pending, at)
            self.pending = None
        if self.piece:
            self.piece.end = at
            self.piece.text = "".join(self.texts)
            self.piece = None
        return at

    def _named(self, name: str) -> str:
        if name not in self.known:
            space, _, local = name.rpartition(" ")
            prefix = self.spaces.get(space, "?") if space else ""
            self.known[name] = f"{prefix}:{local}" if prefix else local
        return self.known[name]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        at = self._here()
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refused(f"has more than {DEEPEST} elements within each other")
        name = self._named(name)
        if self.depth == 1 and self.roots and name not in self.roots:
            wanted = " or ".join(f"<{root}>" for root in sorted(self.roots))
            raise self.refused(f"begins with <{name[:50]}>, not with {wanted}")
        attributes = {self._named(key): value for key, value in attributes.items()}
        element = Element(name, attributes, self.open, self.parser.CurrentLineNumber, at)
        if self.unit is None and name in self.names:
            self.unit, self.inside, self.count = element, self.depth, 0
            element.comment = self.comment
        elif self.unit and self.open:
            self._counted()
            self.open.parts.append(element)
        self.comment = ""
        self.open, self.pending = element, (element, "inner")

    def _end(self, name: str) -> None:
        at = self._here()
        element = self.open
        assert element is not None
        element.inner_end = at
        self.open, self.pending = element.parent, (element, "end")
        if self.unit is element:
            self.ready.append(element)
            self.unit = None
        self.depth -= 1
        self.comment = ""

    def _piece(self, kind: Literal["text", "cdata", "other"], text: str = "") -> None:
        at = self._here()
        if self.unit and self.open:
            self._counted()
            self.piece, self.texts = Piece(kind, "", at), [text]
            self.open.parts.append(self.piece)

    def _text(self, text: str) -> None:
        if self.piece and self.piece.kind != "other":
            self.texts.append(text)
        else:
            self._piece("text", text)

    def _cdata_ends(self) -> None:
        if self.piece:
            self.pending, self.piece.text, self.piece = (self.piece, "end"), "".join(self.texts), None

    def _comment(self, text: str) -> None:
        self._piece("other")
        self.comment = text.strip()

    def _default(self, text: str) -> None:
        self._here()

    def _counted(self) -> None:
        self.count += 1
        if self.count > MOST_PARTS:
            raise self.refused(f"has more than {MOST_PARTS:,} elements and texts in one unit")

    def _doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        self._here()
        if internal and self.entities is None:
            raise self.refused("declares entities or elements of its own, which is refused")
