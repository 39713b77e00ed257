"""The parts of an Office Open XML package by their types, for Word, PowerPoint and Excel."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from translucid.documents.xml.xml_file import XmlFile
from translucid.documents.zip_container import ZipContainer

_SPACES = {
    "w": ("wordprocessingml", "main"),
    "a": ("drawingml", "main"),
    "p": ("presentationml", "main"),
    "s": ("spreadsheetml", "main"),
    "r": ("officeDocument", "relationships"),
    "wp": ("drawingml", "wordprocessingDrawing"),
    "xdr": ("drawingml", "spreadsheetDrawing"),
}
NAMESPACES: dict[str, str] = {}
"""The prefixes by their namespaces, which have other names in the strict variant of the standard."""
for _prefix, (_language, _part) in _SPACES.items():
    NAMESPACES[f"http://schemas.openxmlformats.org/{_language}/2006/{_part}"] = _prefix
    NAMESPACES[f"http://purl.oclc.org/ooxml/{_language}/{_part}"] = _prefix
_TYPES = "[Content_Types].xml"
_TYPE = {"http://schemas.openxmlformats.org/package/2006/content-types": ""}
CHARTS = {"drawingml.chart+xml": "chart", "drawingml.diagramData+xml": "diagram", "diagramDrawing+xml": "diagram"}
"""The ends of the types of drawing parts, and the usual name of each."""


def parts(archive: ZipContainer, kinds: dict[str, str], main: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the kind of members of some types, in the order of kinds and of the numbers in their names.

    Args:
        archive: the zip file.
        kinds: the kinds by the end of their type.
        main: the end of the type that one member must have.

    Raises:
        UserError: the package is another kind of document, or has macros.
    """
    types: dict[str, str] = {}
    has_macros = any("vbaProject" in name for name in archive.names)
    for element in XmlFile(archive.display_name(_TYPES), archive.read(_TYPES)).units(
        {"Types"}, {"Default", "Override"}, _TYPE
    ):
        kind = element.attributes.get("ContentType", "")
        types[element.attributes.get("PartName", "").lstrip("/")] = kind
        has_macros = has_macros or "macroEnabled" in kind or "vbaProject" in kind
    if has_macros:
        raise archive.error("has macros, which is refused")
    for end, label in kinds.items():
        members = [name for name, kind in types.items() if kind.endswith(end) and name in archive.names]
        if end == main and not members:
            raise archive.error("is another kind of document than its name says")
        for name in sorted(members, key=_sort_key):
            yield name, label


def related(archive: ZipContainer, member: str) -> dict[str, str]:
    """Return the members to which a member refers, by the identifier of the reference."""
    folder, name = posixpath.split(member)
    rels = f"{folder}/_rels/{name}.rels"
    if rels not in archive.names:
        return {}
    spaces = {"http://schemas.openxmlformats.org/package/2006/relationships": ""}
    members = {}
    for element in XmlFile(archive.display_name(rels), archive.read(rels)).units(
        {"Relationships"}, {"Relationship"}, spaces
    ):
        path = posixpath.normpath(posixpath.join("/", folder, element.attributes.get("Target", "")))
        members[element.attributes.get("Id", "")] = path[1:]
    return members


def _sort_key(name: str) -> list[str | int]:
    """Return a sort key with which `slide10` comes after `slide9`."""
    parts: list[str | int] = [*re.split(r"([0-9]{1,9})", name)]
    parts[1::2] = map(int, parts[1::2])
    return parts
