"""Notes of XLIFF: what a document says to translators, and how sure a translation is."""

from __future__ import annotations

from functools import partial

from translucid.documents.document import Target
from translucid.documents.slots import Kept, SlottedXml, Targets
from translucid.documents.xml_inline import escaped
from translucid.documents.xml_spans import Element
from translucid.documents.xml_tags import prefix

_AUTHOR = "translucid"


def notes_of(unit: Element) -> str | None:
    """Return what a unit says to a translator."""
    notes = [note.text.strip() for note in unit.within("note") if not _is_ours(note)]
    return "\n".join(note for note in notes if note) or None


def add_notes(document: SlottedXml, unit: Element, numbers: range) -> None:
    """Let a unit say how sure its translations are, and what looks wrong; what it has said so before goes."""
    ours = [note for note in unit.within("note") if _is_ours(note)]
    group = unit.child("notes")
    write = partial(_written, prefix(document.file.raw(unit.start, unit.inner)), numbers)
    if unit.name == "trans-unit":
        last = unit.child("target") or unit.child("seg-source") or unit.child("source")
        start = end = last.end if last else unit.inner_end
        write = partial(write, f'from="{_AUTHOR}" annotates="target"', "")
    elif group is None or len(ours) == len(group.children):
        names = ("originalData", "segment", "ignorable")
        first = group or next(child for child in unit.children if child.name in names)
        start, end = first.start, first.start if group is None else first.end
        write, ours = partial(write, f'category="{_AUTHOR}"', "notes"), []
    else:
        start = end = group.inner_end
        write = partial(write, f'category="{_AUTHOR}"', "")
    for note in ours:
        document.add_slot(note.start, note.end, numbers, lambda targets, kept: "")
    document.add_slot(start, end, numbers, write)


def _written(prefix: str, numbers: range, attribute: str, group: str, targets: Targets, kept: Kept) -> str:
    """Return our notes, in a group of their own if there is none."""
    notes = ""
    for count, number in enumerate(numbers, 1):
        if number in targets and (text := _said(targets[number])):
            which = f"segment {count}: " if len(numbers) > 1 else ""
            notes += f"<{prefix}note {attribute}>{escaped(which + text)}</{prefix}note>"
    return f"<{prefix}{group}>{notes}</{prefix}{group}>" if group and notes else notes


def _said(target: Target) -> str:
    sure = [] if target.confidence is None else [f"confidence {target.confidence:.2f}"]
    return "; ".join([*sure, *target.doubts])


def _is_ours(note: Element) -> bool:
    return _AUTHOR in (note.attributes.get("from"), note.attributes.get("category"))
