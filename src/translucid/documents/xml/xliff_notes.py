"""What XLIFF says beside a translation: notes to translators, how sure it is, and near matches of a memory.

Near matches are `<alt-trans>` in XLIFF 1.2, and notes in XLIFF 2, whose module for them wants spans with names.
"""

from __future__ import annotations

from functools import partial

from translucid.documents.document import NearMatch, Target
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_inline import escaped
from translucid.documents.xml.xml_spans import Element
from translucid.documents.xml.xml_tags import prefix

_AUTHOR = "translucid"


def notes_of(unit: Element) -> str | None:
    """Return what a unit says to a translator."""
    notes = [note.text.strip() for note in unit.within("note") if not _is_ours(note)]
    return "\n".join(note for note in notes if note) or None


def add_notes(document: SlottedXml, unit: Element, numbers: range) -> None:
    """Let a unit say how sure its translations are, what looks wrong and what is like it; what it said before goes."""
    ours = [one for one in unit.within("note", "alt-trans") if _is_ours(one)]
    group, old = unit.child("notes"), unit.name == "trans-unit"
    name, whole = prefix(document.file.raw(unit.start, unit.inner)), False
    if old:
        last = unit.child("target") or unit.child("seg-source") or unit.child("source")
        start = end = last.end if last else unit.inner_end
    elif group is None or len(ours) == len(group.children):
        names = ("originalData", "segment", "ignorable")
        first = group or next(child for child in unit.children if child.name in names)
        start, end = first.start, first.start if group is None else first.end
        ours, whole = [], True
    else:
        start = end = group.inner_end
    for one in ours:
        document.add_slot(one.start, one.end, numbers, lambda targets, kept: "")
    write = partial(_group if whole else _written, name, numbers, old)
    document.add_slot(start, end, numbers, write)


def _group(prefix: str, numbers: range, old: bool, targets: Targets, kept: Kept) -> str:
    """Return our notes in a group of their own; of none, nothing."""
    notes = _written(prefix, numbers, old, targets, kept)
    return f"<{prefix}notes>{notes}</{prefix}notes>" if notes else ""


def _written(prefix: str, numbers: range, old: bool, targets: Targets, kept: Kept) -> str:
    """Return our notes, and near matches; `old`: as in XLIFF 1.2."""
    parts = list[str]()
    for count, number in enumerate(numbers, 1):
        if number not in targets:
            continue
        said, matches = _said(targets[number]), targets[number].matches
        texts = [said] if said else []
        if not old:
            texts += [f"near match, {one.percent} %: {one.source} → {one.target}" for one in matches]
        which = f"segment {count}: " if len(numbers) > 1 else ""
        by = f'from="{_AUTHOR}" annotates="target"' if old else f'category="{_AUTHOR}"'
        parts += [f"<{prefix}note {by}>{escaped(which + text)}</{prefix}note>" for text in texts]
        parts += [_alternative(prefix, one) for one in matches if old]
    return "".join(parts)


def _alternative(prefix: str, match: NearMatch) -> str:
    """Return a near match as XLIFF 1.2 has it."""
    texts = f"<{prefix}source>{escaped(match.source)}</{prefix}source>"
    texts += f"<{prefix}target>{escaped(match.target)}</{prefix}target>"
    return f'<{prefix}alt-trans match-quality="{match.percent}%" origin="{_AUTHOR}">{texts}</{prefix}alt-trans>'


def _said(target: Target) -> str:
    sure = [] if target.confidence is None else [f"confidence {target.confidence:.2f}"]
    return "; ".join([*sure, *target.doubts])


def _is_ours(note: Element) -> bool:
    return _AUTHOR in map(note.attributes.get, ("from", "category", "origin"))
