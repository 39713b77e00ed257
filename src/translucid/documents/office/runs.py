"""Paragraphs of Office documents, which consist of runs with properties, as texts with marks and back.

Text with the most frequent properties of the paragraph is plain; runs with other properties are between pairs of marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from translucid.data.readers.xml_elements import Element, Piece
from translucid.documents.document import Segment
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.xml.xml_inline import (
    PARTS_WORDS,
    Content,
    Item,
    Role,
    ends_line,
    escaped,
    is_tab,
    iterators,
    joined,
    line_so_far,
    paired,
    parted,
    unplaced,
)
from translucid.documents.xml.xml_tags import prefix


@dataclass(frozen=True)
class Dialect:
    """The syntax of paragraphs in a kind of document."""

    prefix: str
    """The prefix of the elements of a run: `r`, `rPr` and `t`."""
    role: Callable[[Element], Role]
    """Returns the role of other elements in a paragraph or a run."""
    key: Callable[[XmlFile, Element], str]
    """Returns the properties of a run that a translation keeps; adjacent runs with the same are merged."""
    space: str
    """The attribute of texts that begin or end with white space."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Elements of a run that represent characters."""
    grouped: Callable[[Sequence[Element | Piece]], Sequence[Element | Piece]] = lambda parts: parts
    """Merges adjacent elements that belong together, such as the runs of a field."""
    holding: Sequence[str] = ()
    """The names of elements in a run that are translated separately, such as paragraphs."""
    spoken: Callable[[str, str], str] = lambda name, properties: properties
    """Adds the target language to the properties of a run; `name` is the prefix of their elements."""


class _Run(NamedTuple):
    """A text or a mark in a run, with the properties of the run."""

    properties: str
    item: Item


def _item(part: _Run | Item) -> Item:
    return part.item if isinstance(part, _Run) else part


