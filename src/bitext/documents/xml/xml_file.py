"""XML files: their elements, the content of elements as texts with marks, and slots that are written anew.

An XML file is in memory, with the offsets of its elements and the entities that it declares. Slots are spans of the
file that are written anew if their segments have translations. Changes of a raw tag keep all its other characters. In
files of messages, as .resx and Qt's .ts, the whole text of an element is one message.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import unescape

from bitext.cancellation import between_steps
from bitext.documents.document import Segment, SegmentList, Target, completed
from bitext.documents.spans import Spans, TextFile, is_numeral, margins, trimmed
from bitext.documents.strings.messages import DIVIDER, line_breaks, tagged_parts
from bitext.documents.tagged_text import Mark, Side, TaggedText, matched_tags
from bitext.errors import UserError
from bitext.protected_spans import PlaceholderSyntax, is_non_translatable
from bitext.readers.xml_elements import Element, ElementReader, Piece

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
        self.file = file
        self.segments = SegmentList(file.name)
        self._slots: list[Slot] = []

    def add_slot(
        self, start: int, end: int, segments: range | None, write: Callable[[Targets, Render], str] | str
    ) -> None:
        """Add a slot, in any order."""
        self._slots.append(Slot(start, end, segments, write))

    def set_attributes(
        self, element: Element, attributes: Mapping[str, str | None], segments: range | None = None
    ) -> None:
        """Add a slot that sets attributes of an element, or removes those whose value is None."""
        tag = self.file.raw(element.start, element.inner)
        self.add_slot(element.start, element.inner, segments, with_attributes(tag, attributes))

    def filled(self, targets: Targets, *, is_translated: bool = False) -> bytes:
        """Return the file with translations; they get all tags of their source, so that the file stays well-formed.

        `is_translated`: whether the document that this file is a part of has translations elsewhere.
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


Item: TypeAlias = str | Mark
"""A text, or a mark whose place is ignored: the order of items determines it."""
Role: TypeAlias = Literal["pair", "alone", "break", "none", "gone"] | tuple[Side, int]
"""The role of an element in a text: two marks around its text ("pair"), one mark with its content ("alone"), one mark
that separates words ("break"), no mark around its text ("none"), nothing at all ("gone"), or a mark of a pair, given by
its side and a number that both marks share."""
unplaced = partial(Mark, 0)
"""Creates a mark whose place the order of items determines."""
WORD_BREAK = "\0"
"""An item that becomes a space between letters, else nothing."""
CDATA = "<![CDATA[", "]]>"
"""The marks around a CDATA section. Marks in the section have the form that they would have outside of it."""
MOST_DIVIDED = 8
"""The largest number of elements, one in the other, whose content is divided into segments."""
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)\w[\w.-]*;")
_BLANK = b" \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]+")
_LINE_END = 200
"""The number of characters of a line that suffice to find the end of its sentence."""
_TAB = re.compile(r"<\w+:p?tab\b")
_SENTENCE_ENDS = tuple(".:;!?…。！？؟।")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def without_forbidden(text: str) -> str:
    """Return a text with U+FFFD in place of characters that XML cannot represent."""
    return _FORBIDDEN.sub("\ufffd", text)


