"""Word: the texts of a document, its headers, footers, notes, comments, text boxes, charts and diagrams."""

from __future__ import annotations

from translucid.data.languages import Languages
from translucid.documents.bundle import Bundle
from translucid.documents.docx_fields import with_fields
from translucid.documents.drawn import read_drawn
from translucid.documents.office import CHARTS, SPACES, parts
from translucid.documents.packed import Packed
from translucid.documents.runs import Dialect, add_paragraph
from translucid.documents.slots import SlottedXml
from translucid.documents.xml_inline import Role
from translucid.documents.xml_spans import Element, XmlFile

_MAIN = "document.main+xml"
_KINDS = {
    _MAIN: "",
    **{f"wordprocessingml.{kind}+xml": kind for kind in ("header", "footer", "footnotes", "endnotes", "comments")},
}
_PAIRS = {"w:hyperlink", "w:ins", "w:moveTo", "w:dir", "w:bdo"}
_BREAKS = {"w:tab", "w:ptab", "w:br", "w:cr"}
_GONE = {"w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"}
"""What a spelling checker and a layout have left behind."""
_OF_THE_SOURCE = {"w:lang", "w:noProof"}
"""Properties of a run that tell of its words."""


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Take a document apart.

    Raises:
        UserError: it is no document of Word, broken or harmful, or has macros.
    """
    packed = Packed(name, content)
    bundle = Bundle(packed)
    count = dict[str, int]()
    for member, kind in parts(packed, {**_KINDS, **CHARTS}, _MAIN):
        count[kind] = count.get(kind, 0) + 1
        read_part = read_drawn if kind in CHARTS.values() else _read_part
        numbered = kind and kind not in ("footnotes", "endnotes", "comments")
        bundle.add(member, read_part(packed, member), f"{kind} {count[kind]}" if numbered else kind)
    return bundle


def _read_part(packed: Packed, member: str) -> SlottedXml:
    document = SlottedXml(XmlFile(packed.place(member), packed.read(member)))
    dialect = Dialect(
        "w",
        _role,
        _key,
        space='xml:space="preserve"',
        texts={"w:noBreakHyphen": "-"},
        grouped=with_fields,
        holding="w:p",
    )
    for number, paragraph in enumerate(document.file.units((), {"w:p"}, SPACES), 1):
        _take(document, dialect, paragraph, f"paragraph {number}")
    return document


def _take(document: SlottedXml, dialect: Dialect, paragraph: Element, place: str) -> None:
    """Add a paragraph, and those of text boxes in it."""
    runs = [part for part in paragraph.children if part.name != "w:pPr"]
    if runs:
        add_paragraph(document, dialect, runs, place)
    for inner in paragraph.within("w:p"):
        _take(document, dialect, inner, f"{place}, text box")


def _role(element: Element) -> Role:
    if element.name in _PAIRS or element.name == "translated":
        return "pair"
    return "gone" if element.name in _GONE else "break" if element.name in _BREAKS else "alone"


def _key(file: XmlFile, properties: Element) -> str:
    kept = [file.raw(one.start, one.end) for one in properties.children if one.name not in _OF_THE_SOURCE]
    tag = file.raw(properties.start, properties.inner)
    return "".join([tag, *kept, file.raw(properties.inner_end, properties.end)]) if kept else ""
