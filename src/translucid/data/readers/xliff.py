"""Sentence pairs of .xliff and .xlf files (XLIFF 1.2 and 2.x)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from translucid.data.languages import Languages, same_language
from translucid.data.readers.bad_lines import OnBad
from translucid.data.readers.inline import inline_text
from translucid.data.readers.lines import tell_bad
from translucid.data.readers.xml_units import xml_units

_UNTRANSLATED = {"initial", "new", "needs-translation"}
"""States of a unit whose target is no translation."""
_LANGUAGES = ("source-language", "srcLang"), ("target-language", "trgLang")
"""Attributes of XLIFF 1.2 and 2."""


def read_xliff(path: Path, languages: Languages, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, source, target) of what is translated, segment by segment.

    Args:
        path: the file, gz or not.
        languages: source and target; a file that translates from the target to the source is read the other way round.
        on_bad: is told of units that can't be read.

    Raises:
        UserError: the file is unreadable, or a unit is and nobody is told of it.
    """
    codes: list[str | None] = [None, None]

    def begin(element: Element) -> None:
        for side, names in enumerate(_LANGUAGES):
            codes[side] = next((element.get(name) for name in names if element.get(name)), codes[side])

    for line, unit, unknown in xml_units(path, "xliff", {"trans-unit", "unit"}, begin):
        if unknown:
            what = f"refers to &{unknown};, which is not defined"
            tell_bad(path, line, what, "Correct the unit, or delete it.", "".join(unit.itertext()).strip(), on_bad)
        elif unit.get("translate") != "no":
            back = _turned(codes, languages)
            for source, target in _segments(unit):
                if target:
                    yield (line, target, source) if back else (line, source, target)


def _turned(codes: list[str | None], languages: Languages) -> bool:
    """Whether a file has the source where the target is wanted."""
    source, target = codes
    wanted = languages[0], languages[1]
    if not (source and target and wanted[0] and wanted[1]) or same_language(source, wanted[0]):
        return False
    return same_language(source, wanted[1]) and same_language(target, wanted[0])


def _segments(unit: Element) -> Iterator[tuple[str, str]]:
    """Yield source and target of each segment that has both and is translated."""
    for segment in [unit] if unit.tag == "trans-unit" else unit.findall("segment"):
        source, target = segment.find("source"), segment.find("target")
        if source is None or target is None or _UNTRANSLATED & {segment.get("state"), target.get("state")}:
            continue
        cut = segment.find("seg-source")
        both = _marked(source if cut is None else cut), _marked(target)
        if both[0] and both[0].keys() == both[1].keys():
            yield from ((text, both[1][name]) for name, text in both[0].items())
        else:
            yield inline_text(source), inline_text(target)


def _marked(text: Element) -> dict[str | None, str]:
    """Return the segments that a text of XLIFF 1.2 is cut into, by their names."""
    return {mark.get("mid"): inline_text(mark) for mark in text.iter("mrk") if mark.get("mtype") == "seg"}
