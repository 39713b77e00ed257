"""PowerPoint: slides, tables, notes, and what slides show of masters and layouts."""

from __future__ import annotations

from collections import Counter
from math import inf

from bitext.documents.office.ooxml import CHARTS, NAMESPACES, parts, read_drawing, related, turn_styles
from bitext.documents.zip_container import Bundle, ZipContainer
from bitext.languages import Languages, new_direction

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
            styles = archive.xml(member)
            turn_styles(styles, new_direction(languages))
            bundle.add(member, styles, "")
            continue
        numbers[kind] += 1
        document = read_drawing(archive, member, languages, is_master=kind in _MASTERS.values())
        bundle.add(member, document, f"{kind} {numbers[kind]}")
    return bundle


def _slide_order(archive: ZipContainer, main: str) -> dict[str, int]:
    """Return the position of each slide in the show, by its member."""
    members = related(archive, main)
    slides = archive.xml(main).file.units({"p:presentation"}, {"p:sldId"}, NAMESPACES)
    return {members.get(slide.attributes.get("r:id", ""), ""): position for position, slide in enumerate(slides)}
