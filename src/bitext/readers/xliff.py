"""Sentence pairs of .xliff and .xlf files (XLIFF 1.2 and 2.x)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bitext.languages import Languages, same_language
from bitext.readers.lines import OnBad
from bitext.readers.xml_elements import Element, corpus_units, inline_text

NAMESPACES = {
    **{f"urn:oasis:names:tc:xliff:document:{version}": "" for version in ("1.1", "1.2", "2.0", "2.1", "2.2")},
    "urn:oasis:names:tc:xliff:sizerestriction:2.0": "slr",
}
UNITS = {"trans-unit", "unit"}
"""The units of XLIFF 1.2 and of XLIFF 2."""
_UNTRANSLATED = {"initial", "new", "needs-translation"}
"""The states of a target that is not a translation."""


def read_xliff(path: Path, languages: Languages, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, source, target) of each translated segment.

    Args:
        path: the file, gzipped or not.
        languages: source and target; the sides of a file that translates from target to source are exchanged.
        on_bad: called with each unit that can't be read, which is then skipped.

    Raises:
        UserError: the file is unreadable; or a unit is, and `on_bad` is None.
    """
    for unit in corpus_units(path, {"xliff"}, UNITS, NAMESPACES, on_bad):
        if unit.inherited("translate") == "no":
            continue
        is_reversed = _is_reversed(unit, languages)
        for source, target in _segments(unit):
            if not target:
                continue
            if is_reversed:
                yield unit.line, target, source
            else:
                yield unit.line, source, target


def _is_reversed(unit: Element, languages: Languages) -> bool:
    """Whether the file of a unit translates from the requested target language to the requested source language."""
    source = unit.inherited("source-language") or unit.inherited("srcLang")
    target = unit.inherited("target-language") or unit.inherited("trgLang")
    source_language, target_language = languages
    if not (source and target and source_language and target_language) or same_language(source, source_language):
        return False
    return same_language(source, target_language) and same_language(target, source_language)


def segments_of(unit: Element) -> list[Element]:
    """Return the elements with a source and a target: a unit of XLIFF 1.2 itself, or segments in one of XLIFF 2."""
    if unit.name == "trans-unit":
        return [unit]
    return [child for child in unit.children if child.name == "segment"]


def has_translation(segment: Element, target: Element) -> bool:
    """Whether the target of a segment is a translation, and not a copy of the source."""
    return _UNTRANSLATED.isdisjoint({segment.attributes.get("state"), target.attributes.get("state")})


def marked_segments(text: Element) -> Iterator[Element]:
    """Yield the segments (`<mrk mtype="seg">`) of a text of XLIFF 1.2."""
    for child in text.children:
        if child.name == "mrk" and child.attributes.get("mtype") == "seg":
            yield child
        else:
            yield from marked_segments(child)


def _segments(unit: Element) -> Iterator[tuple[str, str]]:
    """Yield the source and the target of each segment that has both and is translated."""
    for segment in segments_of(unit):
        source, target = segment.child("source"), segment.child("target")
        if source is None or target is None or not has_translation(segment, target):
            continue
        sources, targets = _by_id(segment.child("seg-source") or source), _by_id(target)
        if sources and sources.keys() == targets.keys():
            for name, text in sources.items():
                yield text, targets[name]
        else:
            yield inline_text(source), inline_text(target)


def _by_id(text: Element) -> dict[str | None, str]:
    """Return the segments of a text of XLIFF 1.2, by their ids."""
    return {mark.attributes.get("mid"): inline_text(mark) for mark in marked_segments(text)}
