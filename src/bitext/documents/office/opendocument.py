"""OpenDocument texts and spreadsheets: paragraphs of the body, of cells, notes, frames, headers, footers and charts.

A sheet with strings for translators is read as a table of columns, and so is such a table in a text: `strings.table`
chooses the columns. Formulas, numbers, dates and names stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Literal

from bitext.documents.document import LONGEST_PLACE, Segment, Target, shortened
from bitext.documents.office.cell_references import letters, plain_value, translated_formula, translated_values
from bitext.documents.office.docx import COMPLEX_SCRIPTS, EAST_ASIAN_SCRIPTS
from bitext.documents.office.ooxml import sort_key
from bitext.documents.office.string_tables import (
    Cell,
    CellSyntax,
    Choose,
    StringTables,
    column_count,
    is_number,
)
from bitext.documents.strings.messages import is_language
from bitext.documents.strings.table import columns_of_strings, columns_of_translations
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_file import (
    Inline,
    Role,
    SlottedXml,
    XmlFile,
    add_text,
    ends_line,
    escaped,
    folded,
    is_tab,
    line_so_far,
    prefix,
)
from bitext.documents.zip_container import Bundle, ZipContainer, revision_remarks
from bitext.languages import (
    Languages,
    code_with_region,
    new_direction,
    same_language,
    script_of,
    short_code,
)
from bitext.protected_spans import PlaceholderSyntax
from bitext.readers.xml_elements import Element, Piece

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_SPACES = {
    **{_OASIS.format(name): name for name in ("office", "style", "table", "text")},
    "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0": "calcext",
    "http://openoffice.org/2009/office": "officeooo",
    _OASIS.format("xsl-fo-compatible"): "fo",
}
_STYLES = frozenset(
    f"style:{name}-properties" for name in ("text", "paragraph", "page-layout", "table", "section", "graphic")
)
_TEXT, _SPREADSHEET = "application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.spreadsheet"
_TYPES = {".odt": _TEXT, ".ods": _SPREADSHEET}
_CELLS = ("table:table-cell", "table:covered-table-cell")
_REPEATED = "table:number-columns-repeated"
_DROPPED = re.compile(
    r"<text:(?:bookmark|reference-mark)(?:-start|-end)?\b[^<>]*/>|<office:annotation-end\b[^<>]*/>"
    r'|(?<=[\w"])\s+(?:xml:id|text:id|office:name)="[^"<>]*"'
)
"""Identifiers, and marks with names, which a copy of a text cannot have, too."""
_OF_TEXT_CELL = {
    "office:value-type": "string",
    **dict.fromkeys(["calcext:value-type", "office:value", "office:date-value", "office:time-value"]),
    **dict.fromkeys(["office:boolean-value", "office:string-value", "office:currency"]),
}
"""The attributes of a cell that gets a text."""
_CONTENT = "content.xml"
_CHART = re.compile(rb'<[^<>]*"application/vnd\.oasis\.opendocument\.chart"[^<>]*>')
"""The entry of a chart in the manifest, which may have a document type that our parser refuses."""
_FOLDER = re.compile(rb'full-path="([^"<>]+/)"')
_OWN_TABLE = b'"local-table.'
"""How a chart refers to its own table, which otherwise is a copy of cells of a sheet."""
_VALIDATION = "table:content-validation"
_CHOICES, _CHOICE = "cell-content-is-in-list(", re.compile(r'"((?:[^"]|"")*)"')
_PARAGRAPHS = ("text:p", "text:h")
_CONTENTS = (*_PARAGRAPHS, "text:list")
_LINE_BREAKS = {"text:tab", "text:line-break"}
_ROLES: dict[str, Role] = {
    **dict.fromkeys(["text:span", "text:a", "text:meta", "text:ruby"], "pair"),
    **dict.fromkeys([*_LINE_BREAKS, "text:s"], "break"),
    "text:soft-page-break": "gone",
}
_HIDDEN = {"text:tracked-changes", "table:tracked-changes", "table:dde-link"}
_REFERRING = {
    **dict.fromkeys(_CELLS, "table:formula"),
    _VALIDATION: "table:condition",
    "calcext:condition": "calcext:value",
    "style:map": "style:condition",
    **dict.fromkeys(["table:filter-condition", "table:filter-set-item"], "table:value"),
}
"""The attributes that may name values of cells, by their elements."""


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a text document or a spreadsheet.

    Raises:
        UserError: the file is of another kind than its name says, is invalid, encrypted or harmful, or has macros.
    """
    archive = ZipContainer(name, content)
    kind = _TYPES[PurePath(name).suffix.lower()]
    if "mimetype" not in archive.names or not archive.read("mimetype").startswith(kind.encode()):
        raise archive.error("is another kind of document than its name says")
    if any(member.startswith(("Basic/", "Scripts/")) for member in archive.names):
        raise archive.error("has macros, which is refused")
    manifest = archive.read("META-INF/manifest.xml")
    if b"encryption-data" in manifest:
        raise archive.error("is encrypted")
    bundle = _Spreadsheet(archive) if kind == _SPREADSHEET else Bundle(archive)
    revisions = Counter[str]()
    for member, label in ((_CONTENT, ""), ("styles.xml", "headers and footers")):
        if member in archive.names:
            part = archive.xml(member)
            choices = list[Segment]()
            if isinstance(bundle, _Spreadsheet):
                cells, choices = _add_sheets(part, languages)
                bundle.cells += cells
            else:
                _add_text(part, languages, revisions)
            _adapt_styles(part, languages)
            bundle.add(member, part, label)
            if isinstance(bundle, _Spreadsheet):
                bundle.cells += map(bundle.segments.add, choices)
    for member in _charts(archive, manifest):
        part = archive.xml(member)
        _add_chart(part, languages)
        _adapt_styles(part, languages)
        bundle.add(member, part, "chart")
    bundle.segments.remarks += revision_remarks(revisions)
    return bundle


