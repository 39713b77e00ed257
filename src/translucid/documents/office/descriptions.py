"""Descriptions of pictures in Office documents, which screen readers read aloud."""

from __future__ import annotations

from functools import partial

from translucid.documents.document import Segment
from translucid.documents.office.package_parts import SPACES
from translucid.documents.strings.messages import is_language
from translucid.documents.tagged_text import TaggedText
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_tags import with_attributes

_ATTRIBUTES = "title", "descr"


def add_descriptions(document: SlottedXml, name: str) -> None:
    """Add the descriptions in the attributes of elements of a name as segments."""
    pictures = 0
    for element in document.file.units((), {name}, SPACES):
        first = len(document.segments)
        numbers: dict[str, int] = {}  # by attribute
        for attribute in _ATTRIBUTES:
            text = element.attributes.get(attribute, "")
            if is_language(text):
                numbers[attribute] = document.segments.add(Segment(TaggedText(text), f"picture {pictures + 1}"))
        if numbers:
            pictures += 1
            write = partial(_written, document.file.raw(element.start, element.inner), numbers)
            document.add_slot(element.start, element.inner, range(first, len(document.segments)), write)


def _written(tag: str, numbers: dict[str, int], targets: Targets, kept: Kept) -> str:
    new: dict[str, str | None] = {}
    for attribute, number in numbers.items():
        if number in targets:
            new[attribute] = targets[number].marked.whole
    return with_attributes(tag, new)