def escaped(text: str) -> str:
    """Escape a text for XML; characters that XML cannot represent become U+FFFD."""
    return (
        without_forbidden(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    )


def folded(text: str) -> Iterator[Item]:
    """Yield a text with each run of white space as one space."""
    yield _SPACE.sub(" ", text)


def by_line(text: str) -> Iterator[Item]:
    """Yield the lines of a text and its line ends, which are marks."""
    first, *following = text.split("\n")
    yield first
    for line in following:
        yield WORD_BREAK
        yield unplaced("\n")
        yield line


def texts_of(element: Element) -> Callable[[str], Iterator[Item]]:
    """Return the function that splits the texts of an element, by its `xml:space`."""
    return by_line if element.inherited("xml:space") == "preserve" else folded


@dataclass(frozen=True, slots=True)
class Divider(Mark):
    """A mark that separates two segments, such as a line end or an escaped tag of a block."""


class Content(NamedTuple):
    """A text, and the items around it that are not translated."""

    lead: list[Item]
    source: TaggedText
    tail: list[Item]
    subflows: Mapping[str, Sequence[Element]] = MappingProxyType({})
    """The sub-flows in each mark, by the mark in the file: elements whose text is translated separately."""

    @classmethod
    def of(
        cls, items: Iterable[Item], *, edges: bool, syntax: PlaceholderSyntax = PlaceholderSyntax.prose
    ) -> Content | None:
        """Separate a text from white space, controls of writing direction, and marks that enclose all of it.

        `edges`: whether single marks before and after the text are separated too. Return None if there is no letter to
        translate.
        """
        items = joined(items)

        def is_loose(index: int) -> bool:
            item = items[index]
            if isinstance(item, str):
                return margins(item)[0] == len(item)
            return item.side is Side.alone and (edges or item.raw.isspace())

        pairs = [getattr(item, "pair", None) for item in items]
        is_divided = any(isinstance(item, Mark) and not item.raw for item in items)
        inner = trimmed(pairs, is_loose, empty_elements=edges or is_divided)
        lead, parts, tail = items[: inner.start], items[inner], items[inner.stop :]
        if parts and isinstance(first := parts[0], str):
            size = margins(first)[0]
            lead.append(first[:size])
            parts[0] = first[size:]
        if parts and isinstance(last := parts[-1], str):
            size = len(last) - margins(last)[1]
            tail.insert(0, last[size:])
            parts[-1] = last[:size]
        source = TaggedText.of(parts, syntax)
        if not source.text.strip() or is_non_translatable(source.text, syntax) or is_numeral(source.text):
            return None
        return cls(lead, source, tail)

    def around(self, target: TaggedText) -> list[Item]:
        """Return a translation with the items around it."""
        return [*self.lead, *target.parts, *self.tail]


def joined(items: Iterable[Item]) -> list[Item]:
    """Return items with adjacent texts joined, and without empty texts."""
    result: list[Item] = []
    for is_text, group in groupby(items, key=lambda item: isinstance(item, str)):
        if not is_text:
            result += group
        elif text := "".join(map(str, group)):
            result.append(text)
    return result


@dataclass(frozen=True)
class Inline:
    """A reader of the content of elements, and writer of its translation."""

    file: XmlFile
    """The file of the elements."""
    role: Callable[[Element], Role]
    """Returns the role of an element in a text."""
    edges: bool
    """Whether single marks before and after a text do not belong to it."""
    subflow_names: Collection[str] = ()
    """The names of sub-flows: elements whose text is translated separately, even within a mark."""
    texts: Callable[[str], Iterable[Item]] = lambda text: [text]
    """Splits the text between tags into items."""
    write: Callable[[str], str] = escaped
    """Encodes a text."""
    write_cdata: Callable[[str], str] | None = None
    """Encodes a text in a CDATA section; without it, sections become normal text."""
    syntax: PlaceholderSyntax = PlaceholderSyntax.prose
    """The syntax of placeholders in the texts."""

    def content(self, parts: Iterable[Element | Piece]) -> Content | None:
        """Return the content of adjacent parts; None if there is nothing to translate."""
        subflows = defaultdict[str, list[Element]](list)
        items = separated(paired(self._items(parts, subflows)))
        content = Content.of(items, edges=self.edges, syntax=self.syntax)
        return content and content._replace(subflows=subflows)

    def contents(self, parts: Iterable[Element | Piece]) -> list[Content]:
        """Return the contents of adjacent parts, one for each segment between dividers that has a text.

        What is before the first segment or between segments belongs to the next one, the rest to the last one.
        """
        subflows = defaultdict[str, list[Element]](list)
        blocks: list[list[Item]] = [[]]
        dividers: list[Item] = []
        open_pairs: dict[int, None] = {}
        for item in paired(self._items(parts, subflows)):
            if not isinstance(item, Divider):
                blocks[-1].append(item)
                if isinstance(item, Mark) and item.side is Side.opens:
                    open_pairs[item.pair or 0] = None
                elif isinstance(item, Mark) and item.side is Side.closes:
                    del open_pairs[item.pair or 0]
            elif len(open_pairs) > MOST_DIVIDED:
                blocks[-1] += [WORD_BREAK, unplaced(item.raw)]
            else:
                # The elements around a divider end in one segment and go on in the next one, without tags of their own.
                open_pairs = dict.fromkeys(open_pairs)  # without room for those that were deleted
                blocks[-1] += [unplaced("", Side.closes, pair) for pair in reversed(open_pairs)]
                dividers.append(item)
                blocks.append([unplaced("", Side.opens, pair) for pair in open_pairs])
        contents: list[Content] = []
        lead: list[Item] = []
        for i, block in enumerate(blocks):
            if i:
                lead.append(dividers[i - 1])
            items = list(separated(paired(block)))
            if content := Content.of(items, edges=self.edges, syntax=self.syntax):
                contents.append(content._replace(lead=[*lead, *content.lead], subflows=subflows))
                lead = []
            else:
                lead += items
        if contents and lead:
            contents[-1] = contents[-1]._replace(tail=[*contents[-1].tail, *lead])
        return contents

    def _items(self, parts: Iterable[Element | Piece], subflows: dict[str, list[Element]]) -> Iterator[Item]:
        """Yield texts and marks; marks that contain sub-flows are added to `subflows`."""
        for part in parts:
            if isinstance(part, Piece):
                raw = self.file.raw(part.start, part.end)
                if part.kind == "other":  # a comment, a processing instruction or an entity reference
                    yield unplaced(raw)
                elif part.kind == "cdata" and self.write_cdata:
                    yield unplaced(CDATA[0], Side.opens, part.start)
                    yield from self._texts(part)
                    yield unplaced(CDATA[1], Side.closes, part.start)
                else:
                    yield from self._texts(part)
                continue
            role = self.role(part)
            if role == "pair" and part.inner < part.inner_end:
                yield unplaced(self.file.raw(part.start, part.inner), Side.opens, part.start)
                yield from self._items(part.parts, subflows)
                yield unplaced(self.file.raw(part.inner_end, part.end), Side.closes, part.start)
                continue
            if role == "none":
                yield from self._items(part.parts, subflows)
                continue
            raw = self.file.raw(part.start, part.end)
            if self.subflow_names and any(part.within(*self.subflow_names)):
                subflows[raw].append(part)
            if isinstance(role, tuple):
                yield unplaced(raw, *role)
            elif role != "gone":
                if role == "break":
                    yield WORD_BREAK
                yield unplaced(raw)

    def _texts(self, piece: Piece) -> Iterator[Item]:
        """Yield the items of a piece; their pairs have other numbers than those of other pieces."""
        for item in self.texts(piece.text):
            if isinstance(item, Mark) and item.pair is not None:
                yield replace(item, pair=item.pair - piece.start)
            else:
                yield item

    def written(self, contents: Sequence[Content], targets: Iterable[TaggedText], render: Render | None = None) -> str:
        """Encode the translations of contents; the sub-flows in their marks are translated too if `render` is given."""
        items: list[Item] = []
        for content, target in zip(contents, targets, strict=True):
            items += content.around(target)
        remaining = iterators(contents[0].subflows)
        parts = []
        depth = 0  # of CDATA sections, which XML cannot nest
        for item in items:
            if isinstance(item, str):
                write = self.write_cdata if depth and self.write_cdata else self.write
                parts.append(write(item))
            elif self.write_cdata and item.raw in CDATA:
                opens = item.raw == CDATA[0]
                depth += 1 if opens else -1
                if depth == int(opens):  # the outermost section
                    parts.append(item.raw)
            elif depth:
                parts.append(_within_cdata(item.raw))
            elif render and item.raw in remaining and (element := next(remaining[item.raw], None)):
                parts.append(render(element.start, element.end))
            else:
                parts.append(item.raw)
        return "".join(parts)


def iterators(subflows: Mapping[str, Iterable[Element]]) -> dict[str, Iterator[Element]]:
    """Return an iterator over the elements in each mark: equal marks contain them in order."""
    return {raw: iter(elements) for raw, elements in subflows.items()}


def written_in_cdata(text: str) -> str:
    """Encode a text for a CDATA section, which must not contain `]]>`."""
    return without_forbidden(text).replace("]]>", "]]]]><![CDATA[>")


def _within_cdata(raw: str) -> str:
    """Encode a mark within a CDATA section, which is interrupted for elements and entities."""
    if raw.startswith("<") or _ENTITY.fullmatch(raw):
        return f"{CDATA[1]}{raw}{CDATA[0]}"
    return unescape(raw)


def paired(items: Iterable[Item]) -> list[Item]:
    """Number the pairs from 0; marks of incomplete pairs become single marks."""
    items = list(items)
    pairs = defaultdict[int, list[tuple[int, Mark]]](list)
    for i, item in enumerate(items):
        if isinstance(item, Mark) and item.pair is not None:
            pairs[item.pair].append((i, item))
    count = 0
    for marks in pairs.values():
        is_complete = [mark.side for _, mark in marks] == [Side.opens, Side.closes]
        for i, mark in marks:
            items[i] = replace(mark, pair=count) if is_complete else unplaced(mark.raw)
        count += is_complete
    return items


def ends_line(before: str, raw: str) -> bool:
    """Whether a line break separates two sentences, or cells of a table.

    `before`: the text since the last such break; it begins with a tab if that was one. `raw`: the break in the file.
    """
    if is_tab(raw) or before.startswith("\t") or not before.strip():
        return True
    return before.rstrip("\"'»”’) ").endswith(_SENTENCE_ENDS)


def line_so_far(before: str, text: str) -> str:
    """Append a text to a line for `ends_line`, which needs only its first character and its end."""
    line = before + text
    if len(line) <= _LINE_END:
        return line
    return line[0] + line.rstrip()[1:][-_LINE_END // 2 :]


def is_tab(raw: str) -> bool:
    """Whether the tag of a break is that of a tab."""
    return bool(_TAB.search(raw))


def separated(items: Iterable[Item]) -> Iterator[Item]:
    """Insert spaces between words that only a break separates."""
    last_character, pending = "", list[Item]()
    for item in items:
        if isinstance(item, Mark) or item == WORD_BREAK:
            pending.append(item)
        elif item:
            if WORD_BREAK in pending and _is_word(last_character) and _is_word(item[0]):
                pending[pending.index(WORD_BREAK)] = " "
            yield from filter(_is_visible, pending)
            yield item
            last_character, pending = item[-1], []
    yield from filter(_is_visible, pending)


def _is_visible(item: Item) -> bool:
    return item != WORD_BREAK


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class AddedText(NamedTuple):
    """A text that was added as segments, with its offsets in the file."""

    numbers: range
    """The numbers of its segments: usually one, more if line ends or blocks divide it."""
    contents: list[Content]
    start: int
    end: int

    def targets(self, targets: Targets) -> list[TaggedText]:
        """Return the translation of each segment; its source if it has none."""
        texts = []
        for number, content in zip(self.numbers, self.contents, strict=True):
            texts.append(targets[number].marked if number in targets else content.source)
        return texts


def add_text(
    document: SlottedXml, inline: Inline, parts: Sequence[Element | Piece], place: str, note: str | None = None
) -> AddedText | None:
    """Add segments and a slot for adjacent parts, in order; return None if there is nothing to translate.

    `note`: a comment of the document for translators.
    """
    parts = _without_margins(inline.file, parts)
    contents = inline.contents(parts)
    if not contents:
        return None
    first = len(document.segments)
    for content in contents:
        document.segments.add(Segment(content.source, place, note=note))
    text = AddedText(range(first, len(document.segments)), contents, parts[0].start, parts[-1].end)

    def write(targets: Targets, render: Render) -> str:
        return inline.written(contents, text.targets(targets), render)

    document.add_slot(text.start, text.end, text.numbers, write)
    return text


def _without_margins(file: XmlFile, parts: Sequence[Element | Piece]) -> list[Element | Piece]:
    """Return parts without the white space at both ends; expat turns CR LF of the file into LF."""
    parts = list(parts)
    first = parts[0]
    if isinstance(first, Piece) and first.kind == "text":
        raw = file.content[first.start : first.end]
        space = raw[: len(raw) - len(raw.lstrip(_BLANK))]
        text = first.text[len(space.replace(b"\r\n", b"\n")) :]
        parts[0] = replace(first, start=first.start + len(space), text=text)
    last = parts[-1]
    if isinstance(last, Piece) and last.kind == "text":
        raw = file.content[last.start : last.end]
        space = raw[len(raw.rstrip(_BLANK)) :]
        text = last.text[: len(last.text) - len(space.replace(b"\r\n", b"\n"))]
        parts[-1] = replace(last, end=last.end - len(space), text=text)
    return parts


def message_items(text: str, *, folds: bool) -> Iterator[Item]:
    """Yield the texts and marks of a message in the text of an element, and dividers between its blocks and lines.

    `text` is without escapes of XML; `folds`: whether a run of white space counts as one space.
    """
    if folds:
        text = _SPACE.sub(" ", text)
    breaks = line_breaks(text)
    if not breaks and "<" not in text:
        yield text
        return
    parts = list(tagged_parts(text, 0, len(text), breaks=breaks))
    numbers: dict[int, int] = {}
    sides = [(part.side, part.name) for part in parts]
    for number, (opening, closing) in enumerate(matched_tags(sides), 1):
        numbers[opening] = numbers[closing] = -number  # The elements of the file have the numbers from 0.
    for i, part in enumerate(parts):
        raw = text[part.start : part.end]
        if part.side is None:
            yield raw
        elif part.name == DIVIDER:
            yield Divider(0, escaped(raw))
        elif i in numbers:
            yield unplaced(escaped(raw), part.side, numbers[i])
        else:
            yield unplaced(escaped(raw))


class Message(NamedTuple):
    """A message whose spans are segments."""

    numbers: range
    """The numbers of its segments; empty if there is nothing to translate."""
    spans: Spans
    line_end: str
    """The line end of the file: XML parsers turn each into a line feed."""

    def written(self, targets: Targets) -> str:
        """Return the message with translations, escaped for XML."""
        return escaped(self.spans.filled(targets)).replace("\n", self.line_end)


_ATTRIBUTE = re.compile(r"""(?<!\s)\s++([^\s=/>]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")


def with_attributes(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return a start tag with attributes set, or removed if their value is None.

    >>> with_attributes('<target state="new" xml:lang="es"/>', {"state": "final", "id": "1", "xml:lang": None})
    '<target state="final" id="1"/>'
    """
    remaining = dict(attributes)

    def changed(match: re.Match[str]) -> str:
        name = match[1]
        if name not in attributes:
            return match[0]
        return _attribute(name, remaining.pop(name, None))

    end = "/>" if tag.endswith("/>") else ">"
    tag = _ATTRIBUTE.sub(changed, tag[: -len(end)]).rstrip()
    return "".join([tag, *map(_attribute, remaining, remaining.values()), end])


def _attribute(name: str, value: str | None) -> str:
    if value is None:
        return ""
    quoted = escaped(value).replace('"', "&quot;").replace("\n", "&#10;")
    return f' {name}="{quoted}"'


def opened(tag: str) -> str:
    """Return a start tag, which may be that of an empty element, as one that needs an end tag."""
    return f"{tag[:-2].rstrip()}>" if tag.endswith("/>") else tag


def prefix(tag: str) -> str:
    """Return the prefix of a tag's name, including its colon.

    >>> prefix("<x:source>"), prefix("<source>")
    ('x:', '')
    """
    match = re.match(r"<([^\s/>:]+:)", tag)
    return match[1] if match else ""


def margin(file: XmlFile, element: Element) -> Piece:
    """Return the white space before an element, which may be empty."""
    previous: Element | Piece | None = None
    for part in element.parent.parts if element.parent else []:
        if part is element:
            break
        previous = part
    if isinstance(previous, Piece) and file.content[previous.start : previous.end].isspace():
        return previous
    return Piece("text", "", element.start, element.start)