class _Spreadsheet(Bundle):
    """A spreadsheet, in which the translations of cells are used wherever a rule, a filter or a formula names them."""

    def __init__(self, archive: ZipContainer) -> None:
        super().__init__(archive)
        self.cells: list[int] = []  # the segments that are the whole text of a cell, or a choice of a rule

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        content = super().filled(targets)
        values = translated_values(self.segments, self.cells, targets)
        if not values:
            return content
        archive = ZipContainer(self.archive.name, content)
        document = archive.xml(_CONTENT)
        for element in document.file.units((), _REFERRING, _SPACES):
            attribute = _REFERRING[element.name]
            value = element.attributes.get(attribute, "")
            new = values.get(plain_value(value), value)
            if attribute != "table:value":
                new = translated_formula(value, values)
            if new != value:
                document.set_attributes(element, {attribute: new})
            element.release()
        return archive.filled({_CONTENT: document.filled({}, is_translated=True)})


def _add_text(document: SlottedXml, languages: Languages, revisions: Counter[str]) -> None:
    """Add the paragraphs of a text; its tracked changes are counted in `revisions`."""
    tables = StringTables(document, _cell_syntax(columns_of_translations), _cells(document.file, {}), languages)
    invisible = set[str]()
    number = 0
    for unit in document.file.units((), {"style:style", "text:changed-region", *_PARAGRAPHS}, _SPACES):
        if unit.name == "style:style":
            if _is_invisible(unit):
                invisible.add(unit.attributes.get("style:name", ""))
        elif unit.name == "text:changed-region":
            revisions.update(change.name.removeprefix("text:") for change in unit.children)
        elif not _is_hidden(unit):
            number += 1
            for part in tables.documents(unit.outermost("table:table-cell")):
                _add_paragraph(part, invisible, unit, f"paragraph {number}")
    tables.finish()


def _charts(archive: ZipContainer, manifest: bytes) -> Iterator[str]:
    """Yield the members that are charts, in the order of the numbers in their names."""
    folders = dict[str, None]()
    for entry in _CHART.finditer(manifest):
        if name := _FOLDER.search(entry[0]):
            folders[name[1].decode(errors="replace")] = None
    for folder in sorted(folders, key=sort_key):
        if member := archive.find(folder + _CONTENT):
            yield member


