"""Entities that an XML file declares for itself, as Android's strings do for names of products."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from translucid.ground.errors import UserError

LONGEST = 10_000
"""Characters that one may stand for. XML's parsers expand entities in attributes, whoever wants it or not."""
_REFERENCE = re.compile(r"&([^#&;][^&;]*);")


class Entities:
    """The entities of one file. Only those that stand for text are taken; those of other files never are."""

    def __init__(self, refused: Callable[[str], UserError]) -> None:
        """`refused`: makes the error that something in the file is wrong."""
        self.refused = refused
        self.texts: dict[str, str] = {}

    def declared(self, name: str, is_parameter: bool, text: str | None, *others: str | None) -> None:
        """Take one in, as expat tells it."""
        if is_parameter or text is None:
            raise self.refused("declares entities that are no texts of its own, which is refused")
        self.texts.setdefault(name, text)  # as XML wants it, the first declaration counts

    def refuse(self, *declaration: Any) -> None:
        """Refuse any other declaration."""
        raise self.refused("declares elements or attributes of its own, which is refused")

    def check_sizes(self) -> None:
        """Refuse entities that stand for very much text, or for themselves."""
        sizes: dict[str, int] = {}
        for name in self.texts:
            self._size(name, sizes, depth=0)

    def _size(self, name: str, sizes: dict[str, int], depth: int) -> int:
        """Return how many characters an entity stands for, those in it included."""
        if name not in sizes:
            text = self.texts.get(name, "")
            if depth > len(self.texts) or depth > 50:
                raise self.refused(f"declares the entity {name[:50]}, which stands in itself")
            size = len(text)
            for inner in _REFERENCE.findall(text):
                size += self._size(inner, sizes, depth + 1)
                if size > LONGEST:
                    break
            sizes[name] = size
            if size > LONGEST:
                raise self.refused(
                    f"declares the entity {name[:50]}, which stands for more than {LONGEST:,} characters"
                )
        return sizes[name]
