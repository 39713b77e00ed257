"""Entities that an XML file declares, as Android's strings do for product names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from translucid.data.readers.xml_elements import ElementReader
from translucid.ground.errors import UserError

LONGEST = 10_000
"""The largest number of characters of an entity: expat expands entities in attributes in any case."""
DEEPEST = 50
"""The largest depth of entities in entities."""
_REFERENCE = re.compile(r"&([^#&;][^&;]*);")


class Entities:
    """The entities of one file. Only internal entities with text are accepted, never those of other files."""

    def __init__(self, refused: Callable[[str], UserError]) -> None:
        """Start without entities; `refused` creates the error for an invalid declaration."""
        self.refused = refused
        self.texts: dict[str, str] = {}

    @classmethod
    def accept(cls, reader: ElementReader) -> None:
        """Let the file of a reader declare entities for texts."""
        entities = cls(reader.refused)
        reader.may_declare = True
        reader.parser.EntityDeclHandler = entities.declared
        reader.parser.EndDoctypeDeclHandler = entities.check_sizes
        for other in ("ElementDeclHandler", "AttlistDeclHandler", "NotationDeclHandler"):
            setattr(reader.parser, other, entities.refuse)

    def declared(self, name: str, is_parameter: bool, text: str | None, *others: str | None) -> None:
        """Add an entity; the parameters are those of expat's handler."""
        if is_parameter or text is None:
            raise self.refused("declares entities that are no texts of its own, which is refused")
        self.texts.setdefault(name, text)  # By the XML standard, the first declaration counts.

    def refuse(self, *declaration: Any) -> None:
        """Refuse any other declaration."""
        raise self.refused("declares elements or attributes of its own, which is refused")

    def check_sizes(self) -> None:
        """Refuse entities that are very long when expanded, or contain themselves."""
        sizes: dict[str, int] = {}
        for name in self.texts:
            self._size(name, sizes, depth=0)

    def _size(self, name: str, sizes: dict[str, int], depth: int) -> int:
        """Return the number of characters of an entity, including the entities in it."""
        if name not in sizes:
            text = self.texts.get(name, "")
            if depth > DEEPEST:
                raise self.refused(f"declares the entity {name[:50]}, which stands in itself")
            size = len(text)
            for inner in _REFERENCE.findall(text):
                size += self._size(inner, sizes, depth + 1)
            sizes[name] = size
            if size > LONGEST:
                raise self.refused(
                    f"declares the entity {name[:50]}, which stands for more than {LONGEST:,} characters"
                )
        return sizes[name]
