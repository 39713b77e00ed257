""".NET's .resx and .resw: the values of `<data>` without a type are translated; the comment of each is a note."""

from __future__ import annotations

from functools import partial

from bitext.documents.document import Segment
from bitext.documents.strings.messages import add_message, is_language
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_file import CDATA, Message, Render, SlottedXml, Targets, XmlFile, written_in_cdata
from bitext.languages import Languages
from bitext.readers.xml_elements import Element

_LOCKED = "{Locked}"
"""The comment with which Microsoft's tools mark values that are not translated."""
_DESIGNER_PREFIX = ">>"
"""The beginning of the names of entries for the form designer, such as `>>button1.Name`."""


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Parse a file of resources.

    Raises:
        UserError: the file is not one of resources, invalid or harmful.
    """
    document = SlottedXml(XmlFile(name, content))
    line_end = document.file.file.line_end
    for data in document.file.units({"root"}, {"data"}, {}):
        value, comment = data.child("value"), data.child("comment")
        note = comment.text.strip() if comment else ""
        if value and _is_text(data, note) and is_language(value.text, data.attributes.get("name", "")):
            _add(document, value, Segment(TaggedText(""), f"line {data.line}", note=note or None), line_end)
    return document


def _is_text(data: Element, note: str) -> bool:
    """Whether an entry is a text that may be translated, not an object such as a font or an icon."""
    is_string = data.attributes.get("type", "System.String").startswith("System.String")
    if not is_string or "mimetype" in data.attributes:
        return False
    return not data.attributes.get("name", "").startswith(_DESIGNER_PREFIX) and not note.startswith(_LOCKED)


def _add(document: SlottedXml, value: Element, template: Segment, line_end: str) -> None:
    message = Message(*add_message(document.segments, value.text, template), line_end)
    if message.numbers:
        is_cdata = len(value.parts) == 1 and getattr(value.parts[0], "kind", "") == "cdata"
        document.add_slot(value.inner, value.inner_end, message.numbers, partial(_written, message, is_cdata))


def _written(message: Message, is_cdata: bool, targets: Targets, render: Render) -> str:
    if not is_cdata:
        return message.written(targets)
    text = written_in_cdata(message.spans.filled(targets)).replace("\n", message.line_end)
    return text.join(CDATA)
