"""Descriptions of pictures in Office documents: what a person hears who does not see them."""

from __future__ import annotations

from translucid.documents.document import Segment
from translucid.documents.office.package_parts import SPACES
from translucid.documents.strings.messages import is_language
from translucid.documents.tagged_text import TaggedText
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_tags import with_attributes

_ATTRIBUTES = "title", "descr"


def add_descriptions(document: SlottedXml, name: str) -> None:
    """Make segments of the descriptions that stand in elements of a name."""
    pictures = 0
    for element in document.file.units((), {name}, SPACES):
        texts = {one: text for one in _ATTRIBUTES if is_language(text := element.attributes.get(one, ""))}
        if not texts:
            continue
        pictures += 1
        place = f"picture {pictures}"
        found = {one: document.add_segment(Segment(TaggedText(text), place)) for one, text in texts.items()}
        tag = document.file.raw(element.start, element.inner)

        def write(targets: Targets, kept: Kept, tag: str = tag, found: dict[str, int] = found) -> str:
            new = {one: targets[which].marked.whole for one, which in found.items() if which in targets}
            return with_attributes(tag, new)

        numbers = range(min(found.values()), max(found.values()) + 1)
        document.add_slot(element.start, element.inner, numbers, write)
