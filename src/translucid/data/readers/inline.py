"""The text of a segment with inline elements, from a .tmx or .xliff file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from translucid.data.non_translatable import fixed_parts
from translucid.data.readers.lines import one_space

CODES = {"bpt", "ept", "it", "ph", "ut"}
"""Elements whose content is not text but native code of the document."""
BREAKS = {"it", "ph", "ut", "x"}
"""Elements that may stand for a line end."""
_JOINED = re.compile(r"(?<=\w)\0(?=\w)")


def inline_text(element: Element) -> str:
    """Return the text in an element without codes; placeholders in codes (`%s`, `{name}`) stay.

    A code between two words becomes a space.
    """
    text = _JOINED.sub(" ", "".join(_parts(element)))
    return one_space(text.replace("\0", ""))


def _parts(element: Element) -> Iterator[str]:
    """Yield the texts in an element, and a NUL, which no XML file contains, for each code that may be a line end."""
    yield element.text or ""
    for child in element:
        if child.tag in CODES and (placeholder := _placeholder(child)):
            yield placeholder
        elif child.tag in BREAKS:
            yield "\0"
        elif child.tag not in CODES:
            yield from _parts(child)
        yield child.tail or ""


def _placeholder(code: Element) -> str:
    """Return the placeholder that a code consists of; empty if it is a tag or something else."""
    text = "".join(code.itertext()).strip()
    return text if not text.startswith(("<", "&")) and fixed_parts(text) == [text] else ""
