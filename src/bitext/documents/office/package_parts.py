"""The parts of an Office Open XML package by their types, for Word, PowerPoint and Excel."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from urllib.parse import unquote

from bitext.documents.xml.xml_file import XmlFile
from bitext.documents.zip_container import ZipContainer
from bitext.readers.xml_elements import Element

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
    types = _types(archive)
    for end, label in kinds.items():
        members = [name for name, kind in types.items() if kind.endswith(end.lower())]
        if end == main:
            members = _main_members(archive, members)
        for name in sorted(members, key=_sort_key):
            yield name, label


def _types(archive: ZipContainer) -> dict[str, str]:
    """Return the type of each member in lower case; a member without its own has that of its extension.

    Raises:
        UserError: the package has macros.
    """
    has_macros = any("vbaproject" in name.lower() for name in archive.names)
    defaults: dict[str, str] = {}
    own: dict[str, str] = {}
    for element in _units(archive, _TYPES, "Types", ("Default", "Override"), _TYPE):
        kind = element.attributes.get("ContentType", "").lower()
        has_macros = has_macros or "macroenabled" in kind or "vbaproject" in kind
        if element.name == "Default":
            defaults[element.attributes.get("Extension", "").lower()] = kind
        elif member := archive.find(element.attributes.get("PartName", "")):
            own[member] = kind
    if has_macros:
        raise archive.error("has macros, which is refused")
    types: dict[str, str] = {}
    for name in archive.names:
        extension = posixpath.splitext(name)[1][1:].lower()
        types[name] = own.get(name) or defaults.get(extension, "")
    return types


def _main_members(archive: ZipContainer, members: list[str]) -> list[str]:
    """Return the main part; with a type by extension, further members may have its type too.

    Raises:
        UserError: there is none.
    """
    if not members:
        raise archive.error("is another kind of document than its name says")
    if len(members) > 1:
        roots = set(related(archive, "").values())
        members = [name for name in members if name in roots] or members
    return members[:1]


def related(archive: ZipContainer, member: str) -> dict[str, str]:
    """Return the members to which a member refers, by the identifier of the reference.

    Args:
        archive: the zip file.
        member: the name of the member; "" for the references of the package itself.
    """
    folder, name = posixpath.split(member)
    members: dict[str, str] = {}
    spaces = {"http://schemas.openxmlformats.org/package/2006/relationships": ""}
    for element in _units(archive, f"{folder}/_rels/{name}.rels", "Relationships", ("Relationship",), spaces):
        target = element.attributes.get("Target", "").replace("\\", "/")
        path = posixpath.normpath(posixpath.join("/", folder, target))
        found = archive.find(path) or archive.find(unquote(path))
        if found and element.attributes.get("TargetMode") != "External":
            members[element.attributes.get("Id", "")] = found
    return members


def _units(
    archive: ZipContainer, member: str, root: str, names: Collection[str], spaces: dict[str, str]
) -> Iterator[Element]:
    """Yield elements of a member; none if it is missing, except for the member with the types."""
    found = archive.find(member) or member
    if found in archive.names or member == _TYPES:
        yield from XmlFile(archive.display_name(found), archive.read(found)).units({root}, names, spaces)


def _sort_key(name: str) -> list[str | int]:
    """Return a sort key with which `slide10` comes after `slide9`."""
    parts: list[str | int] = [*re.split(r"([0-9]{1,9})", name)]
    parts[1::2] = map(int, parts[1::2])
    return parts
