"""PowerPoint: slides, tables, notes, charts and diagrams, and what masters and layouts show behind the slides."""

from __future__ import annotations

from translucid.data.languages import Languages
from translucid.documents.office.drawings import read_drawn
from translucid.documents.office.package_parts import CHARTS, SPACES, parts, related
from translucid.documents.xml.xml_spans import XmlFile
from translucid.documents.zip_bundle import Bundle
from translucid.documents.zip_container import ZipContainer

_BEHIND = {"presentationml.slideMaster+xml": "master", "presentationml.slideLayout+xml": "layout"}
_KINDS = {"presentationml.slide+xml": "slide", "presentationml.notesSlide+xml": "notes", **CHARTS, **_BEHIND}
_MAIN = "presentation.main+xml"


def read(name: str, content: bytes, languages: Languages) -> Bundle:
    """Take a presentation apart.

    Raises:
        UserError: it is no presentation, broken or harmful, or has macros.
    """
    packed = ZipContainer(name, content)
    bundle = Bundle(packed)
    found = list(parts(packed, {_MAIN: "", **_KINDS}, _MAIN))
    slides = _in_order(packed, next(member for member, kind in found if not kind))
    numbers = dict.fromkeys(_KINDS.values(), 0)
    for member, kind in sorted(
        found, key=lambda one: slides.get(one[0], len(slides)) if one[1] == "slide" else len(slides)
    ):
        if kind:
            numbers[kind] += 1
            drawn = read_drawn(packed, member, languages[1], behind=kind in _BEHIND.values())
            bundle.add(member, drawn, f"{kind} {numbers[kind]}")
    return bundle


def _in_order(packed: ZipContainer, main: str) -> dict[str, int]:
    """Return the place of each slide in the show."""
    of = related(packed, main)
    shown = XmlFile(packed.place(main), packed.read(main)).units({"p:presentation"}, {"p:sldId"}, SPACES)
    return {of.get(slide.attributes.get("r:id", ""), ""): place for place, slide in enumerate(shown)}
