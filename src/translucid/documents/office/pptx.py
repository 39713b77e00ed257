"""PowerPoint: slides, tables, notes, charts, diagrams, and the texts of masters and layouts that slides show."""

from __future__ import annotations

from collections import Counter
from math import inf

from translucid.data.languages import Languages
from translucid.documents.office.drawings import read_drawn
from translucid.documents.office.package_parts import CHARTS, SPACES, parts, related
from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.zip_container import Bundle, ZipContainer

_BEHIND = {"presentationml.slideMaster+xml": "master", "presentationml.slideLayout+xml": "layout"}
_KINDS = {"presentationml.slide+xml": "slide", "presentationml.notesSlide+xml": "notes", **CHARTS, **_BEHIND}
_MAIN = "presentation.main+xml"


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Parse a presentation.

    Raises:
        UserError: the file is not a presentation, is invalid or harmful, or has macros.
    """
    packed = ZipContainer(name, content)
    bundle = Bundle(packed)
    members = list(parts(packed, {_MAIN: "", **_KINDS}, _MAIN))
    places = _slide_places(packed, members[0][0])
    # The slides of the show first, in its order; then all others in the order of their kinds.
    members.sort(key=lambda member: places.get(member[0], inf))
    numbers = Counter[str]()
    for member, kind in members:
        if not kind:  # the main part
            continue
        numbers[kind] += 1
        drawn = read_drawn(packed, member, languages[1], behind=kind in _BEHIND.values())
        bundle.add(member, drawn, f"{kind} {numbers[kind]}")
    return bundle


def _slide_places(packed: ZipContainer, main: str) -> dict[str, int]:
    """Return the place of each slide in the show."""
    members = related(packed, main)
    shown = XmlFile(packed.place(main), packed.read(main)).units({"p:presentation"}, {"p:sldId"}, SPACES)
    return {members.get(slide.attributes.get("r:id", ""), ""): place for place, slide in enumerate(shown)}
