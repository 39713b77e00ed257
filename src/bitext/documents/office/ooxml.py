"""Office Open XML, the format of Word, PowerPoint and Excel: parts of a package, runs, drawings, direction of writing.

Text with the most frequent properties of a paragraph is plain; runs with other properties are between pairs of marks.
Drawings have paragraphs (`a:p`) and descriptions of pictures; they are slides, charts and diagrams. The direction
changes where the target language has another one than the source.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Literal, TypeAlias
from urllib.parse import unquote

from bitext.documents.document import Segment, Target
from bitext.documents.strings.messages import is_language
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.documents.xml.xml_file import (
    WORD_BREAK,
    Content,
    Item,
    Render,
    Role,
    SlottedXml,
    Targets,
    XmlFile,
    ends_line,
    escaped,
    is_tab,
    iterators,
    joined,
    line_so_far,
    opened,
    paired,
    prefix,
    separated,
    unplaced,
    with_attributes,
)
from bitext.documents.zip_container import ZipContainer
from bitext.languages import Languages, code_with_region, new_direction
from bitext.protected_spans import Edit
from bitext.readers.xml_elements import Element, Piece

_SPACES = {
    "w": ("wordprocessingml", "main"),
    "a": ("drawingml", "main"),
    "p": ("presentationml", "main"),
    "s": ("spreadsheetml", "main"),
    "r": ("officeDocument", "relationships"),
    "wp": ("drawingml", "wordprocessingDrawing"),
    "xdr": ("drawingml", "spreadsheetDrawing"),
}
NAMESPACES: dict[str, str] = {}
"""The prefixes by their namespaces, which have other names in the strict variant of the standard."""
for _prefix, (_language, _part) in _SPACES.items():
    NAMESPACES[f"http://schemas.openxmlformats.org/{_language}/2006/{_part}"] = _prefix
    NAMESPACES[f"http://purl.oclc.org/ooxml/{_language}/{_part}"] = _prefix
_TYPES = "[Content_Types].xml"
_TYPE = {"http://schemas.openxmlformats.org/package/2006/content-types": ""}
CHARTS = {"drawingml.chart+xml": "chart", "drawingml.diagramData+xml": "diagram", "diagramDrawing+xml": "diagram"}
"""The ends of the types of drawing parts, and the usual name of each."""


def parts(archive: ZipContainer, kinds: dict[str, str], main: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the kind of members of some types, in the order of kinds and of the numbers in their names.

    `kinds`: by the end of their type; `main`: the end of the type that one member must have.

    Raises:
        UserError: the package is another kind of document, or has macros.
    """
    types = _types(archive)
    for end, label in kinds.items():
        members = [name for name, kind in types.items() if kind.endswith(end.lower())]
        if end == main:
            members = _main_members(archive, members)
        for name in sorted(members, key=sort_key):
            yield name, label


def _types(archive: ZipContainer) -> dict[str, str]:
    """Return the type of each member in lower case; a member without its own has that of its extension.

    Raises:
        UserError: the package has macros.
    """
    has_macros = any("vbaproject" in name.lower() for name in archive.names)
    defaults: dict[str, str] = {}
    own: dict[str, str] = {}
    for element in _units(archive, _TYPES, "Types", ("Default", "Override"), _TYPE):
        kind = element.attributes.get("ContentType", "").lower()
        has_macros = has_macros or "macroenabled" in kind or "vbaproject" in kind
        if element.name == "Default":
            defaults[element.attributes.get("Extension", "").lower()] = kind
        elif member := archive.find(element.attributes.get("PartName", "")):
            own[member] = kind
    if has_macros:
        raise archive.error("has macros, which is refused")
    types: dict[str, str] = {}
    for name in archive.names:
        extension = posixpath.splitext(name)[1][1:].lower()
        types[name] = own.get(name) or defaults.get(extension, "")
    return types


