"""Word: the text of a document, its headers, footers, notes, comments, text boxes, charts and diagrams."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

from translucid.data.languages import Languages, code_with_region, script_of
from translucid.data.readers.xml_elements import Element
from translucid.documents.office.docx_fields import TEXT, with_fields
from translucid.documents.office.drawings import add_descriptions, read_drawn
from translucid.documents.office.package_parts import CHARTS, SPACES, parts
from translucid.documents.office.runs import Dialect, add_paragraph
from translucid.documents.xml.slots import SlottedXml
from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.xml.xml_inline import Role
from translucid.documents.zip_bundle import Bundle
from translucid.documents.zip_container import ZipContainer

_MAIN = "document.main+xml"
_KINDS = {
    _MAIN: "",
    **{f"wordprocessingml.{kind}+xml": kind for kind in ("header", "footer", "footnotes", "endnotes", "comments")},
}
_PICTURE = "wp:docPr"
_ROLES: dict[str, Role] = {
    **dict.fromkeys(["w:hyperlink", "w:ins", "w:moveTo", "w:dir", "w:bdo", TEXT], "pair"),
    **dict.fromkeys(["w:tab", "w:ptab", "w:br", "w:cr"], "break"),
    # Traces of the spelling checker and the layout, which are void for a translation.
    **dict.fromkeys(["w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"], "gone"),
}
_OF_THE_SOURCE = {"w:lang", "w:noProof"}
"""Properties of a run that depend on its words."""
_BEHIND_LANGUAGE = re.compile(r"<[^<>\s:]+:(?:eastAsianLayout|specVanish|oMath|rPrChange)\b")
"""Properties that the schema requires behind that of the language."""
_EAST_ASIAN = {"Hans", "Hant", "Jpan", "Kore"}
_COMPLEX = {
    *("Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Deva", "Beng", "Guru", "Gujr", "Orya", "Taml", "Telu", "Knda", "Mlym"),
    *("Sinh", "Thai", "Laoo", "Tibt", "Mymr", "Khmr"),
}
"""Scripts whose language Word reads from a separate attribute, `w:bidi`; it is `w:eastAsia` for the ones above."""


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a document.

    Raises:
        UserError: the file is no Word document, invalid or harmful, or has macros.
    """
    packed = ZipContainer(name, content)
    bundle = Bundle(packed)
    counts = Counter[str]()
    for member, kind in parts(packed, {**_KINDS, **CHARTS}, _MAIN):
        counts[kind] += 1
        label = kind
        if kind not in ("", "footnotes", "endnotes", "comments"):
            label = f"{kind} {counts[kind]}"
        read = read_drawn if kind in CHARTS.values() else _read_part
        bundle.add(member, read(packed, member, languages[1]), label)
    return bundle


def _read_part(packed: ZipContainer, member: str, target: str | None) -> SlottedXml:
    document = SlottedXml(XmlFile(packed.place(member), packed.read(member)))
    code, script = code_with_region(target or ""), script_of(target or "")
    dialect = Dialect(
        "w",
        _ROLES,
        _key,
        space='xml:space="preserve"',
        texts={"w:noBreakHyphen": "-"},
        grouped=with_fields,
        holding=("w:p", _PICTURE),
        spoken=partial(_spoken, code, script),
    )
    for number, paragraph in enumerate(document.file.units((), {"w:p"}, SPACES), 1):
        _take(document, dialect, paragraph, f"paragraph {number}")
    add_descriptions(document, _PICTURE)
    return document


def _take(document: SlottedXml, dialect: Dialect, paragraph: Element, place: str) -> None:
    """Add a paragraph, and the paragraphs of text boxes in it."""
    runs = paragraph.children_except("w:pPr")
    if runs:
        add_paragraph(document, dialect, runs, place)
    for inner in paragraph.within("w:p"):
        _take(document, dialect, inner, f"{place}, text box")


def _spoken(code: str | None, script: str, name: str, properties: str) -> str:
    """Return properties with the target language, for Word's spelling checker."""
    if code is None or not name:
        return properties
    kind = "val"
    if script in _EAST_ASIAN:
        kind = "eastAsia"
    elif script in _COMPLEX:
        kind = "bidi"
    language = f'<{name}lang {name}{kind}="{code}"/>'
    if not properties:
        return f"<{name}rPr>{language}</{name}rPr>"
    behind = _BEHIND_LANGUAGE.search(properties)
    at = behind.start() if behind else properties.rindex("</")
    return properties[:at] + language + properties[at:]


def _key(file: XmlFile, properties: Element) -> str:
    """Return the properties of a run, except those that depend on its words; "" if there are no others."""
    kept = properties.children_except(*_OF_THE_SOURCE)
    if not kept:
        return ""
    written = file.raw(properties.start, properties.inner)
    for child in kept:
        written += file.raw(child.start, child.end)
    return written + file.raw(properties.inner_end, properties.end)
