"""PowerPoint: slides, tables, notes, and what slides show of masters and layouts; the drawings of all Office files.

Drawings have paragraphs (`a:p`) and descriptions of pictures; they are slides, charts and diagrams.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from functools import partial
from math import inf

from bitext.documents.document import Segment
from bitext.documents.office.direction import turn_drawing, turn_styles
from bitext.documents.office.package_parts import CHARTS, NAMESPACES, parts, related
from bitext.documents.office.runs import Dialect, add_paragraph
from bitext.documents.strings.messages import is_language
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_file import Render, SlottedXml, Targets, XmlFile
from bitext.documents.xml.xml_inline import with_attributes
from bitext.documents.zip_container import Bundle, ZipContainer
from bitext.languages import Languages, code_with_region, new_direction
from bitext.readers.xml_elements import Element

_MASTERS = {"presentationml.slideMaster+xml": "master", "presentationml.slideLayout+xml": "layout"}
_KINDS = {"presentationml.slide+xml": "slide", "presentationml.notesSlide+xml": "notes", **CHARTS, **_MASTERS}
_MAIN = "presentation.main+xml"


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a presentation.

    Raises:
        UserError: the file is not a presentation, is invalid or harmful, or has macros.
    """
    archive = ZipContainer(name, content)
    bundle = Bundle(archive)
    members = list(parts(archive, {_MAIN: "", **_KINDS}, _MAIN))
    slide_order = _slide_order(archive, members[0][0])
    # The slides of the show first, in its order; then all others in the order of their kinds.
    members.sort(key=lambda member: slide_order.get(member[0], inf))
    numbers = Counter[str]()
    for member, kind in members:
        if not kind:  # the main part, with the styles of text outside of placeholders
            bundle.add(member, _styles(archive, member, languages), "")
            continue
        numbers[kind] += 1
        document = read_drawing(archive, member, languages, is_master=kind in _MASTERS.values())
        bundle.add(member, document, f"{kind} {numbers[kind]}")
    return bundle


def _styles(archive: ZipContainer, main: str, languages: Languages) -> SlottedXml:
    document = SlottedXml(XmlFile(archive.display_name(main), archive.read(main)))
    turn_styles(document, new_direction(languages))
    return document


def _slide_order(archive: ZipContainer, main: str) -> dict[str, int]:
    """Return the position of each slide in the show, by its member."""
    members = related(archive, main)
    slides = XmlFile(archive.display_name(main), archive.read(main)).units({"p:presentation"}, {"p:sldId"}, NAMESPACES)
    return {members.get(slide.attributes.get("r:id", ""), ""): position for position, slide in enumerate(slides)}


_SOURCE_ATTRIBUTES = dict.fromkeys(("lang", "altLang", "dirty", "err", "smtClean", "smtId"))
"""The attributes of a run that depend on its words: their language, and results of the spelling checker."""
_DESCRIPTIONS = "title", "descr"
"""The attributes that describe a picture, which screen readers read aloud."""
_TAG = re.compile(r"""<(?:"[^"]*"|'[^']*'|[^'">])*>""")


def read_drawing(
    archive: ZipContainer, member: str, languages: Languages, *, is_master: bool = False, picture_tag: str = "p:cNvPr"
) -> SlottedXml:
    """Parse the paragraphs of a member.

    Args:
        archive: the zip file.
        member: the name of the member.
        languages: the source and the target language.
        is_master: whether the member is a master or a layout, which slides show except for its placeholders.
        picture_tag: the name of elements with descriptions of pictures.

    Raises:
        UserError: the member is invalid or harmful.
    """
    document = SlottedXml(XmlFile(archive.display_name(member), archive.read(member)))
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
        first = len(document.segments)
        numbers: dict[str, int] = {}  # by attribute
        for attribute in _DESCRIPTIONS:
            text = element.attributes.get(attribute, "")
            if is_language(text):
                numbers[attribute] = document.segments.add(Segment(TaggedText(text), f"picture {pictures + 1}"))
        if numbers:
            pictures += 1
            write = partial(_described, document.file.raw(element.start, element.inner), numbers)
            document.add_slot(element.start, element.inner, range(first, len(document.segments)), write)


def _described(tag: str, numbers: dict[str, int], targets: Targets, render: Render) -> str:
    attributes: dict[str, str | None] = {}
    for attribute, number in numbers.items():
        if number in targets:
            attributes[attribute] = targets[number].marked.full_text
    return with_attributes(tag, attributes)
