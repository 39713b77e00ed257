"""A table in a Word document for reviewers without other tools: number, source, translation, comment.

The number identifies the segment, so rows may be sorted and deleted. Changes are tracked: a tracked insertion is part
of the translation, a tracked deletion is not, and their author is the reviewer. The rows as they were sent are in the
package, too (`customXml`), as XLIFF.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from bitext.documents.office.docx import MAIN
from bitext.documents.office.ooxml import NAMESPACES, parts
from bitext.documents.shown_tags import SHOWN_TAG
from bitext.documents.xml.xml_file import escaped
from bitext.documents.zip_container import ZipContainer
from bitext.errors import UserError
from bitext.languages import Languages, code_with_region, new_direction
from bitext.readers.lines import one_space
from bitext.readers.xml_elements import Element, Piece
from bitext.review.review import Review, Row, State
from bitext.review.xliff_file import read_xliff, xliff_of

ENDING = ".docx"
_HEAD = ("No.", "Source", "Translation", "Comment")
_WIDTHS = (700, 5700, 5700, 2900)
"""The widths of the columns in twentieths of a point, on a page in landscape format."""
_ADVICE = (
    "Correct the column “Translation”. Keep marks such as ⟨1⟩ and ⟨/1⟩: they stand for formatting, and belong around "
    "the same words. Rows may be sorted; a row that you delete is not reviewed. The numbers and the sources stay."
)
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_KIND = "application/vnd.openxmlformats-officedocument"
_ITEM = "customXml/item1.xml"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PACKAGE = {
    "[Content_Types].xml": f'<Types xmlns="{_TYPES}">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_KIND}.wordprocessingml.document.main+xml"/>'
    f'<Override PartName="/word/settings.xml" ContentType="{_KIND}.wordprocessingml.settings+xml"/>'
    f'<Override PartName="/customXml/itemProps1.xml" ContentType="{_KIND}.customXmlProperties+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/_rels/document.xml.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/relationships/settings" Target="settings.xml"/><Relationship Id="rId2" '
    f'Type="{_OFFICE}/relationships/customXml" Target="../{_ITEM}"/></Relationships>',
    "word/settings.xml": f'<w:settings xmlns:w="{_WORD}"><w:trackRevisions/></w:settings>',
    "customXml/_rels/item1.xml.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/relationships/customXmlProps" Target="itemProps1.xml"/></Relationships>',
    "customXml/itemProps1.xml": f'<ds:datastoreItem xmlns:ds="{_OFFICE}/customXml" '
    'ds:itemID="{6B0B5C4E-3C0B-4C62-9B0A-7A5E4F1D2C31}"><ds:schemaRefs/></ds:datastoreItem>',
}
"""The members of the package that are the same in every file."""


def docx_of(review: Review) -> bytes:
    """Return rows as a Word document."""
    members = {name: (_DECLARATION + text).encode() for name, text in _PACKAGE.items()}
    members["word/document.xml"] = (_DECLARATION + _document(review)).encode()
    members[_ITEM] = xliff_of(review)
    stream = BytesIO()
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = ZipInfo(name)  # with the same time in every file
            info.compress_type = ZIP_DEFLATED
            archive.writestr(info, content)
    return stream.getvalue()


def _document(review: Review) -> str:
    source, target = review.languages
    names = [*_HEAD]
    for column, code in enumerate(review.languages, 1):
        names[column] += f" ({code})" if code else ""
    direction = "<w:bidi/>" if new_direction(review.languages) == "rtl" else ""
    language = _language(target)
    rows = ["".join(_cell(name, width, bold=True) for name, width in zip(names, _WIDTHS, strict=True))]
    rows[0] = f"<w:tr><w:trPr><w:cantSplit/><w:tblHeader/></w:trPr>{rows[0]}</w:tr>"
    for row in review.rows:
        comment = "\n".join(filter(None, [*row.notes, row.comment]))
        cells = _cell(str(row.number), _WIDTHS[0], fixed=True)
        cells += _cell(row.source, _WIDTHS[1], _language(source), fixed=True)
        cells += _cell(row.target or "", _WIDTHS[2], language, direction)
        cells += _cell(comment, _WIDTHS[3])
        rows.append(f"<w:tr><w:trPr><w:cantSplit/></w:trPr>{cells}</w:tr>")
    borders = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="A0A0A0"/>'
        for side in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    grid = "".join(f'<w:gridCol w:w="{width}"/>' for width in _WIDTHS)
    table = f'<w:tbl><w:tblPr><w:tblW w:w="{sum(_WIDTHS)}" w:type="dxa"/><w:tblBorders>{borders}</w:tblBorders>'
    table += f'<w:tblLayout w:type="fixed"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{"".join(rows)}</w:tbl>'
    page = '<w:sectPr><w:pgSz w:w="16838" w:h="11906" w:orient="landscape"/>'
    page += (
        '<w:pgMar w:top="900" w:right="900" w:bottom="900" w:left="900" w:header="450" w:footer="450" w:gutter="0"/>'
    )
    body = f"{_paragraph(review.document, bold=True)}{_paragraph(_ADVICE)}{table}<w:p/>{page}</w:sectPr>"
    return f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'


def _language(code: str | None) -> str:
    """Return the property with the language of a text, for the spelling checker."""
    name = code_with_region(code or "")
    return f'<w:lang w:val="{name}" w:eastAsia="{name}" w:bidi="{name}"/>' if name else ""


def _cell(
    text: str, width: int, language: str = "", direction: str = "", *, bold: bool = False, fixed: bool = False
) -> str:
    """Return a cell; `fixed`: whether the reviewer should not change it, so it is gray."""
    shading = '<w:shd w:val="clear" w:color="auto" w:fill="F2F2F2"/>' if fixed or bold else ""
    properties = f'<w:tcPr><w:tcW w:w="{width}" w:type="dxa"/>{shading}</w:tcPr>'
    return f"<w:tc>{properties}{_paragraph(text, language, direction, bold=bold)}</w:tc>"


def _paragraph(text: str, language: str = "", direction: str = "", *, bold: bool = False) -> str:
    runs, position = list[str](), 0
    weight = "<w:b/>" if bold else ""
    for match in SHOWN_TAG.finditer(text):
        runs.append(_run(text[position : match.start()], f"{weight}{language}"))
        runs.append(_run(match[0], '<w:noProof/><w:color w:val="7030A0"/>'))
        position = match.end()
    runs.append(_run(text[position:], f"{weight}{language}"))
    spacing = '<w:spacing w:before="40" w:after="40"/>'
    return f"<w:p><w:pPr>{direction}{spacing}</w:pPr>{''.join(runs)}</w:p>"


def _run(text: str, properties: str) -> str:
    if not text:
        return ""
    content = f'<w:t xml:space="preserve">{escaped(text)}</w:t>'
    for character, element in (("\n", "<w:br/>"), ("\t", "<w:tab/>")):
        content = content.replace(character, f'</w:t>{element}<w:t xml:space="preserve">')
    return f"<w:r><w:rPr>{properties}</w:rPr>{content}</w:r>"


def read_docx(name: str, content: bytes) -> Review:
    """Read the rows of a table; those that are gone are in the result without corrections.

    Raises:
        UserError: the file is invalid or harmful, or has no such table.
    """
    archive = ZipContainer(name, content)
    ((member, _),) = parts(archive, {MAIN: ""}, MAIN)
    sent = _sent(archive)
    rows: list[Row] = []
    problems: list[str] = []
    languages: Languages = (None, None)
    for table_row in archive.xml(member).file.units((), {"w:tr"}, NAMESPACES):
        if _is_deleted(table_row):
            continue
        cells = list(table_row.within("w:tc"))
        texts = [_text(cell) for cell in cells]
        number = texts[0].strip().rstrip(".") if texts else ""
        if len(texts) >= 3 and number.isascii() and number.isdigit() and len(number) < 10:
            rows.append(_row(int(number), texts, _author(cells[2])))
        elif _is_head(table_row, texts):
            languages = _code_in(texts, 1), _code_in(texts, 2)
        elif any(map(str.strip, texts)):
            problems.append(f"a row without a number: {' | '.join(texts)[:80]!r}")
    if not rows and not sent:
        fix = "Give a file of `translucid review make`, with its table."
        raise UserError("has no row of a review", file=name, fix=fix)
    if sent is None:
        return Review("", languages, rows, problems)
    return Review(sent.document, sent.languages, _merged(sent, rows), problems)


def _sent(archive: ZipContainer) -> Review | None:
    """Return the rows as they were sent, unless a program has removed them."""
    for name in archive.names:
        if re.fullmatch(r"customxml/item[0-9]{1,3}\.xml", name.lower()):
            try:
                return read_xliff(archive.display_name(name), archive.read(name))
            except UserError:  # another program keeps something else there
                continue
    return None


def _merged(sent: Review, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that came back, with what was sent; those that were deleted are not reviewed."""
    before = {row.number: row for row in sent.rows}
    merged = []
    for row in rows:
        old = before.get(row.number)
        if old is None:
            merged.append(row)
            continue
        target = row.target or ""
        if _words(target) == _words(old.target or ""):
            restored = old.target  # with its line ends and tabs, which a program may have changed
        else:
            restored = target if "\n" in old.source else one_space(target)
        comment = row.comment
        if old.notes:
            comment = comment.removeprefix("\n".join(old.notes)).strip()
        state: State = "reviewed" if restored is not None else "initial"
        merged.append(replace(old, source=row.source, target=restored, state=state, comment=comment, who=row.who))
    numbers = {row.number for row in rows}
    return [*merged, *(row for row in sent.rows if row.number not in numbers)]


