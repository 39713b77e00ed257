"""The text of a segment with inline elements, as of a .tmx or .xliff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from translucid.data.non_translatable import fixed_parts
from translucid.data.readers.lines import one_space

CODES = {"bpt", "ept", "it", "ph", "ut"}
"""What is in these is not text but what a document has in this place."""
BREAKS = {"it", "ph", "ut", "x"}
"""These may stand for a line end."""
_JOINED = re.compile(r"(?<=\w)\0(?=\w)")


def inline_text(element: Element) -> str:
    """Return the text in an element: codes are left out, but placeholders in them (`%s`, `{name}`) stay.

    Words that only a code stands between get a space there.
    """
    text = _JOINED.sub(" ", "".join(_parts(element)))
    return one_space(text.replace("\0", ""))


def _parts(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in CODES:
            code = "".join(child.itertext()).strip()
            kept = not code.startswith(("<", "&")) and fixed_parts(code) == [code]
            yield code if kept else "\0" * (child.tag in BREAKS)
        elif child.tag in BREAKS:
            yield "\0"
        else:
            yield from _parts(child)
        yield child.tail or ""
