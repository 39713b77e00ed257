"""Paragraphs of Office documents, which consist of runs with properties, as texts with marks and back.

Text with the most frequent properties of the paragraph is plain; runs with other properties are between pairs of marks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from bitext.documents.document import Segment, Target
from bitext.documents.splicing import Edit
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.documents.xml.xml_file import Render, SlottedXml, Targets, XmlFile
from bitext.documents.xml.xml_inline import (
    WORD_BREAK,
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
    prefix,
    separated,
    unplaced,
)
from bitext.readers.xml_elements import Element, Piece


@dataclass(frozen=True)
class Dialect:
    """The syntax of paragraphs in a kind of document."""

    prefix: str
    """The prefix of the elements of a run: `r`, `rPr` and `t`."""
    roles: Mapping[str, Role]
    """The roles of other elements in a paragraph or a run; those without a role become single marks."""
    key: Callable[[XmlFile, Element], str]
    """Returns the properties of a run that a translation keeps; adjacent runs with the same are merged."""
    space: str
    """The attribute of texts that begin or end with white space."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Elements of a run that represent characters."""
    grouped: Callable[[Sequence[Element | Piece]], Sequence[Element | Piece]] = lambda parts: parts
    """Merges adjacent elements that belong together, such as the runs of a field."""
    subflow_names: Sequence[str] = ()
    """The names of elements in a run that are translated separately (sub-flows), such as paragraphs."""
    split: Callable[[str], Iterable[Item]] = lambda text: [text]
    """Splits the text of a run at line ends and escapes, which become single marks."""
    write: Callable[[str], str] = escaped
    """Returns a text as it is written in the file."""
    with_language: Callable[[str, str], str] = lambda name, properties: properties
    """Adds the target language to the properties of a run; `name` is the prefix of their elements."""