def _main_members(archive: ZipContainer, members: list[str]) -> list[str]:
    """Return the main part; with a type by extension, further members may have its type too.

    Raises:
        UserError: there is none.
    """
    if not members:
        raise archive.error("is another kind of document than its name says")
    if len(members) > 1:
        roots = set(related(archive, "").values())
        members = [name for name in members if name in roots] or members
    return members[:1]


def related(archive: ZipContainer, member: str) -> dict[str, str]:
    """Return the members to which a member refers, "" for the package itself, by the identifier of the reference."""
    folder, name = posixpath.split(member)
    members: dict[str, str] = {}
    spaces = {"http://schemas.openxmlformats.org/package/2006/relationships": ""}
    for element in _units(archive, f"{folder}/_rels/{name}.rels", "Relationships", ("Relationship",), spaces):
        target = element.attributes.get("Target", "").replace("\\", "/")
        path = posixpath.normpath(posixpath.join("/", folder, target))
        found = archive.find(path) or archive.find(unquote(path))
        if found and element.attributes.get("TargetMode") != "External":
            members[element.attributes.get("Id", "")] = found
    return members


def _units(
    archive: ZipContainer, member: str, root: str, names: Collection[str], spaces: dict[str, str]
) -> Iterator[Element]:
    """Yield elements of a member; none if it is missing, except for the member with the types."""
    found = archive.find(member) or member
    if found in archive.names or member == _TYPES:
        yield from archive.xml(found).file.units({root}, names, spaces)


def sort_key(name: str) -> list[str | int]:
    """Return a sort key with which `slide10` comes after `slide9`."""
    parts: list[str | int] = [*re.split(r"([0-9]{1,9})", name)]
    parts[1::2] = map(int, parts[1::2])
    return parts


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
        """Parse the runs in the parts of a paragraph, without its properties."""
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


Direction: TypeAlias = Literal["ltr", "rtl"] | None
"""The new direction; None if nothing changes."""
_AFTER_BIDI = frozenset(
    f"w:{name}"
    for name in (
        *("adjustRightInd", "snapToGrid", "spacing", "ind", "contextualSpacing", "mirrorIndents", "suppressOverlap"),
        *("jc", "textDirection", "textAlignment", "textboxTightWrap", "outlineLvl", "divId", "cnfStyle", "rPr"),
        *("sectPr", "pPrChange"),
    )
)
"""The properties of a paragraph that the schema requires after its direction."""
_BEFORE_VISUAL = frozenset(["w:tblStyle", "w:tblpPr", "w:tblOverlap"])
"""The properties of a table that the schema requires before its direction."""
_AFTER_SECTION_BIDI = frozenset(["w:rtlGutter", "w:docGrid", "w:printerSettings", "w:sectPrChange"])
_COMPLEX = re.compile(r"<([^<>\s:]+:)(b|i|sz)\b(?![^<>]*>\s*<\1\2Cs\b)([^<>]*)/>")
"""A property of a run whose variant for scripts from right to left does not follow."""
_AFTER_RTL = re.compile(r"<[^<>\s:]+:(?:cs|em|lang|eastAsianLayout|specVanish|oMath|rPrChange)\b")
"""The properties of a run that the schema requires after its direction."""
_LEVELS = frozenset([*(f"a:lvl{level}pPr" for level in range(1, 10)), "a:defPPr"])
_MIRRORED = {"l": "r", "r": "l"}


def turn_paragraph(document: SlottedXml, paragraph: Element, numbers: range, direction: Direction) -> None:
    """Change the direction of a paragraph of Word, if one of its segments has a translation."""
    if not direction or not numbers:
        return
    properties = paragraph.child("w:pPr")
    if properties is None:
        if direction == "rtl":
            name = prefix(document.file.raw(paragraph.start, paragraph.inner))
            content = f"<{name}pPr><{name}bidi/></{name}pPr>"
            document.add_slot(paragraph.inner, paragraph.inner, numbers, content)
        return
    _set_child(document, properties, "bidi", numbers, direction, after=_AFTER_BIDI)


