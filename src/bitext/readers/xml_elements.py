"""The elements of an XML file, streamed unit by unit, with their offsets; the units of TMX and XLIFF that are corpora.

Only one unit is in memory at a time. The parser is safe for untrusted files (docs/security.md): entities in texts are
never expanded, nothing outside of the file is read, and the depth and the size of units are limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from sys import maxsize
from typing import BinaryIO, Literal
from xml.parsers import expat

from bitext.cancellation import between_steps
from bitext.errors import UserError
from bitext.protected_spans import fixed_parts
from bitext.readers.lines import LONGEST_LINE, OnBad, one_space, opened, report_bad_line

CHUNK = 1 << 16
"""The number of bytes that are parsed at a time."""
DEEPEST = 200
"""The largest depth of nested elements."""
MOST_PARTS = 200_000
"""The largest number of elements and texts of a unit."""
_XML = "http://www.w3.org/XML/1998/namespace"
_FIX = "Export it again."


@dataclass(slots=True)
class Piece:
    """Content between two tags: text, a CDATA section, or other content (a comment, an entity)."""

    kind: Literal["text", "cdata", "other"]
    text: str
    """The characters; empty for other content."""
    start: int
    end: int = -1


@dataclass(slots=True, eq=False)
class Element:
    """An element with its offsets: `start`, tag, `inner`, content, `inner_end`, tag, `end`."""

    name: str
    """The name with the prefix that the reader chose for its namespace."""
    attributes: dict[str, str]
    parent: Element | None
    line: int
    start: int
    inner: int = -1
    inner_end: int = -1
    end: int = -1
    comment: str = ""
    """The comment before a unit; empty for other elements."""
    entity: str = ""
    """An entity to which a unit refers and which is not expanded; empty for other elements."""
    parts: list[Element | Piece] = field(default_factory=list)
    """The content of a unit or of an element in a unit; empty for others."""

    @property
    def children(self) -> list[Element]:
        """The elements directly in the element."""
        return [part for part in self.parts if isinstance(part, Element)]

    def children_except(self, *names: str) -> list[Element]:
        """Return the elements directly in the element, except those with some names."""
        return [child for child in self.children if child.name not in names]

    def child(self, name: str) -> Element | None:
        """Return the last child with a name, if there is one."""
        for child in reversed(self.children):
            if child.name == name:
                return child
        return None

    def within(self, *names: str) -> Iterator[Element]:
        """Yield the descendants with some names, except those within another of them."""
        for child in self.children:
            if child.name in names:
                yield child
            else:
                yield from child.within(*names)

    def ancestors(self) -> Iterator[Element]:
        """Yield the elements around the element, the inner ones first."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def outermost(self, name: str) -> Element | None:
        """Return the outermost ancestor of a name."""
        named = [ancestor for ancestor in self.ancestors() if ancestor.name == name]
        return named[-1] if named else None

    def inherited(self, name: str) -> str | None:
        """Return the value of an attribute of the element, or of its nearest ancestor with that attribute."""
        if name in self.attributes or not self.parent:
            return self.attributes.get(name)
        return self.parent.inherited(name)

    @property
    def text(self) -> str:
        """All text in the element."""
        return "".join(part.text for part in self.parts)

    def release(self) -> None:
        """Empty the element, so that it is freed at once: it and its children refer to each other."""
        for child in self.children:
            child.release()
        self.parts.clear()

    def words(self, is_code: Callable[[Element], bool] = lambda element: False) -> str:
        """Return the text in the element, except in descendants that are codes."""
        words = ""
        for part in self.parts:
            if isinstance(part, Piece):
                words += part.text
            elif not is_code(part):
                words += part.words(is_code)
        return words


