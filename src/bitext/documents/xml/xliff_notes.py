"""XLIFF's notes to translators, the confidence and doubts of our translations, and near matches of a memory.

Near matches are `<alt-trans>` in XLIFF 1.2. In XLIFF 2, they are notes, because its module for matches requires named
spans in the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bitext.documents.document import Target
from bitext.documents.xml.slots import Render, SlottedXml, Targets
from bitext.documents.xml.xml_inline import escaped
from bitext.documents.xml.xml_tags import prefix
from bitext.readers.xml_elements import Element

_AUTHOR = "translucid"


def notes_of(unit: Element) -> str | None:
    """Return the notes of a unit for translators, except ours."""
    notes = (note.text.strip() for note in unit.within("note") if not _is_ours(note))
    return "\n".join(filter(None, notes)) or None


def add_notes(document: SlottedXml, unit: Element, numbers: range) -> None:
    """Add slots for our notes and near matches to a unit; they replace earlier ones of ours.

    Args:
        document: the document.
        unit: the unit.
        numbers: the numbers of its segments.
    """
    our_elements = list(filter(_is_ours, unit.within("note", "alt-trans")))
    name = prefix(document.file.raw(unit.start, unit.inner))
    group = unit.child("notes")
    if unit.name == "trans-unit":  # XLIFF 1.2
        write = partial(_written_1, name, numbers)
        names = ("source", "seg-source", "target")
        start = end = max(child.end for child in unit.children if child.name in names)
    elif group and len(our_elements) != len(group.children):
        write = partial(_written_2, name, numbers)
        start = end = group.inner_end
    else:  # no group, or only with our notes: we write the whole group
        write = partial(_group, name, numbers)
        if group:
            start, end, our_elements = group.start, group.end, []
        else:
            names = ("originalData", "segment", "ignorable")
            start = end = next(child.start for child in unit.children if child.name in names)
    for element in our_elements:
        document.add_slot(element.start, element.end, numbers, "")
    document.add_slot(start, end, numbers, write)


def _group(prefix: str, numbers: range, targets: Targets, render: Render) -> str:
    """Return a group of notes; nothing if there are none."""
    notes = _written_2(prefix, numbers, targets, render)
    return f"<{prefix}notes>{notes}</{prefix}notes>" if notes else ""


def _written_1(prefix: str, numbers: range, targets: Targets, render: Render) -> str:
    """Return notes and near matches for XLIFF 1.2."""
    parts = list[str]()
    for label, target in _labelled(numbers, targets):
        if note := _note(target):
            parts.append(f'<{prefix}note from="{_AUTHOR}" annotates="target">{escaped(label + note)}</{prefix}note>')
        for match in target.matches:
            texts = f"<{prefix}source>{escaped(match.source)}</{prefix}source>"
            texts += f"<{prefix}target>{escaped(match.target)}</{prefix}target>"
            attributes = f'match-quality="{match.percent}%" origin="{_AUTHOR}"'
            parts.append(f"<{prefix}alt-trans {attributes}>{texts}</{prefix}alt-trans>")
    return "".join(parts)


def _written_2(prefix: str, numbers: range, targets: Targets, render: Render) -> str:
    """Return notes for XLIFF 2."""
    parts = list[str]()
    for label, target in _labelled(numbers, targets):
        notes = [f"near match, {match.percent} %: {match.source} → {match.target}" for match in target.matches]
        if note := _note(target):
            notes.insert(0, note)
        for note in notes:
            parts.append(f'<{prefix}note category="{_AUTHOR}">{escaped(label + note)}</{prefix}note>')
    return "".join(parts)


def _labelled(numbers: range, targets: Targets) -> Iterator[tuple[str, Target]]:
    """Yield the translations of a unit, each with a label if there are several segments."""
    for position, number in enumerate(numbers, 1):
        if number in targets:
            yield f"segment {position}: " if len(numbers) > 1 else "", targets[number]


def _note(target: Target) -> str:
    """Return the confidence and the doubts of a translation."""
    remarks = list(target.doubts)
    if target.confidence is not None:
        remarks.insert(0, f"confidence {target.confidence:.2f}")
    return "; ".join(remarks)


def _is_ours(note: Element) -> bool:
    return _AUTHOR in map(note.attributes.get, ("from", "category", "origin"))
