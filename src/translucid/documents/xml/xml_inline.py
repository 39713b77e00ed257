"""The content of an element as a text with marks, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import unescape

from translucid.data.non_translatable import stands_alone
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.document import Segment
from translucid.documents.spans import margins
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_spans import Element, Piece, XmlFile

Item: TypeAlias = str | Mark
"""Text, or a mark; the place of the mark does not count."""
Role: TypeAlias = Literal["pair", "alone", "break", "none", "gone"] | tuple[Side, int]
"""What an element within a text is: two marks with text between them, one mark that holds all of it, one that parts
words, no mark around text, nothing (left out where the text is written anew), or one of two marks that have a number in
common."""
PARTS_WORDS = "\0"
"""Stands for a space if there are letters on both sides, else for nothing."""
CDATA = "<![CDATA[", "]]>"
"""The marks around a CDATA section. What stands in one has other marks as they would stand outside of it."""
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)\w[\w.-]*;")
_BLANK = b" \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]+")
_LINE_END = 200
"""Characters of a line that tell where its sentence ends."""
_TAB = re.compile(r"<\w+:p?tab\b")
_SENTENCE_ENDS = tuple(".:;!?…。！？؟।")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return a text as it stands in XML; characters that XML can't hold become U+FFFD."""
    text = _FORBIDDEN.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def folded(text: str) -> Iterator[Item]:
    """Yield a text in which white space of any length is one space."""
    yield _SPACE.sub(" ", text)


def by_line(text: str) -> Iterator[Item]:
    """Yield a text whose line ends stay where they are: they are marks."""
    first, *others = text.split("\n")
    yield first
    for line in others:
        yield PARTS_WORDS
        yield Mark(0, "\n")
        yield line


class Content(NamedTuple):
    """A text with what stands around it and stays there."""

    lead: tuple[Item, ...]
    source: TaggedText
    tail: tuple[Item, ...]

    @classmethod
    def of(
        cls, items: Iterable[Item], *, edges: bool, syntax: PlaceholderSyntax = PlaceholderSyntax.prose
    ) -> Content | None:
        """Part a text from what is around it: white space, signs of direction, and marks that enclose all of it.

        Args:
            items: texts and marks in their order.
            edges: whether marks that stand alone before or behind all text are around it too.
            syntax: of placeholders in the text.

        Returns:
            Nothing where no letter is.
        """
        items = joined(items)
        lead, tail = list[Item](), list[Item]()
        at, end = 0, len(items)
        while at < end:
            first, last = items[at], items[end - 1]
            if isinstance(first, str) and (size := margins(first)[0]):
                items[at] = text = first[size:]
                lead.append(first[:size])
                at += not text
            elif isinstance(last, str) and (size := margins(last)[1]):
                items[end - 1] = text = last[:-size]
                tail.append(last[-size:])
                end -= not text
            elif _is_edge(first, edges):
                lead.append(first)
                at += 1
            elif _is_edge(last, edges):
                tail.append(last)
                end -= 1
            elif end - at > 1 and _are_pair(first, last):
                lead.append(first)
                tail.append(last)
                at, end = at + 1, end - 1
            elif edges and end - at > 1 and _are_pair(first, items[at + 1]):
                lead += items[at : at + 2]
                at += 2
            elif edges and end - at > 1 and _are_pair(items[end - 2], last):
                tail += [last, items[end - 2]]
                end -= 2
            else:
                break
        source = replace(marked(items[at:end]), syntax=syntax)
        if not source.text or stands_alone(source.text, syntax):
            return None
        return cls(tuple(lead), source, tuple(reversed(tail)))


def marked(items: Iterable[Item]) -> TaggedText:
    """Return texts and marks as one."""
    text, marks, at = [], [], 0
    for item in items:
        if isinstance(item, str):
            text.append(item)
            at += len(item)
        else:
            marks.append(replace(item, at=at))
    return TaggedText("".join(text), tuple(marks))


def _is_edge(item: Item, edges: bool) -> bool:
    return isinstance(item, Mark) and item.side is Side.alone and (edges or item.raw.isspace())


def _are_pair(one: Item, other: Item) -> bool:
    return isinstance(one, Mark) and isinstance(other, Mark) and one.pair == other.pair is not None


