"""Adaptation of a translation to a source that differs only in numbers and placeholders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from translucid.memory.folding import is_number, sign_and_digits, variable_spans


def filled(target: str, changes: Iterable[tuple[str, str]]) -> str | None:
    """Return a target with numbers and placeholders replaced; None if the replacements are not clear.

    They are not if equal numbers of the source get different replacements: the target may have another order.

    >>> filled("Página 3 de 10", [("3", "4"), ("10", "12")])
    'Página 4 de 12'
    >>> filled("Cuesta 1.250,50 euros", [("1,250.50", "3,000.75")])
    'Cuesta 3.000,75 euros'

    Args:
        target: the translation.
        changes: the numbers and placeholders of its source, in order, each with its replacement, which may be equal.
    """
    replacements = defaultdict[str, set[str]](set)
    written: dict[str, str] = {}
    for old, new in changes:
        replacements[_plain(old)].add(new)
        written[_plain(old)] = old
    places = defaultdict[str, list[tuple[str, int]]](list)
    for variable, at in variable_spans(target):
        places[_plain(variable)].append((variable, at))
    edits = []
    for plain, different in replacements.items():
        if different == {written[plain]}:
            continue
        if len(different) > 1 or not places[plain]:
            return None
        (new,) = different
        for variable, at in places[plain]:
            adapted = _written_as(variable, written[plain], new)
            if adapted is None:
                return None
            edits.append((at, variable, adapted))
    for at, variable, adapted in sorted(edits, reverse=True):
        target = target[:at] + adapted + target[at + len(variable) :]
    return target


def _plain(variable: str) -> str:
    """Return a placeholder, or a number as its sign and digits: languages group digits differently."""
    if not is_number(variable):
        return variable
    sign, number = sign_and_digits(variable)
    return sign + "".join(filter(str.isdigit, number))


def _written_as(found: str, old: str, new: str) -> str | None:
    """Return a new number with the separators of the target language.

    Args:
        found: the old number in the target.
        old: the old number in the source.
        new: the new number in the source.

    Returns:
        The new number in the target; None if the old one does not show which separators it needs.
    """
    if not is_number(found):
        return new
    (_, found), (_, old), (sign, new) = map(sign_and_digits, (found, old, new))
    separators: dict[str, str | int | None] = {}
    if len(found) == len(old):  # Else the languages group digits differently.
        separators = {mine: theirs for mine, theirs in zip(old, found, strict=True) if mine in ".,"}
    if any(separator in new and separator not in separators for separator in ".,"):
        return None
    return sign + new.translate(str.maketrans(separators))
