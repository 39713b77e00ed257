"""Paragraphs of drawings (`a:p`): slides, their notes and tables, charts, diagrams."""

from __future__ import annotations

import re
from functools import partial

from translucid.data.languages import code_with_region
from translucid.documents.office.descriptions import add_descriptions
from translucid.documents.office.package_parts import SPACES
from translucid.documents.office.runs import Dialect, add_paragraph
from translucid.documents.xml.slots import SlottedXml
from translucid.documents.xml.xml_inline import Role
from translucid.documents.xml.xml_spans import Element, XmlFile
from translucid.documents.xml.xml_tags import with_attributes
from translucid.documents.zip_container import ZipContainer

_OF_THE_SOURCE = dict.fromkeys(("lang", "altLang", "dirty", "err", "smtClean", "smtId"))
"""Attributes of a run that tell of its words: which language they are of, what a spelling checker found."""
_TAG = re.compile(r"""<(?:"[^"]*"|'[^']*'|[^'">])*>""")


def read_drawn(packed: ZipContainer, member: str, target: str | None, *, behind: bool = False) -> SlottedXml:
    """Take the paragraphs out of a member of a packed file.

    Args:
        packed: the file.
        member: its name.
        target: the language that they are to be in.
        behind: whether it is a master or a layout. It is seen behind slides, but for the prompts in its placeholders.

    Raises:
        UserError: it is broken or harmful.
    """
    document = SlottedXml(XmlFile(packed.place(member), packed.read(member)))
    dialect = Dialect("a", _role, _key, space="", spoken=partial(_spoken, code_with_region(target or "")))
    unseen = _placeholders(document.file) if behind else []
    for number, paragraph in enumerate(document.file.units((), {"a:p"}, SPACES), 1):
        runs = [part for part in paragraph.children if part.name not in ("a:pPr", "a:endParaRPr")]
        if runs and not any(start < paragraph.start < end for start, end in unseen):
            add_paragraph(document, dialect, runs, f"paragraph {number}")
    if not behind:
        add_descriptions(document, "p:cNvPr")
    return document


def _placeholders(file: XmlFile) -> list[tuple[int, int]]:
    """Return the places of the shapes that a slide has its own of."""
    shapes = file.units((), {"p:sp", "p:pic", "p:graphicFrame"}, SPACES)
    return [(shape.start, shape.end) for shape in shapes if any(shape.within("p:ph"))]


def _role(element: Element) -> Role:
    return "break" if element.name == "a:br" else "alone"


def _key(file: XmlFile, properties: Element) -> str:
    tag = with_attributes(file.raw(properties.start, properties.inner), _OF_THE_SOURCE)
    if not properties.parts and "=" not in tag:
        return ""
    return tag + file.raw(properties.inner, properties.end)


def _spoken(code: str | None, name: str, properties: str) -> str:
    """Return properties with the language that PowerPoint's spelling checker goes by."""
    tag = _TAG.match(properties or f"<{name}rPr/>")
    if code is None or tag is None:
        return properties
    return with_attributes(tag[0], {"lang": code}) + properties[tag.end() :]