class ElementReader:
    """The handlers of expat's events, which collect the units.

    Expat reports only where an event begins, so the end of each tag and piece is set when the next event begins.
    """

    def __init__(
        self,
        name: str | Path,
        roots: Collection[str],
        names: Collection[str],
        namespaces: Mapping[str, str],
        *,
        encoding: str | None = None,
        max_bytes: int = maxsize,
    ) -> None:
        """Configure the reader.

        Args:
            name: the file name for messages.
            roots: the names that the root may have; any if empty.
            names: the names of units; an element of such a name within a unit is part of that unit.
            namespaces: the prefix of each namespace in names; the prefix of all others is `?`.
            encoding: the encoding; by default the one that the file declares, else UTF-8.
            max_bytes: the largest number of bytes of a unit.
        """
        self.name, self.roots, self.names, self.max_bytes = name, roots, names, max_bytes
        self.namespaces = {_XML: "xml", **namespaces}
        self.prefixed_names: dict[str, str] = {}
        self.parser = parser = expat.ParserCreate(encoding, " ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartCdataSectionHandler = lambda: self._piece("cdata")
        parser.EndCdataSectionHandler = self._text_ends
        parser.CommentHandler = self._comment
        parser.ProcessingInstructionHandler = lambda target, data: self._piece("other")
        parser.SkippedEntityHandler = self._skipped
        parser.StartDoctypeDeclHandler = self._doctype
        # Unlike DefaultHandlerExpand, this one prevents the expansion of entities in texts.
        parser.DefaultHandler = self._default
        self.depth = self.count = 0
        self.open: Element | None = None
        self.unit: Element | None = None
        self.pending: Element | Piece | None = None  # its last tag, or itself, ends where the next event begins
        self.piece: Piece | None = None
        self.texts: list[str] = []  # the texts of the piece, which expat may deliver in several events
        self.comment = ""
        self.ready: list[Element] = []
        self.may_declare = False  # whether the file may declare entities; their handlers are those of the caller

    def units(self, stream: BinaryIO) -> Iterator[Element]:
        """Yield each unit of a file, with its content, as it is parsed.

        Raises:
            UserError: the file is empty, not well-formed XML with such a root, or harmful.
        """
        count, size = 0, CHUNK
        while chunk := stream.read(size):
            between_steps()
            previous_index = self.parser.CurrentByteIndex
            self._parse(chunk)
            yield from self._complete_units()
            count += len(chunk)
            index = self.parser.CurrentByteIndex
            unit_start = self.unit.start if self.unit else max(index, 0)
            remaining = self.max_bytes - (count - unit_start)
            if remaining < 0:
                raise self.error(f"has a unit, tag or comment of more than {self.max_bytes:,} bytes")
            # Expat rereads an incomplete token with each chunk: a token of many megabytes needs larger chunks.
            size = CHUNK if index > previous_index else min(2 * size, remaining + 1)
        if not count:
            raise UserError("is empty", file=self.name, fix="Is this the right file?")
        self._parse(b"", last=True)
        yield from self._complete_units()

    def _parse(self, chunk: bytes, *, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise UserError(f"is no XML ({what})", file=self.name, line=error.lineno, fix=_FIX) from error
        except (LookupError, ValueError) as error:
            raise self.error("is in an encoding that can't be read") from error
        if last:
            self._end_pending()

    def _complete_units(self) -> list[Element]:
        """Return the complete units."""
        if not self.ready or self.pending is self.ready[-1]:
            return []
        ready, self.ready = self.ready, []
        return ready

    def error(self, what: str) -> UserError:
        """Return the error for invalid content."""
        return UserError(what, file=self.name, line=self.parser.CurrentLineNumber, fix=_FIX)

    def _end_pending(self) -> int:
        """Return the offset of the event, and set it as the end of the last tag or piece."""
        offset = self.parser.CurrentByteIndex
        if self.piece:
            self._text_ends()
        if isinstance(self.pending, Element) and self.pending.inner < 0:
            self.pending.inner = offset
        elif self.pending:
            self.pending.end = offset
        self.pending = None
        return offset

    def _prefixed_name(self, name: str) -> str:
        if name not in self.prefixed_names:
            namespace, _, local = name.rpartition(" ")
            prefix = self.namespaces.get(namespace, "?")
            self.prefixed_names[name] = f"{prefix}:{local}" if namespace and prefix else local
        return self.prefixed_names[name]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        offset = self._end_pending()
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"has elements nested more than {DEEPEST} levels deep")
        name = self.prefixed_names.get(name) or self._prefixed_name(name)
        if self.depth == 1 and self.roots and name not in self.roots:
            expected = " or ".join(f"<{root}>" for root in sorted(self.roots))
            raise self.error(f"begins with <{name[:50]}>, not with {expected}")
        if attributes:
            attributes = {self._prefixed_name(key): value for key, value in attributes.items()}
        element = Element(name, attributes, self.open, self.parser.CurrentLineNumber, offset)
        if self.unit is None and name in self.names:
            self.unit, self.count = element, 0
            element.comment = self.comment
        elif self.unit and self.open:
            self._count_part()
            self.open.parts.append(element)
        self.comment = ""
        self.open = self.pending = element

    def _end(self, name: str) -> None:
        offset = self._end_pending()
        element = self.open
        assert element is not None
        element.inner_end = offset
        self.open, self.pending = element.parent, element
        if self.unit is element:
            self.ready.append(element)
            self.unit = None
        self.depth -= 1
        self.comment = ""

    def _piece(self, kind: Literal["text", "cdata", "other"], text: str = "") -> None:
        offset = self._end_pending()
        if self.unit and self.open:
            self._count_part()
            self.pending = self.piece = Piece(kind, "", offset)
            self.texts = [text]
            self.open.parts.append(self.piece)

    def _text(self, text: str) -> None:
        if self.piece and self.piece.kind != "other":
            self.texts.append(text)
        else:
            self._piece("text", text)

    def _text_ends(self) -> None:
        if self.piece:
            self.piece.text, self.piece = "".join(self.texts), None

    def _comment(self, text: str) -> None:
        self._piece("other")
        self.comment = text.strip()

    def _skipped(self, entity: str, is_parameter: bool) -> None:
        self._piece("other")
        if self.unit:
            self.unit.entity = entity

    def _default(self, text: str) -> None:
        self._end_pending()

    def _count_part(self) -> None:
        self.count += 1
        if self.count > MOST_PARTS:
            raise self.error(f"has more than {MOST_PARTS:,} elements and texts in one unit")

    def _doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        self._end_pending()
        if internal and not self.may_declare:
            raise self.error("declares entities or elements of its own, which is refused")


CODES = {"bpt", "ept", "it", "ph", "ut"}
"""Elements whose content is not text but native code of the document."""
BREAKS = {"it", "ph", "ut", "x"}
"""Elements that may stand for a line end."""
UNIT_FIX = "Correct the unit, or delete it."
_JOINED = re.compile(r"(?<=\w)\0(?=\w)")


def corpus_units(
    path: Path, roots: Collection[str], names: Collection[str], namespaces: Mapping[str, str], on_bad: OnBad
) -> Iterator[Element]:
    """Yield the units of a file, gzipped or not, in the encoding that it declares; other arguments as `ElementReader`.

    A unit with an undefined entity, so that a part of its text is missing, is a bad one.

    Raises:
        UserError: the file is unreadable, not well-formed XML, has another root, or is harmful; or a unit can't be
            read, and `on_bad` is None.
    """
    reader = ElementReader(path, roots, names, namespaces, max_bytes=LONGEST_LINE)
    with opened(path) as stream:
        for unit in reader.units(stream):
            if unit.entity:
                what = f"refers to &{unit.entity};, which is not defined"
                report_bad_line(path, unit.line, what, UNIT_FIX, unit.words().strip(), on_bad)
            else:
                yield unit
            unit.release()


def inline_text(element: Element) -> str:
    """Return the text in an element without codes; placeholders in codes (`%s`, `{name}`) stay.

    A code between two words becomes a space.
    """
    text = "".join(_parts(element))
    if "\0" in text:
        text = _JOINED.sub(" ", text).replace("\0", "")
    return one_space(text)


def _parts(element: Element) -> Iterator[str]:
    """Yield the texts in an element, and a NUL, which no XML file contains, for each code that may be a line end."""
    for part in element.parts:
        if isinstance(part, Piece):
            yield part.text
        elif part.name in CODES and (placeholder := _placeholder(part)):
            yield placeholder
        elif part.name in BREAKS:
            yield "\0"
        elif part.name not in CODES:
            yield from _parts(part)


def _placeholder(code: Element) -> str:
    """Return the placeholder that a code consists of; empty if it is a tag or something else."""
    text = code.words().strip()
    return text if not text.startswith(("<", "&")) and fixed_parts(text) == [text] else ""
