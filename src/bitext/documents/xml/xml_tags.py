"""Changes of raw tags of an XML file that keep all other characters of the tags."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bitext.documents.xml.xml_file import XmlFile
from bitext.documents.xml.xml_inline import escaped
from bitext.readers.xml_elements import Element, Piece

_ATTRIBUTE = re.compile(r"""(?<!\s)\s++([^\s=/>]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")


def with_attributes(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return a start tag with attributes set, or removed if their value is None.

    >>> with_attributes('<target state="new" xml:lang="es"/>', {"state": "final", "id": "1", "xml:lang": None})
    '<target state="final" id="1"/>'
    """
    remaining = dict(attributes)

    def changed(match: re.Match[str]) -> str:
        name = match[1]
        if name not in attributes:
            return match[0]
        return _attribute(name, remaining.pop(name, None))

    end = "/>" if tag.endswith("/>") else ">"
    tag = _ATTRIBUTE.sub(changed, tag[: -len(end)]).rstrip()
    return "".join([tag, *map(_attribute, remaining, remaining.values()), end])


def _attribute(name: str, value: str | None) -> str:
    if value is None:
        return ""
    quoted = escaped(value).replace('"', "&quot;").replace("\n", "&#10;")
    return f' {name}="{quoted}"'


def opened(tag: str) -> str:
    """Return a start tag, which may be that of an empty element, as one that needs an end tag."""
    return f"{tag[:-2].rstrip()}>" if tag.endswith("/>") else tag


def prefix(tag: str) -> str:
    """Return the prefix of a tag's name, including its colon.

    >>> prefix("<x:source>"), prefix("<source>")
    ('x:', '')
    """
    match = re.match(r"<([^\s/>:]+:)", tag)
    return match[1] if match else ""


def margin(file: XmlFile, element: Element) -> Piece:
    """Return the white space before an element, which may be empty."""
    previous: Element | Piece | None = None
    for part in element.parent.parts if element.parent else []:
        if part is element:
            break
        previous = part
    if isinstance(previous, Piece) and file.content[previous.start : previous.end].isspace():
        return previous
    return Piece("text", "", element.start, element.start)
