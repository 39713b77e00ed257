"""Terms, and the files that list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from translucid.data.lines import lines
from translucid.data.terms.words import words_in
from translucid.ground.errors import UserError

MOST = 1_000_000
"""Terms of a file, at most."""
LONGEST = 32
"""Words of a term, at most."""
INFLECTED = frozenset({"noun", "verb", "adjective"})
FIXED = frozenset({"name", "phrase", "adverb", "other"})
"""Parts of speech whose words have one form."""


@dataclass(frozen=True)
class Term:
    """How a word or a phrase is to be translated."""

    source: str
    target: str
    """What stands in the translation; empty for what is not translated."""
    part_of_speech: str | None = None
    """One of `INFLECTED` or `FIXED`, if known."""
    case: bool = False
    """Whether capitals matter."""

    @property
    def kept(self) -> bool:
        """Whether it stays as it stands in the source."""
        return not self.target or self.target == self.source

    @property
    def inflects(self) -> bool:
        """Whether other forms of its words are this term too, where forms are told at all."""
        return not self.kept and self.part_of_speech not in FIXED


def read_terms(file: Path) -> list[Term]:
    """Read a file of terms: source TAB target, and then, in any order, a part of speech and `case`.

    A line without a target, or with the same one, is not translated. Blank lines, and a first one `source TAB target`,
    are passed over.

    Raises:
        UserError: the file can't be read, holds no terms, or a line is something else.
    """

    def numbered() -> Iterator[tuple[int, list[str]]]:
        for number, line in enumerate(lines(file, None), 1):
            fields = [field.strip() for field in (line or "").split("\t")]
            if any(fields) and not (number == 1 and [field.lower() for field in fields[:2]] == ["source", "target"]):
                yield number, fields

    terms = list(_terms(numbered(), file))
    if not terms:
        raise UserError("holds no terms", file=file, fix="Each line is a source, a tab and a target.")
    return terms


def terms_of(entries: Iterable[Iterable[str]]) -> list[Term]:
    """Return terms that are given as (source, target, ...), with fields as in the lines of a file.

    Raises:
        UserError: one is something else.
    """
    fields = ([field.strip() for field in entry] for entry in entries)
    return list(_terms(((number, each) for number, each in enumerate(fields, 1)), "terms"))


def _terms(numbered: Iterable[tuple[int, list[str]]], file: object) -> Iterator[Term]:
    for count, (number, (source, *rest)) in enumerate(numbered, 1):
        target, *about = rest or [""]
        if count > MOST:
            raise UserError(f"has more than {MOST:,} terms", file=file, line=number, fix="Leave some out.")
        if not any(character.isalnum() for character in source):
            raise UserError("has no source word", file=file, line=number, fix="Give a source, a tab and a target.")
        if max(len(words_in(source)), len(words_in(target))) > LONGEST:
            raise UserError(f"has more than {LONGEST} words", file=file, line=number, fix="Terms are shorter.")
        fields: dict[str, Any] = {}
        for word in filter(None, (field.lower() for field in about)):
            if word == "case":
                fields["case"] = True
            elif word in INFLECTED | FIXED:
                fields["part_of_speech"] = word
            else:
                known = ", ".join(sorted(INFLECTED | FIXED))
                fix = f"Behind source and target there may be `case` and one of {known}."
                raise UserError(f"{word!r} is no part of speech", file=file, line=number, fix=fix)
        yield Term(source, target, **fields)