_INITIAL = re.compile("[\\W_]*[^\\W_][\u0300-\u036f]*")
"""The first letter of a text with its accents and the signs before it."""
_Run: TypeAlias = tuple[str | None, Item]
"""A text or a mark, with the properties of the run that it is in; None outside of runs."""


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
        self.subflows: dict[str, list[Element]] = {}
        self.groups: dict[str, str] = {}  # the properties by the opening mark of a pair
        runs = list(self._runs(parts))
        self.tight_breaks = _tight_breaks(runs)
        sizes = Counter[str]()
        for properties, item in runs:
            if properties is not None and isinstance(item, str):
                sizes[properties] += len(item.strip(WORD_BREAK))
        self.plain = max(sizes, key=sizes.__getitem__, default="")
        # The items of each line, and the content to translate, if there is any.
        self.lines: list[tuple[list[Item], Content | None]] = []
        for line in self._lines(runs):
            items = list(separated(paired(self._grouped(line))))
            self.lines.append((items, Content.of(items, edges=True)))

    def _lines(self, runs: Iterable[_Run]) -> Iterator[list[_Run]]:
        """Split runs where a sentence ends at a break; the next line begins with the break."""
        line, depth, before = list[_Run](), 0, ""
        remaining = iter(runs)
        for run in remaining:
            item = run[1]
            if isinstance(item, Mark):
                depth += item.side.depth
            elif item != WORD_BREAK:
                before = line_so_far(before, item)
            else:
                mark = next(remaining)
                assert isinstance(mark[1], Mark)
                if not depth and ends_line(before, mark[1].raw):
                    yield line
                    line, before = [], "\t" * is_tab(mark[1].raw)
                line.append(run)
                run = mark
            line.append(run)
        yield line

    def _runs(self, parts: Sequence[Element | Piece]) -> Iterator[_Run]:
        """Yield the texts and marks of a paragraph, or of an element in it that contains runs."""
        for part in self.dialect.grouped(parts):
            if isinstance(part, Element):
                is_run = part.name == f"{self.dialect.prefix}:r"
                yield from self._run_items(part) if is_run else self._marks(part, None)

    def _run_items(self, run: Element) -> Iterator[_Run]:
        self.name = prefix(self.file.raw(run.start, run.inner))
        dialect_prefix, properties = self.dialect.prefix, ""
        for part in self.dialect.grouped(run.parts):
            if isinstance(part, Piece):
                continue
            if part.name == f"{dialect_prefix}:rPr":
                properties = self.dialect.key(self.file, part)
            elif part.name == f"{dialect_prefix}:t":
                keeps_space = not self.dialect.space or part.attributes.get("xml:space") == "preserve"
                for item in self.dialect.split(part.text if keeps_space else part.text.strip()):
                    yield properties, self._in_run(item, properties)
            elif part.name in self.dialect.texts:
                yield properties, self.dialect.texts[part.name]
            else:
                yield from self._marks(part, properties)

    def _in_run(self, item: Item, properties: str) -> Item:
        """Return an item of a text; a mark gets a run around it."""
        if isinstance(item, str):
            return item
        return unplaced(f"<{self.name}r>{properties}{self._element(item.raw, has_space=True)}</{self.name}r>")

    def _marks(self, part: Element, properties: str | None) -> Iterator[_Run]:
        """Yield the marks of an element other than text, and what is between them; a mark in a run starts a new run."""
        before = after = ""
        if properties is not None:
            before, after = f"<{self.name}r>{properties}", f"</{self.name}r>"
        role, raw = self.dialect.roles.get(part.name, "alone"), self.file.raw
        if role == "pair" and part.inner < part.inner_end:
            yield None, unplaced(before + raw(part.start, part.inner), Side.opens, part.start)
            yield from self._runs(part.parts)
            yield None, unplaced(raw(part.inner_end, part.end) + after, Side.closes, part.start)
        elif role != "gone":
            if role == "break":
                yield properties, WORD_BREAK
            mark = unplaced(before + raw(part.start, part.end) + after)
            if any(part.within(*self.dialect.subflow_names)):
                self.subflows.setdefault(mark.raw, []).append(part)
            yield properties, mark

    def _grouped(self, runs: Iterable[_Run]) -> Iterator[Item]:
        """Yield texts and marks; a pair of marks goes around adjacent runs with properties that are not plain."""
        count = 0
        for properties, group in groupby(self._with_spaces(runs), key=itemgetter(0)):
            items = list(map(itemgetter(1), group))
            has_text = any(isinstance(item, str) and item.strip(WORD_BREAK) for item in items)
            if properties in (None, self.plain) or not has_text:
                yield from items
                continue
            count -= 1
            opening = f"<{self.name}r>{properties}"
            self.groups[opening] = properties
            yield unplaced(opening, Side.opens, count)
            yield from items
            yield unplaced(f"</{self.name}r>", Side.closes, count)

    def _with_spaces(self, runs: Iterable[_Run]) -> Iterator[_Run]:
        """Yield runs; spaces take the properties of the run before them, most of which are invisible on spaces."""
        previous = ""
        for properties, item in runs:
            if properties is not None and isinstance(item, str) and not item.strip(f" {WORD_BREAK}"):
                properties = previous
            yield properties, item
            previous = self.plain if properties is None else properties

    def written(self, targets: Iterable[Target | None], render: Render) -> str:
        """Return the runs with translations, one for each line with a text; lines without a translation stay."""
        remaining_targets = iter(targets)
        open_properties = [self.plain]  # the properties of the open pairs, the innermost last
        remaining_subflows = iterators(self.subflows)
        closing = f"</{self.name}r>"
        output = list[str]()
        for items, content in self.lines:
            target = next(remaining_targets) if content else None
            if content and target:
                items = list(self._without_added_spaces(content.around(target.marked)))
            for part in joined(items):
                if isinstance(part, str):
                    properties = (
                        self.dialect.with_language(self.name, open_properties[-1]) if target else open_properties[-1]
                    )
                    output.append(f"<{self.name}r>{properties}{self._text(part)}{closing}")
                elif part.pair is not None and part.raw == closing:
                    open_properties.pop()
                elif part.side is Side.opens and part.raw in self.groups:
                    open_properties.append(self.groups[part.raw])
                elif part.raw in remaining_subflows and (element := next(remaining_subflows[part.raw], None)):
                    raw = self.file.raw(element.start, element.end)
                    output.append(part.raw.replace(raw, render(element.start, element.end)))
                else:
                    output.append(part.raw)
        return "".join(output)

    def _without_added_spaces(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items; the space that the model reads for a line break is left out, unless the source has one there."""
        text: str | None = None
        for item in joined(items):
            if text:
                is_tight = isinstance(item, Mark) and item.raw in self.tight_breaks
                yield text.rstrip(" ") if is_tight else text
            text = item if isinstance(item, str) else None
            if text is None:
                yield item
        if text:
            yield text

    def _text(self, text: str) -> str:
        return self._element(self.dialect.write(text), has_space=text != text.strip())

    def _element(self, written: str, has_space: bool) -> str:
        space = f" {self.dialect.space}" if self.dialect.space and has_space else ""
        return f"<{self.name}t{space}>{written}</{self.name}t>"


def _tight_breaks(runs: Iterable[_Run]) -> set[str]:
    """Return the marks of line breaks that have no space before them."""
    tight, spaced, before, is_break = set[str](), set[str](), "", False
    for _, item in runs:
        if isinstance(item, Mark):
            if is_break:
                (spaced if before.endswith(" ") else tight).add(item.raw)
            is_break = False
        elif item == WORD_BREAK:
            is_break = True
        else:
            before = item or before
    return tight - spaced


def add_paragraph(
    document: SlottedXml,
    dialect: Dialect,
    parts: Sequence[Element | Piece],
    place: str,
    initial: Element | None = None,
) -> range:
    """Add the lines of a paragraph as segments, and a slot for them; return the numbers of the segments.

    Args:
        document: the document to add them to.
        dialect: the syntax of its format.
        parts: the parts of the paragraph, without its properties.
        place: the position in the document.
        initial: an earlier element with the first letters of the text, which is displayed larger, if there is one.
    """
    paragraph = Paragraph(document.file, dialect, parts)
    first = len(document.segments)
    for _, content in paragraph.lines:
        if content:
            is_first = initial is not None and len(document.segments) == first
            source = _with_initial(content.source, initial.text) if initial and is_first else content.source
            document.segments.add(Segment(source, place))
    numbers = range(first, len(document.segments))

    def write(targets: Targets, render: Render) -> str:
        remaining = dict(targets)
        if initial and first in remaining:
            _, rest = _split_initial(remaining[first].marked)
            remaining[first] = replace(remaining[first], marked=rest)
        return paragraph.written(map(remaining.get, numbers), render)

    def write_initial(targets: Targets, render: Render) -> str:
        return dialect.write(_split_initial(targets[first].marked)[0])

    document.add_slot(parts[0].start, parts[-1].end, numbers, write)
    if initial and numbers:
        document.add_slot(initial.inner, initial.inner_end, numbers[:1], write_initial)
    return numbers


def _with_initial(source: TaggedText, initial: str) -> TaggedText:
    """Return a text with its first letters, which are in another paragraph."""
    marks = tuple(replace(mark, offset=mark.offset + len(initial)) for mark in source.marks)
    return replace(source, text=initial + source.text, marks=marks)


def _split_initial(target: TaggedText) -> tuple[str, TaggedText]:
    """Return the first letter of a translation, with the signs before it, and the rest."""
    initial = _INITIAL.match(target.text)
    end = initial.end() if initial else 0
    return target.text[:end], target.spliced([Edit(0, end, "")])
