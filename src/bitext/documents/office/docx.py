"""Word: the text of a document, its fields, headers, footers, notes, comments, text boxes, charts and diagrams."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from bitext.documents.office.ooxml import (
    CHARTS,
    NAMESPACES,
    Dialect,
    Direction,
    add_descriptions,
    add_paragraph,
    parts,
    read_drawing,
    turn_layout,
    turn_paragraph,
    turned_run,
)
from bitext.documents.office.string_tables import Cell, CellSyntax, StringTables, column_count
from bitext.documents.strings.table import columns_of_translations
from bitext.documents.xml.xml_file import Role, SlottedXml, XmlFile
from bitext.documents.zip_container import Bundle, ZipContainer, revision_remarks
from bitext.languages import Languages, code_with_region, new_direction, script_of
from bitext.readers.xml_elements import Element, Piece

MAIN = "document.main+xml"
"""The end of the type of the part with the text."""
_KINDS = {
    MAIN: "",
    **{f"wordprocessingml.{kind}+xml": kind for kind in ("header", "footer", "footnotes", "endnotes", "comments")},
}
_TEXT, _FIXED = "translated", "fixed"
"""The names of merged elements: with text that is translated, or without."""
_TEXT_FIELDS = ("HYPERLINK",)
"""Fields whose result is text that a person wrote, not a number, a date or a copy."""
_WITH_PROPERTIES = {"w:smartTag": "w:smartTagPr", "w:customXml": "w:customXmlPr"}
_PICTURE = "wp:docPr"
_ROLES: dict[str, Role] = {
    **dict.fromkeys(["w:hyperlink", "w:ins", "w:moveTo", "w:dir", "w:bdo", _TEXT], "pair"),
    **dict.fromkeys(["w:tab", "w:ptab", "w:br", "w:cr"], "break"),
    # Results of the spelling checker and the layout, which do not apply to a translation.
    **dict.fromkeys(["w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"], "gone"),
}
_REVISIONS = {"w:ins": "insertion", "w:moveTo": "insertion", "w:del": "deletion", "w:moveFrom": "deletion"}
"""The tracked changes of text; without content, they only change the end of a paragraph."""
LONGEST_INITIAL = 3
"""The largest number of characters of an initial, with its quotation mark."""
_SOURCE_PROPERTIES = {"w:lang", "w:noProof"}
"""Properties of a run that depend on its words."""
_CELLS = CellSyntax(
    columns_of_translations,
    re.compile(
        r"<[\w.-]+:(?:bookmarkStart|bookmarkEnd|commentRangeStart|commentRangeEnd|commentReference|footnoteReference"
        r"|endnoteReference)\b[^<>]*/>"
        # Identifiers of paragraphs, and of versions of the text.
        r'|(?<=[\w"])\s+[\w.-]+:(?:paraId|textId)="[0-9A-F]{8}"'
    ),
)
_AFTER_LANGUAGE = re.compile(r"<[^<>\s:]+:(?:eastAsianLayout|specVanish|oMath|rPrChange)\b")
"""Properties that the schema requires after that of the language."""
EAST_ASIAN_SCRIPTS = {"Hans", "Hant", "Jpan", "Kore"}
COMPLEX_SCRIPTS = {
    *("Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Deva", "Beng", "Guru", "Gujr", "Orya", "Taml", "Telu", "Knda", "Mlym"),
    *("Sinh", "Thai", "Laoo", "Tibt", "Mymr", "Khmr"),
}
"""Scripts whose language Word reads from a separate attribute, `w:bidi`; it is `w:eastAsia` for the ones above."""


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a document.

    Raises:
        UserError: the file is not a Word document, is invalid or harmful, or has macros.
    """
    archive = ZipContainer(name, content)
    bundle = Bundle(archive)
    counts, revisions = Counter[str](), Counter[str]()
    for member, kind in parts(archive, {**_KINDS, **CHARTS}, MAIN):
        counts[kind] += 1
        label = kind
        if kind not in ("", "footnotes", "endnotes", "comments"):
            label = f"{kind} {counts[kind]}"
        if kind in CHARTS.values():
            bundle.add(member, read_drawing(archive, member, languages), label)
        else:
            bundle.add(member, _read_part(archive, member, languages, revisions), label)
    bundle.segments.remarks += revision_remarks(revisions)
    return bundle