def joined(items: Iterable[Item]) -> list[Item]:
    """Return items with the texts that follow each other made one."""
    found: list[Item] = []
    texts: list[str] = []
    for item in (*items, None):
        if isinstance(item, str):
            texts.append(item)
            continue
        if text := "".join(texts):
            found.append(text)
        texts = []
        if item is not None:
            found.append(item)
    return found


class Inline:
    """Reads what is in an element, and writes its translation."""

    def __init__(
        self,
        file: XmlFile,
        role: Callable[[Element], Role],
        *,
        edges: bool,
        holding: Collection[str] = (),
        texts: Callable[[str], Iterable[Item]] = lambda text: [text],
        write: Callable[[str], str] = escaped,
        write_cdata: Callable[[str], str] | None = None,
        syntax: PlaceholderSyntax = PlaceholderSyntax.prose,
    ) -> None:
        """Say how.

        Args:
            file: where the elements are.
            role: of an element in a text.
            edges: whether marks that stand alone before or behind all text are no part of it.
            holding: names of elements with texts of their own; they may be in a mark.
            texts: takes apart what stands between tags.
            write: gives what stands there for a text.
            write_cdata: gives what stands in a CDATA section; without it, what is in one is written as other text.
            syntax: of placeholders in the texts.
        """
        self.file, self.role, self.edges, self.holding = file, role, edges, holding
        self.texts, self.write, self.write_cdata, self.syntax = texts, write, write_cdata, syntax

    def content(self, parts: Iterable[Element | Piece]) -> Content | None:
        """Return the text of some parts that follow each other; nothing where there is nothing to translate."""
        return Content.of(parted(paired(self._items(parts))), edges=self.edges, syntax=self.syntax)

    def _items(self, parts: Iterable[Element | Piece]) -> Iterator[Item]:
        for part in parts:
            if isinstance(part, Piece):
                raw = self.file.raw(part.start, part.end)
                if part.kind == "other":  # a comment, a processing instruction or an entity
                    yield Mark(0, raw)
                elif part.kind == "cdata" and self.write_cdata:
                    yield Mark(0, CDATA[0], Side.opens, part.start)
                    yield from self._texts(part)
                    yield Mark(0, CDATA[1], Side.closes, part.start)
                else:
                    yield from self._texts(part)
                continue
            role = self.role(part)
            if role == "pair" and part.inner < part.inner_end:
                yield Mark(0, self.file.raw(part.start, part.inner), Side.opens, part.start)
                yield from self._items(part.parts)
                yield Mark(0, self.file.raw(part.inner_end, part.end), Side.closes, part.start)
            elif role == "none":
                yield from self._items(part.parts)
            elif isinstance(role, tuple):
                yield Mark(0, self.file.raw(part.start, part.end), *role)
            elif role != "gone":
                if role == "break":
                    yield PARTS_WORDS
                yield Mark(0, self.file.raw(part.start, part.end))

    def _texts(self, piece: Piece) -> Iterator[Item]:
        """Yield what is in a piece; its pairs have other numbers than those of other pieces."""
        for item in self.texts(piece.text):
            if isinstance(item, Mark) and item.pair is not None:
                yield replace(item, pair=item.pair - piece.start)
            else:
                yield item

    def held(self, parts: Iterable[Element | Piece]) -> dict[str, list[Element]]:
        """Return the marks that have texts of their own in them, as they stand."""
        held = dict[str, list[Element]]()
        for part in parts:
            if isinstance(part, Element):
                if self.role(part) in ("pair", "none"):
                    for raw, found in self.held(part.parts).items():
                        held.setdefault(raw, []).extend(found)
                elif any(part.within(*self.holding)):
                    held.setdefault(self.file.raw(part.start, part.end), []).append(part)
        return held

    def written(self, parts: Iterable[Item], kept: Kept, held: Mapping[str, Sequence[Element]]) -> str:
        """Return texts and marks as they stand in the file; texts in the marks are translated too."""
        left = {raw: iter(elements) for raw, elements in held.items()}
        written = []
        depth = 0  # of CDATA sections, which can't stand in each other
        for part in parts:
            if isinstance(part, str):
                write = self.write_cdata if depth and self.write_cdata else self.write
                written.append(write(part))
            elif self.write_cdata and part.raw in CDATA:
                opens = part.raw == CDATA[0]
                depth += 1 if opens else -1
                written.append(part.raw if depth == opens else "")
            elif depth:
                written.append(_within_cdata(part.raw))
            elif part.raw in left and (element := next(left[part.raw], None)):
                written.append(kept(element.start, element.end))
            else:
                written.append(part.raw)
        return "".join(written)