def _add_chart(document: SlottedXml, languages: Languages) -> None:
    """Add the titles and labels of a chart, and the texts of its own table, such as the names in its legend."""
    has_own_table = _OWN_TABLE in document.file.content
    tables = StringTables(document, _cell_syntax(columns_of_strings), (), languages)
    for unit in document.file.units((), {"style:style", *_CELLS, *_PARAGRAPHS}, _SPACES):
        place = f"text {len(document.segments) + 1}"
        if unit.name in _CELLS and has_own_table:
            list(_add_cell(document, tables, set(), unit, place))
        elif unit.name in _PARAGRAPHS:
            _add_paragraph(document, set(), unit, place, PlaceholderSyntax.message)


def _add_sheets(document: SlottedXml, languages: Languages) -> tuple[list[int], list[Segment]]:
    """Add the texts of a spreadsheet.

    Returns:
        The numbers of the segments that are the whole text of a cell; and choices of rules for the input that no cell
        has, as further segments.
    """
    names: dict[int, str] = {}
    cells = _cells(document.file, names)
    tables = StringTables(document, _cell_syntax(columns_of_strings), cells, languages, names)
    invisible, whole_cells = set[str](), list[int]()
    choices = dict[str, Segment]()  # by their plain values
    position = _Position()
    number = 0
    for unit in document.file.units((), {"style:style", _VALIDATION, *_CELLS, *_PARAGRAPHS}, _SPACES):
        if unit.name == "style:style":
            if _is_invisible(unit):
                invisible.add(unit.attributes.get("style:name", ""))
        elif unit.name == _VALIDATION:
            for choice in _choices(unit.attributes.get(_REFERRING[_VALIDATION], "")):
                choices.setdefault(plain_value(choice), Segment(TaggedText(choice), "list of choices"))
            for paragraph in unit.within(*_PARAGRAPHS):
                number += 1
                _add_paragraph(document, invisible, paragraph, f"paragraph {number}", PlaceholderSyntax.message)
        elif unit.name in _CELLS:
            if choices:
                choices.pop(plain_value(_text_of(unit)), None)
            place = position.after(unit)
            if not _is_hidden(unit):
                whole_cells += _add_cell(document, tables, invisible, unit, place)
            unit.release()
        elif not _is_hidden(unit):
            number += 1
            sheet = unit.outermost("table:table")
            place = f"{_sheet_name(sheet)}, drawing" if sheet else f"paragraph {number}"
            _add_paragraph(document, invisible, unit, place, PlaceholderSyntax.message)
    tables.finish()
    return whole_cells, list(choices.values())


def _choices(condition: str) -> Iterator[str]:
    """Yield the choices that the condition of a rule lists itself."""
    _, is_list, arguments = condition.partition(_CHOICES)
    for choice in _CHOICE.finditer(arguments) if is_list else ():
        text: str = choice[1].replace('""', '"')
        if is_language(text):
            yield text


class _Position:
    """The position of the current cell in a spreadsheet."""

    def __init__(self) -> None:
        self.table: Element | None = None
        self.row: Element | None = None
        self.row_number, self.column, self.name = 1, 1, ""

    def after(self, cell: Element) -> str:
        row, table = cell.parent, cell.outermost("table:table")
        if table is not self.table:
            self.table, self.row, self.row_number = table, row, 1
            self.name, self.column = _sheet_name(table) if table else "", 1
        elif row is not self.row:
            repeated = self.row.attributes.get("table:number-rows-repeated", "") if self.row else ""
            self.row_number += int(repeated) if is_number(repeated) else 1
            self.row, self.column = row, 1
        place = f"{self.name}!{letters(self.column)}{self.row_number}"
        self.column += column_count(cell.attributes.get(_REPEATED, ""))
        return place


def _sheet_name(table: Element) -> str:
    return shortened(table.attributes.get("table:name", ""), LONGEST_PLACE)


