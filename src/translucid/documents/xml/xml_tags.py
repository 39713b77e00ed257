"""Tags as they stand in a file, with attributes put in or changed; the others stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping

from translucid.documents.xml.xml_inline import escaped
from translucid.documents.xml.xml_spans import Element, Piece, XmlFile

_ATTRIBUTE = re.compile(r"""(?<!\s)\s++([^\s=/>]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")


def with_attributes(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return a start tag with attributes set, or taken out where the value is none.

    >>> with_attributes('<target state="new" xml:lang="es"/>', {"state": "final", "id": "1", "xml:lang": None})
    '<target state="final" id="1"/>'
    """
    left = dict(attributes)

    def changed(match: re.Match[str]) -> str:
        name = match[1]
        if name not in attributes:
            return match[0]
        value = left.pop(name, None)
        return "" if value is None else f' {name}="{_quoted(value)}"'

    end = "/>" if tag.endswith("/>") else ">"
    tag = _ATTRIBUTE.sub(changed, tag[: -len(end)]).rstrip()
    return tag + "".join(f' {name}="{_quoted(value)}"' for name, value in left.items() if value is not None) + end


def opened(tag: str) -> str:
    """Return a start tag with an end to come, of one that may have none."""
    return f"{tag[:-2].rstrip()}>" if tag.endswith("/>") else tag


def prefix(tag: str) -> str:
    """Return the prefix of a tag's name, with its colon, as it stands in the file.

    >>> prefix("<x:source>"), prefix("<source>")
    ('x:', '')
    """
    before, colon, _ = re.split(r"[\s/>]", tag[1:], maxsplit=1)[0].rpartition(":")
    return before + colon


def margin(file: XmlFile, element: Element) -> Piece:
    """Return the white space in front of an element, which may be none."""
    parts = element.parent.parts if element.parent else []
    at = next((i for i, part in enumerate(parts) if part is element), 0) - 1
    space = parts[at] if at >= 0 else None
    blank = isinstance(space, Piece) and file.content[space.start : space.end].isspace()
    return space if blank else Piece("text", "", element.start, element.start)  # type: ignore[return-value]


def _quoted(value: str) -> str:
    return escaped(value).replace('"', "&quot;").replace("\n", "&#10;")