def written_in_cdata(text: str) -> str:
    """Return a text as it stands in a CDATA section."""
    return _FORBIDDEN.sub("\ufffd", text).replace("]]>", "]]]]><![CDATA[>")


def _within_cdata(raw: str) -> str:
    """Return a mark as it stands in a CDATA section; elements and entities are none there, so that it ends before."""
    if raw.startswith("<") or _ENTITY.fullmatch(raw):
        return f"{CDATA[1]}{raw}{CDATA[0]}"
    return unescape(raw)


def paired(items: Iterable[Item]) -> list[Item]:
    """Number the pairs from 0; a mark whose pair is not complete stands alone."""
    items = list(items)
    places = dict[int, list[int]]()
    for i, item in enumerate(items):
        if isinstance(item, Mark) and item.pair is not None:
            places.setdefault(item.pair, []).append(i)
    count = 0
    for both in places.values():
        marks = [(i, item) for i in both if isinstance(item := items[i], Mark)]
        whole = [mark.side for _, mark in marks] == [Side.opens, Side.closes]
        for i, mark in marks:
            items[i] = replace(mark, pair=count) if whole else Mark(0, mark.raw)
        count += whole
    return items


def ends_line(before: str, raw: str) -> bool:
    """Whether what stands before a break and what stands behind it are two sentences, or cells of a table.

    Args:
        before: what stands since the last such break, itself included, as far as it is text or a tab.
        raw: the break as it stands in the file.
    """
    if is_tab(raw) or before.startswith("\t") or not before.strip():
        return True
    return before.rstrip("\"'»”’) ").endswith(_SENTENCE_ENDS)


def line_so_far(before: str, text: str) -> str:
    """Return what `ends_line` wants to know of a line to which a text is added: its first character and its end."""
    line = before + text
    return line if len(line) <= _LINE_END else line[0] + line.rstrip()[1:][-_LINE_END // 2 :]


def is_tab(raw: str) -> bool:
    """Whether a break, as it stands in the file, is a tab."""
    return bool(_TAB.search(raw))


def parted(items: Iterable[Item]) -> Iterator[Item]:
    """Put spaces between words that only a break parts."""
    after, waiting = "", list[Mark | None]()
    for item in items:
        if isinstance(item, Mark):
            waiting.append(item)
        elif item == PARTS_WORDS:
            waiting.append(None)
        elif item:
            both = _is_word(after) and _is_word(item[0])
            for mark in waiting:
                if mark:
                    yield mark
                elif both:
                    yield " "
                    both = False
            yield item
            after, waiting = item[-1], []
    yield from filter(None, waiting)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class Added(NamedTuple):
    """A text that was made a segment."""

    number: int
    content: Content
    start: int
    end: int
    """Of it in the file, without the margins."""


def add_text(document: SlottedXml, inline: Inline, parts: Sequence[Element | Piece], segment: Segment) -> Added | None:
    """Make a segment and a slot of parts that follow each other, if there is something to translate in them.

    Args:
        document: that gets them.
        inline: how they are read and written.
        parts: neighbours, in order.
        segment: all of it but the source.
    """
    parts = _without_margins(inline.file, parts)
    content = inline.content(parts)
    if content is None:
        return None
    number = document.add_segment(replace(segment, source=content.source))
    held = inline.held(parts) if inline.holding else {}

    def write(targets: Targets, kept: Kept) -> str:
        target = targets[number].marked
        return inline.written([*content.lead, *target.parts, *content.tail], kept, held)

    document.add_slot(parts[0].start, parts[-1].end, range(number, number + 1), write)
    return Added(number, content, parts[0].start, parts[-1].end)


def _without_margins(file: XmlFile, parts: Sequence[Element | Piece]) -> list[Element | Piece]:
    """Return parts without the white space at both ends, as it stands in the file."""
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