def _add_cell(
    document: SlottedXml, tables: StringTables, invisible: set[str], cell: Element, place: str
) -> Iterator[int]:
    """Add the texts of a cell, its notes and its drawings; yield the number of the segment that is its whole text."""
    paragraphs = [part for part in cell.children if part.name in _PARAGRAPHS]
    if not _is_computed(cell) and is_language(_text_of(cell)):
        for part in tables.documents(cell):
            first = len(part.segments)
            for paragraph in paragraphs:
                _add_paragraph(part, invisible, paragraph, place, PlaceholderSyntax.message)
            numbers = range(first, len(part.segments))
            if part is document and numbers:
                # The attribute would count instead of the paragraphs.
                if "office:string-value" in cell.attributes:
                    document.set_attributes(cell, {"office:string-value": None}, numbers)
                if len(paragraphs) == len(numbers) == 1:
                    yield first
    for paragraph in cell.within(*_PARAGRAPHS):
        if paragraph.parent is not cell:
            kind = "note" if paragraph.outermost("office:annotation") else "drawing"
            _add_paragraph(document, invisible, paragraph, f"{place}, {kind}", PlaceholderSyntax.message)


def _is_computed(cell: Element) -> bool:
    """Whether a cell has a formula, a number, a date or the like."""
    kind = cell.attributes.get("office:value-type", "string")
    return "table:formula" in cell.attributes or kind != "string"


def _text_of(cell: Element) -> str:
    """Return the lines of a cell."""
    return "\n".join(part.words(_is_note) for part in cell.children if part.name in _CONTENTS)


def _is_note(element: Element) -> bool:
    return element.name in ("office:annotation", "text:note")


def _cell_syntax(choose: Choose) -> CellSyntax:
    return CellSyntax(choose, _DROPPED, _REPEATED, _OF_TEXT_CELL)


def _cells(file: XmlFile, names: dict[int, str]) -> Iterator[Cell]:
    """Yield the cells of tables, but not those of tables in cells; the names of tables are added to `names`."""
    prefixes = [f'xmlns:{name}="'.encode() for name in ("office", "table", "text")]
    if not all(prefix in file.content for prefix in prefixes):
        return
    for unit in file.units((), _CELLS, _SPACES):
        row, table = unit.parent, unit.outermost("table:table")
        if row and table and not _is_hidden(unit):
            names[table.start] = _sheet_name(table)
            contents = tuple((part.start, part.end) for part in unit.children if part.name in _CONTENTS)
            columns = column_count(unit.attributes.get(_REPEATED, ""))
            is_free = unit.name == _CELLS[0] and "table:formula" not in unit.attributes
            offsets = unit.start, unit.inner, unit.inner_end, unit.end
            yield Cell(table.start, row.start, *offsets, columns, _text_of(unit), contents, is_free)
        unit.release()


def _adapt_styles(document: SlottedXml, languages: Languages) -> None:
    """Give styles the target language instead of the source language, and the new direction."""
    code, direction = code_with_region(languages[1] or ""), new_direction(languages)
    declares_prefixes = all(f'xmlns:{name}="'.encode() in document.file.content for name in ("fo", "style"))
    if code is None or not declares_prefixes:
        return
    for properties in document.file.units((), _STYLES, _SPACES):
        style = properties.parent
        is_default = style is not None and style.name == "style:default-style"
        tag = document.file.raw(properties.start, properties.inner)
        attributes = _language(properties, code, languages, is_default=is_default)
        if direction and properties.name != "style:text-properties":
            is_base = is_default or properties.name == "style:page-layout-properties"
            attributes |= _direction(properties, direction, is_base=is_base)
        if tag.startswith("<style:") and attributes:
            document.set_attributes(properties, attributes)


