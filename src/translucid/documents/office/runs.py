"""Paragraphs of Office documents: runs of text, each with properties of its own, as texts with marks and back.

The properties that most of the text has are those of the paragraph's plain text; runs with others are pairs of marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from translucid.documents.document import Segment
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_inline import (
    PARTS_WORDS,
    Content,
    Item,
    Role,
    ends_line,
    escaped,
    is_tab,
    joined,
    line_so_far,
    paired,
    parted,
)
from translucid.documents.xml.xml_spans import Element, Piece, XmlFile
from translucid.documents.xml.xml_tags import prefix


@dataclass(frozen=True)
class Dialect:
    """How a kind of document writes its paragraphs."""

    prefix: str
    """Of the names of the elements of a run: `r`, `rPr` and `t`."""
    role: Callable[[Element], Role]
    """Of what stands in a paragraph beside runs, and in a run beside its text."""
    key: Callable[[XmlFile, Element], str]
    """Gives what of a run's properties is kept, as it stands; runs that have the same are one."""
    space: str
    """Attribute that is written where a text begins or ends with white space."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Elements of a run that stand for characters."""
    grouped: Callable[[Sequence[Element | Piece]], Sequence[Element | Piece]] = lambda parts: parts
    """Makes one element of neighbours that belong together, such as the runs of a field."""
    holding: Sequence[str] = ()
    """Names of elements in a run, such as paragraphs, that are translated by themselves."""
    spoken: Callable[[str, str], str] = lambda name, properties: properties
    """Gives properties of a run that is translated, with its language; `name` is the prefix of their elements."""


class _Run(NamedTuple):
    """Text of a run, or something else in it, with the run's properties."""

    properties: str
    item: Item


class Paragraph:
    """The runs of a paragraph."""

    def __init__(self, file: XmlFile, dialect: Dialect, parts: Sequence[Element | Piece]) -> None:
        """Read them.

        Args:
            file: where they are.
            dialect: of its format.
            parts: of the paragraph, without its properties.
        """
        self.file, self.dialect = file, dialect
        self.name = ""
        """Prefix of the elements' names, as it stands in the file, with its colon."""
        self.held: dict[str, list[Element]] = {}
        self.groups: dict[str, str] = {}
        """Properties that the first mark of a pair stands for."""
        runs = list(self._runs(parts))
        sizes = Counter[str]()
        for one in runs:
            if isinstance(one, _Run) and isinstance(one.item, str):
                sizes[one.properties] += len(one.item.strip("\0"))
        self.plain = sizes.most_common(1)[0][0] if sizes else ""
        lines = [joined(parted(paired(self._grouped(line)))) for line in self._lines(runs)]
        self.lines = [(items, Content.of(items, edges=True)) for items in lines]
        """What stands between breaks, and the text in it, if there is one to translate."""

    def _lines(self, runs: Iterable[_Run | Item]) -> Iterator[list[_Run | Item]]:
        """Part runs where a sentence ends at a break; the break is the first of what follows it."""
        line, depth, before = list[_Run | Item](), 0, ""
        items = iter(runs)
        for one in items:
            item = one.item if isinstance(one, _Run) else one
            if isinstance(item, Mark):
                depth += {Side.opens: 1, Side.closes: -1, Side.alone: 0}[item.side]
            elif item != PARTS_WORDS:
                before = line_so_far(before, item)
            else:
                following = next(items)
                mark = following.item if isinstance(following, _Run) else following
                assert isinstance(mark, Mark)
                if not depth and ends_line(before, mark.raw):
                    yield line
                    line, before = [], "\t" * is_tab(mark.raw)
                line.append(one)
                one = following
            line.append(one)
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
                yield Mark(0, self.file.raw(part.start, part.inner), Side.opens, part.start)
                yield from self._runs(part.parts)
                yield Mark(0, self.file.raw(part.inner_end, part.end), Side.closes, part.start)
            elif role == "none":
                yield from self._runs(part.parts)
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
                yield Mark(0, opening, Side.opens, part.start)
                yield from self._runs(part.parts)
                yield Mark(0, f"{self.file.raw(part.inner_end, part.end)}</{self.name}r>", Side.closes, part.start)
            elif role != "gone":
                if role == "break":
                    yield _Run(properties, PARTS_WORDS)
                raw = self.file.raw(part.start, part.end)
                yield _Run(properties, self._mark(part, f"<{self.name}r>{properties}{raw}</{self.name}r>"))

    def _mark(self, part: Element, raw: str) -> Mark:
        if any(any(part.within(name)) for name in self.dialect.holding):
            self.held.setdefault(raw, []).append(part)
        return Mark(0, raw)

    def _grouped(self, runs: Iterable[_Run | Item]) -> Iterator[Item]:
        """Yield texts and marks; neighbours whose properties are not the usual ones are put in a pair."""
        group, properties, count = list[Item](), "", 0
        for one in [*runs, ""]:
            if isinstance(one, _Run) and isinstance(one.item, str) and not one.item.strip(" \0"):
                one = one._replace(properties=properties)
            if not isinstance(one, _Run) or one.properties != properties:
                if properties != self.plain and any(isinstance(item, str) and item.strip("\0") for item in group):
                    count -= 1
                    opening = f"<{self.name}r>{properties}"
                    self.groups[opening] = properties
                    yield Mark(0, opening, Side.opens, count)
                    yield from group
                    yield Mark(0, f"</{self.name}r>", Side.closes, count)
                else:
                    yield from group
                group, properties = [], one.properties if isinstance(one, _Run) else self.plain
            if isinstance(one, _Run):
                group.append(one.item)
            else:
                yield one

    def written(self, targets: Iterable[TaggedText | None], kept: Kept) -> str:
        """Return the runs of its translation, one of each line that has a text; without one the line stays."""
        given = iter(targets)
        inside = [self.plain]
        left = {raw: iter(elements) for raw, elements in self.held.items()}
        written = list[str]()
        for line, content in self.lines:
            target = next(given) if content else None
            items = [*content.lead, *target.parts, *content.tail] if content and target else line
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
        """Yield the runs of a line; `inside` are the properties of the pairs that are open, the innermost last."""
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
    """Make segments and a slot of the runs of a paragraph, if there is something to translate in them."""
    paragraph = Paragraph(document.file, dialect, parts)
    sources = [content.source for _, content in paragraph.lines if content]
    first = len(document.segments)
    for source in sources:
        document.add_segment(Segment(source, place))

    def write(targets: Targets, kept: Kept) -> str:
        given = (targets[first + i].marked if first + i in targets else None for i in range(len(sources)))
        return paragraph.written(given, kept)

    document.add_slot(parts[0].start, parts[-1].end, range(first, first + len(sources)), write)
