"""The translation of another text made that of this one, where numbers and placeholders are all that differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from translucid.memory.folding import is_number, sign_and_digits, variable_spans


def filled(target: str, changes: Iterable[tuple[str, str]]) -> str | None:
    """Return a target with numbers and placeholders replaced; None if it is not plain which.

    What stands in the source twice and becomes two different things is not replaced: the target may have another order.

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
        if len(set(news)) > 1 or not there:
            return None
        for found, at in there:
            if (as_there := _written_as(found, written[old], news[0])) is None:
                return None
            edits.append((at, found, as_there))
    for at, found, new in sorted(edits, reverse=True):
        target = target[:at] + new + target[at + len(found) :]
    return target


def _plain(variable: str) -> str:
    """Return what a number or placeholder is told by: a number by its sign and digits, which others group otherwise."""
    if not is_number(variable):
        return variable
    sign, number = sign_and_digits(variable)
    return sign + "".join(filter(str.isdigit, number))


def _written_as(found: str, old: str, new: str) -> str | None:
    """Return a new number with the separators of the language in which the old one was found; None if not known."""
    if not is_number(found):
        return new
    (_, found), (_, old), (sign, new) = map(sign_and_digits, (found, old, new))
    if len(found) == len(old):
        separators = {mine: theirs for mine, theirs in zip(old, found, strict=True) if mine in ".,"}
    else:  # the two languages group digits differently
        separators = {}
    if any(character in ".," and character not in separators for character in new):
        return None
    return sign + "".join(separators.get(character, character) for character in new)