def _language(properties: Element, code: str, languages: Languages, *, is_default: bool) -> dict[str, str | None]:
    """Return the attributes of a style's target language; none if the style is in another language."""
    current = properties.attributes.get("fo:language", "")
    is_source = bool(languages[0]) and same_language(current, short_code(languages[0] or ""))
    if properties.name != "style:text-properties" or not current or not (is_source or is_default):
        return {}
    language, _, country = code.partition("-")
    prefix, suffix = "fo", ""
    script = script_of(languages[1] or "")
    if script in EAST_ASIAN_SCRIPTS or script in COMPLEX_SCRIPTS:
        prefix, suffix = "style", "-asian" if script in EAST_ASIAN_SCRIPTS else "-complex"
    return {f"{prefix}:language{suffix}": language, f"{prefix}:country{suffix}": country or "none"}


def _direction(properties: Element, direction: Literal["ltr", "rtl"], *, is_base: bool) -> dict[str, str | None]:
    """Return the attributes of a style's direction; `is_base`: whether others inherit it, so that it must be stated."""
    attributes: dict[str, str | None] = {}
    new, old = ("rl", "lr") if direction == "rtl" else ("lr", "rl")
    mode = properties.attributes.get("style:writing-mode", "")
    if mode.startswith(old) or (direction == "rtl" and is_base and not mode):
        attributes["style:writing-mode"] = f"{new}-tb"
    alignment = properties.attributes.get("fo:text-align", "")
    if alignment in ("left", "right"):  # These name sides of the page; the others follow the direction.
        attributes["fo:text-align"] = "start" if (alignment == "left") == (direction == "rtl") else "end"
    return attributes


def _add_paragraph(
    document: SlottedXml,
    invisible: set[str],
    paragraph: Element,
    place: str,
    syntax: PlaceholderSyntax = PlaceholderSyntax.prose,
) -> None:
    """Add a paragraph, and the paragraphs in its notes and frames."""
    inline = Inline(
        document.file,
        partial(_role, invisible),
        edges=True,
        subflow_names=_PARAGRAPHS,
        texts=folded,
        write=partial(_written, prefix(document.file.raw(paragraph.start, paragraph.inner))),
        syntax=syntax,
    )
    for ruby in paragraph.within("text:ruby"):
        _keep_reading(ruby)
    for line in _lines(document.file, paragraph):
        add_text(document, inline, line, place)
    for inner in paragraph.within(*_PARAGRAPHS):
        _add_paragraph(document, invisible, inner, f"{place}, note or frame", syntax)


def _lines(file: XmlFile, paragraph: Element) -> Iterator[list[Element | Piece]]:
    """Split a paragraph at line breaks that are not within a sentence."""
    line, before = list[Element | Piece](), ""
    for part in paragraph.parts:
        raw = file.raw(part.start, part.end)
        if isinstance(part, Element) and part.name in _LINE_BREAKS and line and ends_line(before, raw):
            yield line
            line, before = [], "\t" * is_tab(raw)
        line.append(part)
        before = line_so_far(before, part.text)
    if line:
        yield line


def _role(invisible: set[str], element: Element) -> Role:
    if element.name == "text:span" and element.attributes.get("text:style-name") in invisible:
        return "none"
    return _ROLES.get(element.name, "alone")


def _keep_reading(ruby: Element) -> None:
    """Make the pronunciation of a word part of the tags around the word."""
    if base := ruby.child("text:ruby-base"):
        ruby.inner, ruby.inner_end, ruby.parts = base.inner, base.inner_end, base.parts


def _is_invisible(style: Element) -> bool:
    """Whether a text style only records in which session of LibreOffice the text was written."""
    if style.attributes.get("style:family") != "text" or "style:parent-style-name" in style.attributes:
        return False
    for child in style.children:
        for key in child.attributes:
            if not key.startswith("officeooo:"):
                return False
    return True


def _is_hidden(element: Element) -> bool:
    """Whether an element is in the record of changes, or in a copy of another document."""
    for ancestor in element.ancestors():
        # Copies of sheets of other files have their addresses as names.
        if ancestor.name in _HIDDEN or ancestor.attributes.get("table:name", "").startswith("'file:"):
            return True
    return False


def _written(prefix: str, text: str) -> str:
    """Encode a text, with elements for its tabs and line ends."""
    return escaped(text).replace("\t", f"<{prefix}tab/>").replace("\n", f"<{prefix}line-break/>")
