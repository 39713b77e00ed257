"""What the elements and attributes of HTML mean to a translator."""

from __future__ import annotations

import re
from typing import NamedTuple

_INLINE = """
a abbr acronym b bdi bdo big br cite data del dfn em font i img ins label mark q rb ruby s small span strike strong
sub sup time tt u wbr
"""
INLINE = frozenset(_INLINE.split())
"""Elements that stand inside a text."""
KEPT_INLINE = frozenset({"code", "kbd", "samp", "var", "svg", "math", "rt", "rp"})
"""Elements inside a text whose own text is never translated."""
_KEPT_BLOCKS = "script style template textarea noscript pre iframe noembed noframes xmp plaintext"
KEPT = KEPT_INLINE | frozenset(_KEPT_BLOCKS.split())
"""Elements whose text is never translated."""
_VOID = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(_VOID.split())
"""Elements that hold nothing and are never closed."""

_ROWS, _CELLS = {"tr", "thead", "tbody", "tfoot"}, {"td", "th"}
IMPLIED = {
    **dict.fromkeys(["li"], ({"li"}, {"ul", "ol", "menu"})),
    **dict.fromkeys(["dt", "dd"], ({"dt", "dd"}, {"dl"})),
    **dict.fromkeys(_CELLS, (_CELLS, {"table", "tr"})),
    **dict.fromkeys(["tr"], ({"tr"} | _CELLS, {"table"})),
    **dict.fromkeys(["thead", "tbody", "tfoot"], (_ROWS | _CELLS, {"table"})),
    **dict.fromkeys(["option"], ({"option"}, {"select", "datalist"})),
}
"""By the name of an element: those that end where it begins, and those that this does not reach out of."""

_SEEN = {"alt", "title", "placeholder"} | {
    f"aria-{name}" for name in ("label", "description", "placeholder", "roledescription", "valuetext")
}
_META_NAMES = """
description og:title og:description og:image:alt og:site_name twitter:title twitter:description twitter:image:alt
apple-mobile-web-app-title application-name
"""
_META = frozenset(_META_NAMES.split())
_NAME = re.compile(r"<([^\s/>]*)")
_ATTRIBUTE = re.compile(r"([^\s\"'>/=]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")


class Attribute(NamedTuple):
    """The value of an attribute, where it stands in a text."""

    name: str
    value: str
    """Not decoded, without quotes."""
    quote: str
    """What is around it; may be empty."""
    start: int
    """Of its first character, behind the quote."""


class Tag(NamedTuple):
    """The start tag of an element."""

    name: str
    attributes: list[Attribute]

    @classmethod
    def of(cls, name: str, text: str, start: int, end: int) -> Tag:
        """Read the one that stands at a place of a text."""
        match = _NAME.match(text, start, end)
        found: dict[str, Attribute] = {}
        for one in _ATTRIBUTE.finditer(text, match.end() if match else start, end):
            if one[2] is not None:
                quote = one[2][0] if one[2][0] in "\"'" else ""
                value = one[2][1:-1] if quote else one[2]
                key = one[1].lower()
                found.setdefault(key, Attribute(key, value, quote, one.start(2) + len(quote)))
        return cls(name, list(found.values()))

    def value(self, name: str) -> str:
        """Return the value of an attribute in lower case; empty if there is none."""
        return next((one.value.strip().lower() for one in self.attributes if one.name == name), "")

    @property
    def refuses(self) -> bool:
        """Whether it says that it must not be translated."""
        return self.value("translate") == "no" or "notranslate" in self.value("class").split()

    def translated(self, around: bool) -> bool:
        """Whether what is in the element is translated; `around`: whether what it stands in is."""
        if self.refuses or self.name in KEPT - KEPT_INLINE:
            return False
        return self.value("translate") == "yes" or (around and self.name not in KEPT)

    @property
    def read(self) -> list[Attribute]:
        """Its attributes that a reader sees or hears."""
        if self.name in ("link", "style", "script"):
            return []
        names = set(_SEEN)
        if self.name in ("option", "optgroup", "track"):
            names.add("label")
        if self.name == "input" and self.value("type") in ("submit", "button", "reset"):
            names.add("value")
        if self.name == "meta" and (self.value("name") in _META or self.value("property") in _META):
            names.add("content")
        return [one for one in self.attributes if one.name in names]

    @property
    def languages(self) -> list[Attribute]:
        """What it says of its language."""
        return [one for one in self.attributes if one.name in ("lang", "xml:lang")]


def is_inline(name: str) -> bool:
    """Whether an element stands inside a text; those that HTML does not know do, as in a browser."""
    return name in INLINE or name in KEPT_INLINE or "-" in name