def _read_part(archive: ZipContainer, member: str, languages: Languages, revisions: Counter[str]) -> SlottedXml:
    """Parse a part; its tracked changes are counted in `revisions`."""
    document = archive.xml(member)
    target, direction = languages[1] or "", new_direction(languages)
    code, script = code_with_region(target), script_of(target)
    dialect = Dialect(
        "w",
        _ROLES,
        partial(_key, _SOURCE_PROPERTIES | {"w:rtl"} if direction else _SOURCE_PROPERTIES),
        space='xml:space="preserve"',
        texts={"w:noBreakHyphen": "-"},
        grouped=_with_fields,
        subflow_names=("w:p", _PICTURE),
        with_language=partial(_with_language, code, script, direction),
    )
    tables = None
    if b":tc>" in document.file.content:
        tables = StringTables(document, _CELLS, _cells(document.file), languages)
    initial: Element | None = None
    for number, paragraph in enumerate(document.file.units((), {"w:p"}, NAMESPACES), 1):
        revisions.update(_REVISIONS[change.name] for change in paragraph.within(*_REVISIONS) if change.parts)
        if initial is None and (initial := _drop_cap(paragraph)):
            continue
        places = tables.documents(paragraph.outermost("w:tc")) if tables else [document]
        for part in places:
            _add_paragraphs(part, dialect, paragraph, f"paragraph {number}", direction, initial)
        initial = None
    if tables:
        tables.finish()
    turn_layout(document, direction)
    add_descriptions(document, _PICTURE)
    return document


def _add_paragraphs(
    document: SlottedXml,
    dialect: Dialect,
    paragraph: Element,
    place: str,
    direction: Direction,
    initial: Element | None = None,
) -> None:
    """Add a paragraph, and the paragraphs of text boxes in it."""
    runs = paragraph.children_except("w:pPr")
    if runs:
        numbers = add_paragraph(document, dialect, runs, place, initial)
        turn_paragraph(document, paragraph, numbers, direction)
    for inner in paragraph.within("w:p"):
        _add_paragraphs(document, dialect, inner, f"{place}, text box", direction)


def _cells(file: XmlFile) -> Iterator[Cell]:
    """Yield the cells of tables, but not those of tables in cells.

    A cell is not read as a whole: a table may only arrange a page, and contain all of its text.
    """
    cell: Element | None = None
    texts, columns, start = list[str](), 1, 0
    for unit in file.units((), {"w:tcPr", "w:p"}, NAMESPACES):
        unit_cell = unit.outermost("w:tc")
        if unit_cell is not cell:
            if cell:
                yield _cell(cell, "\n".join(texts), columns, start)
            cell, texts, columns = unit_cell, [], 1
            start = cell.inner if cell else 0
        if unit.name == "w:p":
            texts.append("".join(text.text for text in unit.within("w:t")))
        elif unit.parent is cell:
            span = unit.child("w:gridSpan")
            columns, start = column_count(span.attributes.get("w:val", "") if span else ""), unit.end
    if cell:
        yield _cell(cell, "\n".join(texts), columns, start)


def _cell(cell: Element, text: str, columns: int, start: int) -> Cell:
    """Return a cell whose paragraphs begin at `start`."""
    row, table = cell.outermost("w:tr"), cell.outermost("w:tbl")
    outer_offsets = table.start if table else -1, row.start if row else -1
    offsets = cell.start, cell.inner, cell.inner_end, cell.end
    return Cell(*outer_offsets, *offsets, columns, text, ((start, cell.inner_end),))


def _drop_cap(paragraph: Element) -> Element | None:
    """Return the element with the first letters of the next paragraph, if a paragraph consists only of these."""
    properties = paragraph.child("w:pPr")
    frame = properties and properties.child("w:framePr")
    texts = list(paragraph.within("w:t"))
    is_drop_cap = frame is not None and frame.attributes.get("w:dropCap", "none") != "none"
    if not is_drop_cap or len(texts) != 1 or not 0 < len(texts[0].text.strip()) <= LONGEST_INITIAL:
        return None
    return texts[0]


