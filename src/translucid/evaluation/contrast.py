"""Contrastive evaluation: whether a model prefers the right translation of a sentence to one that is wrong in context.

The sentence alone does not decide which is right; a word of an earlier sentence does, the antecedent (Bawden et al.
2018, N18-1118). `translucid data phrasebook --discourse` writes such sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, NonNegativeInt, ValidationError
from rich.table import Table

from bitext.pair import Pair
from translucid.data.document_context import preceding
from translucid.data.readers.corpus import read_lines, read_pairs
from translucid.ground.console import table_of
from translucid.ground.errors import UserError

TOP = 2
"""The number of context words among which the antecedent should be."""
_FIX = "Each line has source, target and document; contrast and antecedent, if a context decides."


class Contrast(NamedTuple):
    """A pair with a second translation, which is wrong after the pairs before it."""

    number: int
    """The number of the pair in the file, counted from 0."""
    contrast: str
    """The wrong translation."""
    phenomenon: str
    antecedent: tuple[tuple[int, int], ...]
    """The words that decide: (sentence of the document, word), counted from 0; may be empty."""
    distance: int | None
    """The number of sentences from the last antecedent to the pair; None without an antecedent."""


class Preference(NamedTuple):
    """What a model prefers for a contrast."""

    contrast: Contrast
    alone: bool
    """Whether the right translation is more probable than the wrong one, without context."""
    in_context: bool | None = None
    """The same with context; None if the model has none."""
    antecedent_found: bool | None = None
    """Whether the antecedent is among the words of the context that contribute most; None if not computed."""


class ContrastRow(NamedTuple):
    """The shares of right preferences, from 0 to 1."""

    name: str
    sentences: int
    alone: float
    in_context: float | None
    antecedent_found: float | None


class _Record(BaseModel):
    contrast: str | None = None
    phenomenon: str = "unnamed"
    antecedent: tuple[tuple[NonNegativeInt, NonNegativeInt], ...] = ()


def read_contrasts(file: str | Path) -> tuple[list[Pair], list[Contrast]]:
    """Read a .jsonl file: all pairs with their documents, and the contrasts of some of them.

    A record has `source`, `target` and `document`. Some also have `contrast`, and may have `phenomenon` and
    `antecedent`, a list of [sentence of the document, word], counted from 0; white space separates words.

    Raises:
        UserError: the file can't be read, a line has another format, an antecedent is not before its sentence, or there
            are no contrasts.
    """
    pairs = list(read_pairs(file, documents=True))
    positions = preceding(pair.document for pair in pairs)
    contrasts = []
    for number, line in enumerate(read_lines(file)):
        try:
            record = _Record.model_validate_json(line)
        except ValidationError as error:
            first_error = error.errors(include_url=False)[0]
            what = f"is no record of a contrast ({'.'.join(map(str, first_error['loc']))}: {first_error['msg']})"
            raise UserError(what, file=file, line=number + 1, fix=_FIX) from error
        if record.contrast is None:
            continue
        if record.contrast == pairs[number].target:
            fix = "The contrast is a wrong translation."
            raise UserError("the contrast is the target", file=file, line=number + 1, fix=fix)
        position, distance = positions[number], None
        for sentence, word in record.antecedent:
            if sentence >= position or word >= len(pairs[number - position + sentence].source.split()):
                what = f"the antecedent [{sentence}, {word}] is no word of an earlier sentence of the document"
                raise UserError(what, file=file, line=number + 1, fix="Count sentences and words from 0.")
            distance = position - sentence
        contrasts.append(Contrast(number, record.contrast, record.phenomenon, record.antecedent, distance))
    if not contrasts:
        fix = "Write a file with `generate_passages`."
        raise UserError("has no contrasts", file=file, fix=fix)
    return pairs, contrasts


def is_among_top(contributions: Sequence[float], antecedent: AbstractSet[int], count: int = TOP) -> bool:
    """Return whether a word of the antecedent is among the words of the context that contribute most.

    Args:
        contributions: the contribution of each word of the context to the target word in which the right and the wrong
            translation first differ. Of equal ones, the earlier word comes first.
        antecedent: the positions of the antecedent's words.
        count: the number of words that contribute most.
    """
    ranked = sorted(range(len(contributions)), key=lambda word: -contributions[word])
    return not antecedent.isdisjoint(ranked[:count])


def first_difference(right: Sequence[int], wrong: Sequence[int]) -> int | None:
    """Return the first position at which the tokens of two translations differ; None if they do not.

    >>> first_difference([5, 6, 2], [5, 7, 8, 2])
    1
    """
    token_pairs = enumerate(zip(right, wrong, strict=False))  # both end with an end token, so neither begins the other
    return next((position for position, (token, other) in token_pairs if token != other), None)


def contrast_rows(preferences: Sequence[Preference]) -> list[ContrastRow]:
    """Return the shares for all contrasts, for each phenomenon, and for each distance of the antecedent."""
    groups: dict[str, list[Preference]] = {"all": list(preferences)}
    for phenomenon in sorted({preference.contrast.phenomenon for preference in preferences}):
        groups[phenomenon] = [item for item in preferences if item.contrast.phenomenon == phenomenon]
    for distance in sorted({item.contrast.distance for item in preferences if item.contrast.distance}):
        sentences = "sentence" if distance == 1 else "sentences"
        name = f"{distance} {sentences} before"
        groups[name] = [item for item in preferences if item.contrast.distance == distance]
    rows = []
    for name, group in groups.items():
        in_context = _share(item.in_context for item in group)
        antecedent_found = _share(item.antecedent_found for item in group)
        alone = sum(item.alone for item in group) / len(group)
        rows.append(ContrastRow(name, len(group), alone, in_context, antecedent_found))
    return rows


def _share(values: Iterable[bool | None]) -> float | None:
    """Return the share of true values among those that are not None; None if there are none."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None


def contrast_table(rows: Sequence[ContrastRow]) -> Table:
    """Return the shares as a table for the terminal."""
    table = table_of("", figures=("sentences", "without context", "with context", "antecedent found"))
    for row in rows:
        shares = []
        for share in (row.alone, row.in_context, row.antecedent_found):
            shares.append("-" if share is None else f"{100 * share:.1f} %")
        table.add_row(row.name, f"{row.sentences:,}", *shares)
    return table
