"""Terminology: terms with their translations, and the files that list them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from translucid.data.readers.lines import lines
from translucid.data.words import words_in
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
    are passed over. A .csv may have commas or semicolons instead of tabs, and quotes.

    Raises:
        UserError: the file can't be read, holds no terms, or a line is something else.
    """
    content = [line or "" for line in islice(lines(file, None), MOST + 2)]
    delimiter = _delimiter(file, content)

    def numbered() -> Iterator[tuple[int, list[str]]]:
        for number, line in enumerate(content, 1):
            fields = [field.strip() for field in _fields(line, delimiter, file, number)]
            if any(fields) and not (number == 1 and [field.lower() for field in fields[:2]] == ["source", "target"]):
                yield number, fields

    terms = list(_terms(numbered(), file))
    if not terms:
        raise UserError("holds no terms", file=file, fix="Each line is a source, a tab and a target.")
    return terms


def _delimiter(file: Path, content: list[str]) -> str:
    """Return what parts the fields of a file.

    Raises:
        UserError: it has no tabs, and looks as if something else parted them.
    """
    written = [line for line in content if line.strip()]
    if any("\t" in line for line in written):
        return "\t"
    if file.suffix.lower() == ".csv":
        return ";" if any(";" in line for line in written) else ","
    for delimiter, name in ((";", "a semicolon"), (",", "a comma"), ("|", "a bar"), ("=", "an equals sign")):
        if written and all(delimiter in line for line in written):
            what = f"has no tabs, but {name} in each line: no source would have a target"
            fix = "Put a tab between source and target, or name the file .csv."
            raise UserError(what, file=file, line=1, fix=fix)
    return "\t"


def _fields(line: str, delimiter: str, file: Path, number: int) -> list[str]:
    if delimiter == "\t":
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UserError(f"has a quote out of place ({error})", file=file, line=number) from error


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