def _with_language(code: str | None, script: str, direction: Direction, name: str, properties: str) -> str:
    """Return properties with the target language, for Word's spelling checker, and with its direction."""
    properties = turned_run(name, properties, direction)
    if code is None or not name:
        return properties
    kind = "val"
    if script in EAST_ASIAN_SCRIPTS:
        kind = "eastAsia"
    elif script in COMPLEX_SCRIPTS:
        kind = "bidi"
    language = f'<{name}lang {name}{kind}="{code}"/>'
    if not properties:
        return f"<{name}rPr>{language}</{name}rPr>"
    later_property = _AFTER_LANGUAGE.search(properties)
    offset = later_property.start() if later_property else properties.rindex("</")
    return properties[:offset] + language + properties[offset:]


def _key(depending: Collection[str], file: XmlFile, properties: Element) -> str:
    """Return the properties of a run, except those that depend on its words; "" if there are no others."""
    children = properties.children_except(*depending)
    if not children:
        return ""
    xml = file.raw(properties.start, properties.inner)
    for child in children:
        xml += file.raw(child.start, child.end)
    return xml + file.raw(properties.inner_end, properties.end)


def _with_fields(parts: Sequence[Element | Piece]) -> Sequence[Element | Piece]:
    """Return the parts of a paragraph or a run, in which each field, control and ruby is one element.

    A field that ends in another paragraph, as a table of contents does, is not merged.
    """
    merged = list[Element | Piece]()
    depth = first = separate = 0
    for part in parts:
        merged.append(_control(part))
        for kind in _field_characters(part):
            if kind == "begin":
                if depth == 0:
                    first, separate = len(merged) - 1, 0
                depth += 1
            elif kind == "separate" and depth == 1:
                separate = len(merged) - 1 - first
            elif kind == "end" and depth:
                depth -= 1
                if depth == 0 and len(merged) - 1 > first:
                    merged[first:] = [_field(merged[first:], separate)]
    return merged


def _field_characters(part: Element | Piece) -> Iterator[str | None]:
    """Yield the types of the field characters in a run: the begin, the separator or the end of a field."""
    if isinstance(part, Element) and part.name == "w:r":
        for child in part.children:
            if child.name == "w:fldChar":
                yield child.attributes.get("w:fldCharType")


def _field(runs: Sequence[Element | Piece], separate: int) -> Element:
    """Merge the runs of a field; `separate`: the index of the run between its code and its result, 0 if there is none.

    The result is text only in some fields.
    """
    start, last = runs[0], runs[-1]
    assert isinstance(start, Element)
    field = replace(start, name=_FIXED, end=last.end, parts=list(runs))
    code = ""
    for run in runs[:separate]:
        if isinstance(run, Element):
            for text in run.within("w:instrText"):
                code += text.text
    result = list(runs[separate + 1 : -1])
    if not result or not code.strip().upper().startswith(_TEXT_FIELDS):
        return field
    return replace(field, name=_TEXT, inner=result[0].start, inner_end=last.start, parts=result)


def _control(part: Element | Piece) -> Element | Piece:
    """Return a content control, a ruby or custom XML as an element that contains only its text."""
    if isinstance(part, Piece):
        return part
    if part.name == "w:sdt":
        text, settings = part.child("w:sdtContent"), part.child("w:sdtPr")
        if text is None or (settings and settings.child("w:dataBinding")):
            return replace(part, name=_FIXED)
        return replace(part, name=_TEXT, inner=text.inner, inner_end=text.inner_end, parts=text.parts)
    if part.name == "w:ruby" and (base := part.child("w:rubyBase")):
        return replace(part, name=_TEXT, inner=base.inner, inner_end=base.inner_end, parts=base.parts)
    if part.name in _WITH_PROPERTIES:
        parts = part.children_except(_WITH_PROPERTIES[part.name])
        if not parts:
            return replace(part, name=_FIXED)
        return replace(part, name=_TEXT, inner=parts[0].start, parts=[*parts])
    return part
