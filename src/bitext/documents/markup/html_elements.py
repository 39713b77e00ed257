"""The elements and attributes of HTML by their role in translation."""

from __future__ import annotations

import re
from typing import NamedTuple

_INLINE = """
a abbr acronym b bdi bdo big br cite data del dfn em font i img ins label mark q rb ruby s small span strike strong
sub sup time tt u wbr
"""
INLINE = frozenset(_INLINE.split())
"""Elements within a sentence."""
KEPT_INLINE = frozenset({"code", "kbd", "samp", "var", "svg", "math", "rt", "rp"})
"""Elements within a sentence whose text is never translated."""
_KEPT_BLOCKS = "script style template textarea noscript pre iframe noembed noframes xmp plaintext"
KEPT = KEPT_INLINE | frozenset(_KEPT_BLOCKS.split())
"""Elements whose text is never translated."""
_VOID = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(_VOID.split())
"""Elements without content and end tag."""

_BLOCKS = """
address article aside blockquote body caption center col colgroup dd dir div dl dt fieldset figcaption figure footer h1
h2 h3 h4 h5 h6 head hr html li main meta nav ol p section table tbody td tfoot th thead tr ul
"""
BLOCKS = frozenset(_BLOCKS.split())
"""Elements that separate blocks in strings, where other names, such as `<link>`, are also those of components."""

_ROWS, _CELLS = {"tr", "thead", "tbody", "tfoot"}, {"td", "th"}
IMPLIED = {
    **dict.fromkeys(["li"], ({"li"}, {"ul", "ol", "menu"})),
    **dict.fromkeys(["dt", "dd"], ({"dt", "dd"}, {"dl"})),
    **dict.fromkeys(_CELLS, (_CELLS, {"table", "tr"})),
    **dict.fromkeys(["tr"], ({"tr"} | _CELLS, {"table"})),
    **dict.fromkeys(["thead", "tbody", "tfoot"], (_ROWS | _CELLS, {"table"})),
    **dict.fromkeys(["option"], ({"option"}, {"select", "datalist"})),
}
"""By the name of an element: the open elements that its start tag closes, and the elements that limit this."""

_TEXT_ATTRIBUTES = {"alt", "title", "placeholder"} | {
    f"aria-{name}" for name in ("label", "description", "placeholder", "roledescription", "valuetext")
}
_META_NAMES = """
description og:title og:description og:image:alt og:site_name twitter:title twitter:description twitter:image:alt
apple-mobile-web-app-title application-name
"""
_KEPT_CLASSES = frozenset({"notranslate", "mention", "hashtag"})
_META = frozenset(_META_NAMES.split())
NUMBERED_NAME = "[a-z]{1,10}[0-9]{1,6}"
"""The name of a tag by which a tool replaces an element within a sentence, such as `b0`; `h1` to `h6` are headings."""
_NUMBERED = re.compile(NUMBERED_NAME)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_NAME = re.compile(r"<([^\s/>]*)")
_ATTRIBUTE = re.compile(r"([^\s\"'>/=]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")


class Attribute(NamedTuple):
    """An attribute and the offset of its value."""

    name: str
    value: str
    """The value without quotes, not decoded."""
    quote: str
    """The quote around the value, or ""."""
    start: int
    """The offset of the value, after the quote."""


class Tag(NamedTuple):
    """The start tag of an element."""

    name: str
    attributes: dict[str, Attribute]
    """The attributes by their names."""

    @classmethod
    def of(cls, name: str, text: str, start: int, end: int) -> Tag:
        """Parse the tag in a range of a text."""
        if match := _NAME.match(text, start, end):
            start = match.end()
        attributes: dict[str, Attribute] = {}
        for match in _ATTRIBUTE.finditer(text, start, end):
            key, value, quote = match[1].lower(), match[2], ""
            if value is None:
                continue
            if value[0] in "\"'":
                quote, value = value[0], value[1:-1]
            # As in browsers, the first of equal attributes counts.
            attributes.setdefault(key, Attribute(key, value, quote, match.start(2) + len(quote)))
        return cls(name, attributes)

    def value(self, name: str) -> str:
        """Return the value of an attribute in lower case; "" if there is none."""
        attribute = self.attributes.get(name)
        return attribute.value.strip().lower() if attribute else ""

    @property
    def refuses_translation(self) -> bool:
        """Whether the element declares that it must not be translated."""
        # Mentions and hashtags of Mastodon and others are names.
        return self.value("translate") == "no" or not _KEPT_CLASSES.isdisjoint(self.value("class").split())

    def translated(self, parent_translated: bool) -> bool:
        """Whether the content of the element is translated; `parent_translated`: whether that of its parent is."""
        if self.refuses_translation or self.name in KEPT - KEPT_INLINE:
            return False
        return self.value("translate") == "yes" or (parent_translated and self.name not in KEPT)

    @property
    def text_attributes(self) -> list[Attribute]:
        """The attributes that people read or hear."""
        if self.name in ("link", "style", "script"):
            return []
        names = set(_TEXT_ATTRIBUTES)
        if self.name in ("option", "optgroup", "track"):
            names.add("label")
        if self.name == "input" and self.value("type") in ("submit", "button", "reset"):
            names.add("value")
        if self.name == "meta" and (self.value("name") in _META or self.value("property") in _META):
            names.add("content")
        return self._named(names)

    @property
    def languages(self) -> list[Attribute]:
        """The attributes that name the language."""
        return self._named({"lang", "xml:lang"})

    def _named(self, names: set[str]) -> list[Attribute]:
        return [attribute for name, attribute in self.attributes.items() if name in names]


def is_inline(name: str) -> bool:
    """Whether an element is within a sentence; custom elements are, as in browsers, and so are numbered tags."""
    is_numbered = _NUMBERED.fullmatch(name) and name not in _HEADINGS
    return name in INLINE or name in KEPT_INLINE or "-" in name or bool(is_numbered)
