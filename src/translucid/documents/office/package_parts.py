"""Office Open XML, what Word and PowerPoint have in common: the parts of a package, by their types."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from translucid.documents.xml.xml_spans import XmlFile
from translucid.documents.zip_container import ZipContainer

_OFFICE = "http://schemas.openxmlformats.org/{}/2006/{}"
_STRICT = "http://purl.oclc.org/ooxml/{}/{}"
SPACES = {
    _OFFICE.format("wordprocessingml", "main"): "w",
    _STRICT.format("wordprocessingml", "main"): "w",
    _OFFICE.format("drawingml", "main"): "a",
    _STRICT.format("drawingml", "main"): "a",
    _OFFICE.format("presentationml", "main"): "p",
    _STRICT.format("presentationml", "main"): "p",
    _OFFICE.format("officeDocument", "relationships"): "r",
    _STRICT.format("officeDocument", "relationships"): "r",
    _OFFICE.format("drawingml", "wordprocessingDrawing"): "wp",
    _STRICT.format("drawingml", "wordprocessingDrawing"): "wp",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
}
_TYPES = "[Content_Types].xml"
_TYPE = "{http://schemas.openxmlformats.org/package/2006/content-types}"
CHARTS = {"drawingml.chart+xml": "chart", "drawingml.diagramData+xml": "diagram", "diagramDrawing+xml": "diagram"}
"""Ends of the types of drawn parts, and what a person calls them."""


def parts(packed: ZipContainer, kinds: dict[str, str], main: str) -> Iterator[tuple[str, str]]:
    """Yield name and kind of those members that are of some types, in the order of their kinds and numbers.

    Args:
        packed: the file.
        kinds: by the end of their type.
        main: end of the type that one of them has to have.

    Raises:
        UserError: it is another kind of document, or has macros.
    """
    spaces = {_TYPE.strip("{}"): ""}
    listed = list(XmlFile(packed.place(_TYPES), packed.read(_TYPES)).units({"Types"}, {"Default", "Override"}, spaces))
    types = [one.attributes.get("ContentType", "") for one in listed]
    if any("macroEnabled" in one or "vbaProject" in one for one in types) or any(
        "vbaProject" in n for n in packed.names
    ):
        raise packed.refused("has macros, which is refused")
    named = {one.attributes.get("PartName", "").lstrip("/"): one.attributes.get("ContentType", "") for one in listed}
    found = [
        (end, name) for name, kind in named.items() for end in kinds if kind.endswith(end) and name in packed.names
    ]
    if not any(end == main for end, _ in found):
        raise packed.refused("is another kind of document than its name says")
    for end, name in sorted(found, key=lambda one: (list(kinds).index(one[0]), _numbered(one[1]))):
        yield name, kinds[end]


def related(packed: ZipContainer, member: str) -> dict[str, str]:
    """Return the members that one of them refers to, by the reference."""
    folder, name = posixpath.split(member)
    rels = f"{folder}/_rels/{name}.rels"
    if rels not in packed.names:
        return {}
    spaces = {"http://schemas.openxmlformats.org/package/2006/relationships": ""}
    return {
        one.attributes.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, one.attributes.get("Target", "")))[
            1:
        ]
        for one in XmlFile(packed.place(rels), packed.read(rels)).units({"Relationships"}, {"Relationship"}, spaces)
    }


def _numbered(name: str) -> list[str | int]:
    """Return a name so that `slide10` comes after `slide9`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]{1,9})", name)]