class Paragraph:
    """The runs of a paragraph."""

    def __init__(self, file: XmlFile, dialect: Dialect, parts: Sequence[Element | Piece]) -> None:
        """Parse the runs.

        Args:
            file: the file.
            dialect: the syntax of its format.
            parts: the parts of the paragraph, without its properties.
        """
        self.file, self.dialect = file, dialect
        self.name = ""  # the prefix of the elements' names in this file, with its colon
        self.held: dict[str, list[Element]] = {}
        self.groups: dict[str, str] = {}  # the properties by the opening mark of a pair
        runs = list(self._runs(parts))
        sizes = Counter[str]()
        for run in runs:
            if isinstance(run, _Run) and isinstance(run.item, str):
                sizes[run.properties] += len(run.item.strip(PARTS_WORDS))
        self.plain = max(sizes, key=sizes.__getitem__, default="")
        # The items of each line, and the content to translate, if there is any.
        self.lines: list[tuple[list[Item], Content | None]] = []
        for line in self._lines(runs):
            items = joined(parted(paired(self._grouped(line))))
            self.lines.append((items, Content.of(items, edges=True)))

    def _lines(self, runs: Iterable[_Run | Item]) -> Iterator[list[_Run | Item]]:
        """Split runs where a sentence ends at a break; the next line begins with the break."""
        line, depth, before = list[_Run | Item](), 0, ""
        parts = iter(runs)
        for part in parts:
            item = _item(part)
            if isinstance(item, Mark):
                depth += item.side.depth
            elif item != PARTS_WORDS:
                before = line_so_far(before, item)
            else:
                following = next(parts)
                mark = _item(following)
                assert isinstance(mark, Mark)
                if not depth and ends_line(before, mark.raw):
                    yield line
                    line, before = [], "\t" * is_tab(mark.raw)
                line.append(part)
                part = following
            line.append(part)
        yield line

    def _runs(self, parts: Iterable[Element | Piece]) -> Iterator[_Run | Item]:
        for part in self.dialect.grouped(list(parts)):
            if isinstance(part, Piece):
                continue
            if part.name == f"{self.dialect.prefix}:r":
                yield from self._of_run(part)
                continue
            role = self.dialect.role(part)
            if role == "pair" and part.inner < part.inner_end:
                yield unplaced(self.file.raw(part.start, part.inner), Side.opens, part.start)
                yield from self._runs(part.parts)
                yield unplaced(self.file.raw(part.inner_end, part.end), Side.closes, part.start)
            elif role != "gone":
                if role == "break":
                    yield PARTS_WORDS
                yield self._mark(part, self.file.raw(part.start, part.end))

    def _of_run(self, run: Element) -> Iterator[_Run | Item]:
        self.name = prefix(self.file.raw(run.start, run.inner))
        own, properties = self.dialect.prefix, ""
        for part in self.dialect.grouped(run.parts):
            if isinstance(part, Piece):
                continue
            if part.name == f"{own}:rPr":
                properties = self.dialect.key(self.file, part)
            elif part.name == f"{own}:t":
                kept = not self.dialect.space or part.attributes.get("xml:space") == "preserve"
                yield _Run(properties, part.text if kept else part.text.strip())
            elif part.name in self.dialect.texts:
                yield _Run(properties, self.dialect.texts[part.name])
            elif (role := self.dialect.role(part)) == "pair" and part.inner < part.inner_end:
                opening = f"<{self.name}r>{properties}{self.file.raw(part.start, part.inner)}"
                yield unplaced(opening, Side.opens, part.start)
                yield from self._runs(part.parts)
                yield unplaced(f"{self.file.raw(part.inner_end, part.end)}</{self.name}r>", Side.closes, part.start)
            elif role != "gone":
                if role == "break":
                    yield _Run(properties, PARTS_WORDS)
                raw = self.file.raw(part.start, part.end)
                yield _Run(properties, self._mark(part, f"<{self.name}r>{properties}{raw}</{self.name}r>"))

    def _mark(self, part: Element, raw: str) -> Mark:
        if any(part.within(*self.dialect.holding)):
            self.held.setdefault(raw, []).append(part)
        return unplaced(raw)

    def _grouped(self, runs: Iterable[_Run | Item]) -> Iterator[Item]:
        """Yield texts and marks; a pair of marks goes around adjacent runs with properties that are not plain."""
        group, properties, count = list[Item](), "", 0
        for part in [*runs, ""]:  # The empty text ends the last group.
            # Spaces take the properties before them, as these are mostly invisible there.
            if isinstance(part, _Run) and isinstance(part.item, str) and not part.item.strip(f" {PARTS_WORDS}"):
                part = part._replace(properties=properties)
            if not isinstance(part, _Run) or part.properties != properties:
                has_text = any(isinstance(item, str) and item.strip(PARTS_WORDS) for item in group)
                if has_text and properties != self.plain:
                    count -= 1
                    opening = f"<{self.name}r>{properties}"
                    self.groups[opening] = properties
                    yield unplaced(opening, Side.opens, count)
                    yield from group
                    yield unplaced(f"</{self.name}r>", Side.closes, count)
                else:
                    yield from group
                group, properties = [], part.properties if isinstance(part, _Run) else self.plain
            if isinstance(part, _Run):
                group.append(part.item)
            else:
                yield part

    def written(self, targets: Iterable[TaggedText | None], kept: Kept) -> str:
        """Return the runs with translations, one for each line with a text; lines without a translation stay."""
        remaining = iter(targets)
        inside = [self.plain]
        left = iterators(self.held)
        written = list[str]()
        for items, content in self.lines:
            target = None
            if content and (target := next(remaining)):
                items = [*content.lead, *target.parts, *content.tail]
            written += self._line(items, inside, left, kept, translated=target is not None)
        return "".join(written)

    def _line(
        self,
        items: Iterable[Item],
        inside: list[str],
        left: Mapping[str, Iterator[Element]],
        kept: Kept,
        *,
        translated: bool,
    ) -> Iterator[str]:
        """Yield the runs of a line; `inside`: the properties of the open pairs, the innermost last."""
        closing = f"</{self.name}r>"
        for part in joined(items):
            if isinstance(part, str):
                properties = self.dialect.spoken(self.name, inside[-1]) if translated else inside[-1]
                yield f"<{self.name}r>{properties}{self._text(part)}{closing}"
            elif part.pair is not None and part.raw == closing:
                inside.pop()
            elif part.side is Side.opens and part.raw in self.groups:
                inside.append(self.groups[part.raw])
            elif part.raw in left and (element := next(left[part.raw], None)):
                raw = self.file.raw(element.start, element.end)
                yield part.raw.replace(raw, kept(element.start, element.end))
            else:
                yield part.raw

    def _text(self, text: str) -> str:
        space = f" {self.dialect.space}" if self.dialect.space and text != text.strip() else ""
        return f"<{self.name}t{space}>{escaped(text)}</{self.name}t>"


def add_paragraph(document: SlottedXml, dialect: Dialect, parts: Sequence[Element | Piece], place: str) -> None:
    """Add the lines of a paragraph as segments, and a slot for them."""
    paragraph = Paragraph(document.file, dialect, parts)
    first = len(document.segments)
    for _, content in paragraph.lines:
        if content:
            document.segments.add(Segment(content.source, place))
    numbers = range(first, len(document.segments))

    def write(targets: Targets, kept: Kept) -> str:
        translations: list[TaggedText | None] = []
        for number in numbers:
            target = targets.get(number)
            translations.append(target.marked if target else None)
        return paragraph.written(translations, kept)

    document.add_slot(parts[0].start, parts[-1].end, numbers, write)
