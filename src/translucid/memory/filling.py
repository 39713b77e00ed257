"""The translation of another text made that of this one, where numbers and placeholders are all that differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from translucid.memory.folding import variable_spans


def filled(target: str, changes: Iterable[tuple[str, str]]) -> str | None:
    """Return a target with numbers and placeholders replaced; None if it is not plain which.

    >>> filled("Página 3 de 10", [("3", "4"), ("10", "12")])
    'Página 4 de 12'
    >>> filled("Cuesta 1.250,50 euros", [("1,250.50", "3,000.75")])
    'Cuesta 3.000,75 euros'

    Args:
        target: the translation that is there.
        changes: what stands in its source, in order, and what stands there instead; the same if it does not change.
    """
    wanted = defaultdict[str, list[str]](list)
    written: dict[str, str] = {}
    for old, new in changes:
        wanted[_plain(old)].append(new)
        written[_plain(old)] = old
    if all(set(new) == {written[old]} for old, new in wanted.items()):
        return target
    places = defaultdict[str, list[tuple[str, int]]](list)
    for found, at in variable_spans(target):
        places[_plain(found)].append((found, at))
    edits = []
    for old, news in wanted.items():
        there = places[old]
        if set(news) == {written[old]}:
            continue
        if len(set(news)) == 1 and there:
            news = news * len(there)
        elif len(news) != len(there):
            return None
        for (found, at), new in zip(there, news, strict=False):
            if (as_there := _written_as(found, written[old], new)) is None:
                return None
            edits.append((at, found, as_there))
    for at, found, new in sorted(edits, reverse=True):
        target = target[:at] + new + target[at + len(found) :]
    return target


def _plain(variable: str) -> str:
    """Return what a number or placeholder is told by: a number by its digits, which others group otherwise."""
    return "".join(filter(str.isdigit, variable)) if variable[0].isdigit() else variable


def _written_as(found: str, old: str, new: str) -> str | None:
    """Return a new number with the separators of the language in which the old one was found; None if not known."""
    if found == old:
        return new
    if len(found) != len(old):
        return None if set(new) & set(".,") else new
    turned = dict(zip(old, found, strict=True))
    if any(sign in ".," and sign not in turned for sign in new):
        return None
    return "".join(turned[sign] if sign in ".," else sign for sign in new)
