"""The units of TMX and XLIFF files that are corpora, and the texts in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from bitext.protected_spans import fixed_parts
from bitext.readers.bad_line import OnBad
from bitext.readers.lines import LONGEST_LINE, one_space, opened, report_bad_line
from bitext.readers.xml_elements import Element, ElementReader, Piece

CODES = {"bpt", "ept", "it", "ph", "ut"}
"""Elements whose content is not text but native code of the document."""
BREAKS = {"it", "ph", "ut", "x"}
"""Elements that may stand for a line end."""
UNIT_FIX = "Correct the unit, or delete it."
_JOINED = re.compile(r"(?<=\w)\0(?=\w)")


def corpus_units(
    path: Path, root: str, names: Collection[str], namespaces: Mapping[str, str], on_bad: OnBad
) -> Iterator[Element]:
    """Yield the units of a file, gzipped or not, in the encoding that it declares; other arguments as `ElementReader`.

    A unit with an undefined entity, so that a part of its text is missing, is a bad one.

    Raises:
        UserError: the file is unreadable, not well-formed XML, has another root, or is harmful; or a unit can't be
            read, and `on_bad` is None.
    """
    reader = ElementReader(path, {root}, names, namespaces, max_bytes=LONGEST_LINE)
    with opened(path) as stream:
        for unit in reader.units(stream):
            if unit.entity:
                what = f"refers to &{unit.entity};, which is not defined"
                report_bad_line(path, unit.line, what, UNIT_FIX, unit.words().strip(), on_bad)
            else:
                yield unit
            unit.release()


def inline_text(element: Element) -> str:
    """Return the text in an element without codes; placeholders in codes (`%s`, `{name}`) stay.

    A code between two words becomes a space.
    """
    text = "".join(_parts(element))
    if "\0" in text:
        text = _JOINED.sub(" ", text).replace("\0", "")
    return one_space(text)


def _parts(element: Element) -> Iterator[str]:
    """Yield the texts in an element, and a NUL, which no XML file contains, for each code that may be a line end."""
    for part in element.parts:
        if isinstance(part, Piece):
            yield part.text
        elif part.name in CODES and (placeholder := _placeholder(part)):
            yield placeholder
        elif part.name in BREAKS:
            yield "\0"
        elif part.name not in CODES:
            yield from _parts(part)


def _placeholder(code: Element) -> str:
    """Return the placeholder that a code consists of; empty if it is a tag or something else."""
    text = code.words().strip()
    return text if not text.startswith(("<", "&")) and fixed_parts(text) == [text] else ""
