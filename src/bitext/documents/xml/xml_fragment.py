"""XML in a request, a fragment or a whole document; elements separate sentences unless text is beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bitext.documents.document import Target
from bitext.documents.xml.xml_file import Inline, Role, SlottedXml, XmlFile, add_text, written_in_cdata
from bitext.readers.xml_elements import Element, Piece

_DECLARATION = re.compile(r"\s*<\?xml\s[^>]{0,200}\?>")
_ROOT = "<r>", "</r>"
"""The root around a fragment, which may have several texts and elements side by side."""


@dataclass(frozen=True)
class Elements:
    """The roles of elements by their names."""

    ignored: frozenset[str] = frozenset()
    """Elements whose content is not translated."""
    splitting: frozenset[str] = frozenset()
    """Elements that separate sentences."""
    inline: frozenset[str] = frozenset()
    """Elements that never separate sentences."""
    outline: bool = True
    """Whether other elements separate sentences if no text is beside them."""

    def separates(self, element: Element, *, amid_text: bool) -> bool:
        """Whether an element separates sentences; `amid_text`: whether text is beside it."""
        if element.name in self.ignored:
            return False
        if element.name in self.splitting or any(element.within(*self.splitting)):
            return True
        return self.outline and not amid_text and element.name not in self.inline


class XmlFragment:
    """XML as a document."""

    def __init__(self, text: str, elements: Elements) -> None:
        """Parse the segments.

        Raises:
            UserError: the text is not well-formed XML, or harmful.
        """
        declaration = _DECLARATION.match(text)
        self._declaration = declaration[0] if declaration else ""
        file = XmlFile("text", (_ROOT[0] + text[len(self._declaration) :] + _ROOT[1]).encode())
        self._elements, self._document = elements, SlottedXml(file)
        self.segments = self._document.segments
        self._inline = Inline(file, self._role, edges=False, write_cdata=written_in_cdata)
        for root in file.units({"r"}, {"r"}, {}):
            self._add_element(root)

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the XML with translations, without the root that was added."""
        filled = self._document.filled(targets)
        return self._declaration.encode() + filled[len(_ROOT[0]) : -len(_ROOT[1])]

    def _role(self, element: Element) -> Role:
        return "alone" if element.name in self._elements.ignored else "pair"

    def _add_element(self, element: Element) -> None:
        """Add the segments of an element."""
        amid_text = any(isinstance(part, Piece) and part.text.strip() for part in element.parts)
        inline_parts: list[Element | Piece] = []
        for part in element.parts:
            if isinstance(part, Element) and self._elements.separates(part, amid_text=amid_text):
                self._add(inline_parts)
                inline_parts = []
                self._add_element(part)
            else:
                inline_parts.append(part)
        self._add(inline_parts)

    def _add(self, parts: list[Element | Piece]) -> None:
        if parts:
            add_text(self._document, self._inline, parts, "text")