def _words(text: str) -> list[str]:
    return text.split()


def _row(number: int, texts: Sequence[str], who: str) -> Row:
    comment = texts[3].strip() if len(texts) > 3 else ""
    return Row(number, texts[1].strip(), target=texts[2].strip(), state="reviewed", comment=comment, who=who)


def _is_head(row: Element, texts: Sequence[str]) -> bool:
    """Whether a row has the names of the columns."""
    properties = row.child("w:trPr")
    is_repeated = properties is not None and properties.child("w:tblHeader") is not None
    return is_repeated or (bool(texts) and texts[0].strip() == _HEAD[0])


def _is_deleted(row: Element) -> bool:
    """Whether the deletion of a row is tracked."""
    properties = row.child("w:trPr")
    return properties is not None and properties.child("w:del") is not None


def _author(cell: Element) -> str:
    """Return the author of the last tracked change in a cell."""
    authors = [change.attributes.get("w:author", "") for change in cell.within("w:ins", "w:del")]
    return authors[-1] if authors else ""


_CHARACTERS = {"w:tab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "\u2011"}
"""The elements of a run that stand for a character."""
_WITHOUT_TEXT = ("w:del", "w:moveFrom", "w:instrText", "w:delText", "w:pPr", "w:rPr", "w:drawing", "w:pict")


def _text(cell: Element) -> str:
    """Return the text of a cell as it is when all tracked changes are accepted."""
    text, has_ended = "", False
    for paragraph in cell.within("w:p"):
        if has_ended:
            text += "\n"
        text += _visible(paragraph)
        properties = next(paragraph.within("w:pPr"), None)
        # A deleted paragraph mark joins two paragraphs.
        has_ended = properties is None or not any(mark.child("w:del") for mark in properties.within("w:rPr"))
    return text


def _visible(element: Element) -> str:
    text = ""
    for part in element.parts:
        if isinstance(part, Piece):
            text += part.text if element.name == "w:t" else ""
        elif part.name in _CHARACTERS:
            text += _CHARACTERS[part.name]
        elif part.name not in _WITHOUT_TEXT:
            text += _visible(part)
    return text


def _code_in(texts: Sequence[str], column: int) -> str | None:
    """Return the language code in the name of a column."""
    match = re.search(r"\(([A-Za-z][\w-]{1,20})\)", texts[column]) if column < len(texts) else None
    return match[1] if match else None
