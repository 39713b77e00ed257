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
"""The states of units whose target is not a translation."""


def read_xliff(path: Path, languages: Languages, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, source, target) of each translated segment.

    Args:
        path: the file, gzipped or not.
        languages: source and target; the sides of a file that translates from target to source are exchanged.
        on_bad: called with each unit that can't be read, which is then skipped.

    Raises:
        UserError: the file is unreadable; or a unit is, and `on_bad` is None.
    """
    codes: list[str | None] = [None, None]

    def begin(element: Element) -> None:
        # Attributes of a <file> of XLIFF 1.2, and of the <xliff> element of XLIFF 2.
        codes[0] = element.get("source-language") or element.get("srcLang") or codes[0]
        codes[1] = element.get("target-language") or element.get("trgLang") or codes[1]

    for line, unit, unknown in xml_units(path, "xliff", {"trans-unit", "unit"}, begin):
        if unknown:
            what = f"refers to &{unknown};, which is not defined"
            tell_bad(path, line, what, "Correct the unit, or delete it.", "".join(unit.itertext()).strip(), on_bad)
        elif unit.get("translate") != "no":
            is_reversed = _is_reversed(codes, languages)
            for source, target in _segments(unit):
                if not target:
                    continue
                if is_reversed:
                    yield line, target, source
                else:
                    yield line, source, target


def _is_reversed(codes: list[str | None], languages: Languages) -> bool:
    """Whether a file translates from the wanted target language to the wanted source language."""
    source, target = codes
    wanted_source, wanted_target = languages
    if not (source and target and wanted_source and wanted_target) or same_language(source, wanted_source):
        return False
    return same_language(source, wanted_target) and same_language(target, wanted_source)


def _segments(unit: Element) -> Iterator[tuple[str, str]]:
    """Yield the source and the target of each segment that has both and is translated."""
    # A unit of XLIFF 1.2 contains the texts itself; one of XLIFF 2 contains segments with the texts.
    segments = unit.findall("segment")
    if unit.tag == "trans-unit":
        segments = [unit]
    for segment in segments:
        source, target = segment.find("source"), segment.find("target")
        if source is None or target is None or _UNTRANSLATED & {segment.get("state"), target.get("state")}:
            continue
        segmented = segment.find("seg-source")
        sources, targets = _marked(source if segmented is None else segmented), _marked(target)
        if sources and sources.keys() == targets.keys():
            for name, text in sources.items():
                yield text, targets[name]
        else:
            yield inline_text(source), inline_text(target)


def _marked(text: Element) -> dict[str | None, str]:
    """Return the segments of a text of XLIFF 1.2, by their ids."""
    return {mark.get("mid"): inline_text(mark) for mark in text.iter("mrk") if mark.get("mtype") == "seg"}
