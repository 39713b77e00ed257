"""The units of an XML file, streamed: only one unit is in memory at a time.

The parser is safe for files from strangers (docs/security.md): it defines no entities, reads nothing outside of the
file, and bounds the size of a unit and the depth of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from translucid.data.readers.lines import LONGEST_LINE, opened, refuse_empty
from translucid.ground.errors import UserError

CHUNK = 1 << 16
"""The number of bytes that are parsed at a time."""
DEEPEST = 100
"""The most nested elements."""


class Unit(NamedTuple):
    """An element with its content; the names of elements and attributes have no namespace prefixes."""

    line: int
    element: Element
    unknown: str | None
    """An undefined entity to which the unit refers, so that a part of the text is missing."""


def xml_units(path: Path, root: str, units: Collection[str], on_start: Callable[[Element], None]) -> Iterator[Unit]:
    """Yield the elements with some names as they are parsed.

    Args:
        path: an XML file, gzipped or not, in the encoding that it declares.
        root: the name that the root element must have.
        units: the names of the elements that are yielded.
        on_start: called with each other element as it begins, with its name and attributes but without content.

    Raises:
        UserError: the file is unreadable, not well-formed XML, has another root, or is harmful.
    """
    reader = _Reader(path, root, units, on_start)
    fed = 0
    with opened(path) as stream:
        while chunk := stream.read(CHUNK):
            reader.parse(chunk)
            fed += len(chunk)
            yield from reader.taken()
            # A tag or comment that does not end would make expat keep everything after its beginning.
            if fed - max(reader.parser.CurrentByteIndex, 0) > LONGEST_LINE:
                raise reader.refused(f"holds more than {LONGEST_LINE:,} bytes without an end")
    if not fed:
        raise refuse_empty(path)
    reader.parse(b"", last=True)
    yield from reader.taken()


class _Reader:
    """The handlers of an expat parser, which build the units."""

    def __init__(self, path: Path, root: str, units: Collection[str], on_start: Callable[[Element], None]) -> None:
        self.path, self.root, self.units, self.on_start = path, root, units, on_start
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.SkippedEntityHandler = self._skipped
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.depth = 0
        self.unit: TreeBuilder | None = None
        """The unit that is being read."""
        self.inside = 0
        """The depth of that unit."""
        self.line = self.begun = 0
        """The line and the byte at which that unit begins."""
        self.unknown: str | None = None
        self.ready: list[Unit] = []
        """The units that are complete."""

    def parse(self, chunk: bytes, *, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise UserError(f"is no XML ({what})", file=self.path, line=error.lineno, fix="Export it again.") from error
        except (LookupError, ValueError) as error:
            raise self.refused("is in an encoding that can't be read") from error

    def taken(self) -> list[Unit]:
        """Return the complete units, and forget them."""
        ready, self.ready = self.ready, []
        return ready

    def refused(self, what: str) -> UserError:
        return UserError(what, file=self.path, line=self.parser.CurrentLineNumber, fix="Export it again.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refused(f"has more than {DEEPEST} elements within each other")
        name = _local(name)
        if self.depth == 1 and name != self.root:
            raise self.refused(f"begins with <{name[:50]}>, not with <{self.root}>")
        attributes = {_local(key): value for key, value in attributes.items()}
        if self.unit is None and name in self.units:
            self.unit, self.inside, self.unknown = TreeBuilder(), self.depth, None
            self.line, self.begun = self.parser.CurrentLineNumber, self.parser.CurrentByteIndex
        if self.unit is None:
            self.on_start(Element(name, attributes))
        else:
            self._bounded()
            self.unit.start(name, attributes)

    def _end(self, name: str) -> None:
        if self.unit is not None:
            self.unit.end(_local(name))
            if self.depth == self.inside:
                self.ready.append(Unit(self.line, self.unit.close(), self.unknown))
                self.unit = None
        self.depth -= 1

    def _text(self, text: str) -> None:
        if self.unit is not None:
            self._bounded()
            self.unit.data(text)

    def _bounded(self) -> None:
        """Refuse a unit that is too long."""
        if self.parser.CurrentByteIndex - self.begun > LONGEST_LINE:
            raise self.refused(f"is within a unit of more than {LONGEST_LINE:,} bytes")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        self.unknown = name

    def _doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        if internal:
            raise self.refused("declares entities or elements of its own, which is refused")


def _local(name: str) -> str:
    """Return a name without its namespace prefix; attributes such as `xml:lang` keep theirs."""
    if name.startswith("xml:"):
        return name
    return name.rpartition(":")[2]