def turn_layout(document: SlottedXml, direction: Direction) -> None:
    """Change the direction of the tables and sections of a part of Word."""
    for element in document.file.units((), {"w:tblPr", "w:sectPr"}, NAMESPACES) if direction else ():
        if element.name == "w:sectPr":
            _set_child(document, element, "bidi", None, direction, after=_AFTER_SECTION_BIDI)
        else:
            after = {child.name for child in element.children} - _BEFORE_VISUAL
            _set_child(document, element, "bidiVisual", None, direction, after=after)


def _set_child(
    document: SlottedXml,
    properties: Element,
    name: str,
    numbers: range | None,
    direction: Direction,
    *,
    after: Collection[str],
) -> None:
    """Set or remove a property of Word that is an empty element; `after`: the properties that belong after it."""
    raw = document.file.raw
    tag = raw(properties.start, properties.inner)
    new = f"<{prefix(tag)}{name}/>" * (direction == "rtl")
    current = properties.child(f"w:{name}")
    if current:
        document.add_slot(current.start, current.end, numbers, new)
    elif new and tag.endswith("/>"):
        whole = re.match(r"<([^\s/>]+)", tag)
        assert whole
        document.add_slot(properties.start, properties.inner, numbers, f"{opened(tag)}{new}</{whole[1]}>")
    elif new:
        later = [child.start for child in properties.children if child.name in after]
        offset = min(later, default=properties.inner_end)
        document.add_slot(offset, offset, numbers, new)


def turned_run(name: str, properties: str, direction: Direction) -> str:
    """Return the properties of a run of Word with a direction; `name` is the prefix of their elements."""
    if direction != "rtl" or not name:
        return properties
    if not properties:
        return f"<{name}rPr><{name}rtl/></{name}rPr>"
    # Bold, italic and the size have variants for text from right to left, and only these apply to it.
    properties = _COMPLEX.sub(r"\g<0><\1\2Cs\3/>", properties)
    later = _AFTER_RTL.search(properties)
    offset = later.start() if later else properties.rindex("</")
    return f"{properties[:offset]}<{name}rtl/>{properties[offset:]}"


def turn_drawing(document: SlottedXml, paragraph: Element, numbers: range, direction: Direction) -> None:
    """Change the direction of a paragraph of a drawing, if one of its segments has a translation."""
    if not direction or not numbers:
        return
    properties = paragraph.child("a:pPr")
    if properties:
        _turn_tag(document, properties, numbers, direction)
    elif direction == "rtl":
        name = prefix(document.file.raw(paragraph.start, paragraph.inner))
        document.add_slot(paragraph.inner, paragraph.inner, numbers, f'<{name}pPr rtl="1"/>')


def turn_styles(document: SlottedXml, direction: Direction) -> None:
    """Change the direction of the levels of lists and of tables in a part of PowerPoint."""
    for element in document.file.units((), {*_LEVELS, "a:tblPr"}, NAMESPACES) if direction else ():
        _turn_tag(document, element, None, direction)


def _turn_tag(document: SlottedXml, properties: Element, numbers: range | None, direction: Direction) -> None:
    """Change the direction of a paragraph, a level or a table; alignment names the sides of the page."""
    goes_left = properties.attributes.get("rtl") in ("1", "true")
    if goes_left == (direction == "rtl"):
        return
    attributes: dict[str, str | None] = {"rtl": "1" if direction == "rtl" else "0"}
    alignment = properties.attributes.get("algn", "")
    if alignment in _MIRRORED:
        attributes["algn"] = _MIRRORED[alignment]
    document.set_attributes(properties, attributes, numbers)


_SOURCE_ATTRIBUTES = dict.fromkeys(("lang", "altLang", "dirty", "err", "smtClean", "smtId"))
"""The attributes of a run that depend on its words: their language, and results of the spelling checker."""
_DESCRIPTIONS = dict.fromkeys(("title", "descr"))
"""The attributes that describe a picture, which screen readers read aloud."""
_TAG = re.compile(r"""<(?:"[^"]*"|'[^']*'|[^'">])*>""")


def read_drawing(
    archive: ZipContainer, member: str, languages: Languages, *, is_master: bool = False, picture_tag: str = "p:cNvPr"
) -> SlottedXml:
    """Parse the paragraphs of a member.

    `is_master`: whether slides show the member, a master or a layout, except for its placeholders. `picture_tag`: the
    name of elements with descriptions of pictures.

    Raises:
        UserError: the member is invalid or harmful.
    """
    document = archive.xml(member)
    code, direction = code_with_region(languages[1] or ""), new_direction(languages)
    dialect = Dialect("a", {"a:br": "break"}, _key, space="", with_language=partial(_with_language, code))
    invisible = _placeholders(document.file) if is_master else []
    starts = [shape.start for shape in invisible]
    for number, paragraph in enumerate(document.file.units((), {"a:p"}, NAMESPACES), 1):
        runs = paragraph.children_except("a:pPr", "a:endParaRPr")
        shape = bisect_left(starts, paragraph.start) - 1  # the last one that begins before the paragraph
        is_invisible = shape >= 0 and paragraph.start < invisible[shape].end
        if runs and not is_invisible:
            numbers = add_paragraph(document, dialect, runs, f"paragraph {number}")
            turn_drawing(document, paragraph, numbers, direction)
    turn_styles(document, direction)
    if not is_master:
        add_descriptions(document, picture_tag)
    return document


def _placeholders(file: XmlFile) -> list[Element]:
    """Return the shapes that each slide replaces with its own, in order; none is within another one."""
    shapes = file.units((), {"p:sp", "p:pic", "p:graphicFrame"}, NAMESPACES)
    return [shape for shape in shapes if any(shape.within("p:ph"))]


def _key(file: XmlFile, properties: Element) -> str:
    tag = with_attributes(file.raw(properties.start, properties.inner), _SOURCE_ATTRIBUTES)
    if not properties.parts and "=" not in tag:
        return ""
    return tag + file.raw(properties.inner, properties.end)


def _with_language(code: str | None, name: str, properties: str) -> str:
    """Return properties with the target language, for PowerPoint's spelling checker."""
    tag = _TAG.match(properties or f"<{name}rPr/>")
    if code is None or tag is None:
        return properties
    return with_attributes(tag[0], {"lang": code}) + properties[tag.end() :]


def add_descriptions(document: SlottedXml, name: str) -> None:
    """Add the descriptions in the attributes of elements of a name as segments."""
    pictures = 0
    for element in document.file.units((), {name}, NAMESPACES):
        pictures += add_attribute_texts(document, element, _DESCRIPTIONS, f"picture {pictures + 1}")


def add_attribute_texts(document: SlottedXml, element: Element, longest: Mapping[str, int | None], place: str) -> bool:
    """Add the texts in attributes of an element as segments, and return whether there are any.

    `longest`: by attribute, the number of characters at which a translation is cut off; None for no limit.
    """
    first, numbers = len(document.segments), dict[str, int]()
    for attribute, limit in longest.items():
        text = element.attributes.get(attribute, "")
        if is_language(text):
            numbers[attribute] = document.segments.add(Segment(TaggedText(text), place, longest=limit))
    tag = document.file.raw(element.start, element.inner)

    def write(targets: Targets, render: Render) -> str:
        attributes: dict[str, str | None] = {}
        for attribute, number in numbers.items():
            if number in targets:
                attributes[attribute] = targets[number].marked.full_text[: longest[attribute]]
        return with_attributes(tag, attributes)

    if numbers:
        document.add_slot(element.start, element.inner, range(first, len(document.segments)), write)
    return bool(numbers)
