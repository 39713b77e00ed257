"""Glossaries: terms with their translations, and the files that list them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from bitext.languages import usual_code
from bitext.readers.lines import lines
from bitext.words import words_in
from translucid.ground.errors import UserError

TermsMode: TypeAlias = Literal["auto", "annotate", "constrain"]
"""Annotate terms for a model that was trained with annotations, constrain the search, or annotate first and then
constrain where a term is still missing."""
MOST = 1_000_000
"""The largest number of terms of a file."""
LONGEST = 32
"""The largest number of words of a term."""
LONGEST_CHARACTERS = 500
"""The largest number of characters of a term."""
_WORDS_OF_HEADINGS = frozenset({"source", "target", "term", "translation", "language", "text", "phrase", "word"})
_HEADING = re.compile(r"\([^()]*\)|[_.:]")
_LARGE = "en es fr de it pt nl pl ru uk cs sv da nb fi el tr ar he fa hi bn zh ja ko vi id ro hu bg ca"
INFLECTED = frozenset({"noun", "verb", "adjective"})
FIXED = frozenset({"name", "phrase", "adverb", "other"})
"""The parts of speech whose words have one form."""


@dataclass(frozen=True)
class Term:
    """A word or a phrase and its translation."""

    source: str
    target: str
    """The translation; empty for a term that is not translated."""
    part_of_speech: str | None = None
    """One of `INFLECTED` or `FIXED`, if known."""
    case: bool = False
    """Whether capitals matter."""

    @property
    def kept(self) -> bool:
        """Whether the term is not translated."""
        return not self.target or self.target == self.source

    @property
    def inflects(self) -> bool:
        """Whether other forms of the words match too, if there is a dictionary."""
        return not self.kept and self.part_of_speech not in FIXED


def read_terms(file: Path) -> list[Term]:
    """Read a file of terms: source TAB target, and then, in any order, a part of speech and `case`.

    A term without a target, or with the same one, is not translated. Blank lines are skipped, and so is a first row
    that names the columns, such as `source TAB target` or `English TAB Spanish`. A .csv may have commas or semicolons
    instead of tabs, and quotes.

    Raises:
        UserError: the file can't be read, holds no terms, or a line is invalid.
    """
    content = [line or "" for line in islice(lines(file, None), MOST + 2)]
    terms = list(_terms(_numbered(content, file), file))
    if not terms:
        raise UserError("holds no terms", file=file, fix="Each line is a source, a tab and a target.")
    return terms


def _numbered(content: list[str], file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each line that has any, except a header, with the number of the line."""
    delimiter = _delimiter(file, content)
    for number, line in enumerate(content, 1):
        fields = list(map(str.strip, _fields(line, delimiter, file, number)))
        if any(fields) and not (number == 1 and _is_heading(fields)):
            yield number, fields


def _is_heading(fields: Sequence[str]) -> bool:
    """Whether a row names its columns: by two languages, their codes, or words such as `source` and `target`."""
    names = [_column_name(field.casefold()) for field in fields[:2]]
    return len(names) == 2 and None not in names and names[0] != names[1]


def _column_name(field: str) -> str | None:
    """Return the language that a field of a heading names, or the field if it has none; None for a term."""
    words = _HEADING.sub(" ", field).split()
    language = " ".join(word for word in words if word not in _WORDS_OF_HEADINGS)
    if not language:
        return field or None
    if language in _language_codes():
        return _language_codes()[language]
    # Many other short words are codes: `car` is Carib, `is` Icelandic.
    return usual_code(field) if re.search("[-_]", field) else None


@cache
def _language_codes() -> dict[str, str]:
    """Return the codes of languages by their English names, and those of large languages by code and own name too."""
    from babel import Locale

    codes = {name.casefold(): code for code, name in Locale("en").languages.items()}
    for code in _LARGE.split():
        codes[code] = code
        codes[str(Locale(code).languages.get(code, code)).casefold()] = code
    return codes


def _delimiter(file: Path, content: list[str]) -> str:
    """Return the delimiter of the fields of a file.

    Raises:
        UserError: the file has no tabs, and each line has another character that could be the delimiter.
    """
    filled_lines = list(filter(str.strip, content))
    text = "".join(filled_lines)
    if "\t" in text:
        return "\t"
    if file.suffix.lower() == ".csv":
        return ";" if ";" in text else ","
    for delimiter, name in ((";", "a semicolon"), (",", "a comma"), ("|", "a bar"), ("=", "an equals sign")):
        if filled_lines and all(delimiter in line for line in filled_lines):
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
    """Return the terms of entries (source, target, ...), whose fields are those of the lines of a file.

    Raises:
        UserError: an entry is invalid.
    """
    fields = (list(map(str.strip, entry)) for entry in entries)
    return list(_terms(enumerate(fields, 1), "terms"))


def fault_of(source: str, target: str) -> tuple[str, str] | None:
    """Return what is wrong with a term and its target, and how to correct it; None if they are valid."""
    if not any(map(str.isalnum, source)):
        return "has no source word", "Give a source, a tab and a target."
    if max(len(words_in(source)), len(words_in(target))) > LONGEST:
        return f"has more than {LONGEST} words", "Terms are shorter."
    if max(len(source), len(target)) > LONGEST_CHARACTERS:
        return f"has more than {LONGEST_CHARACTERS} characters", "Terms are shorter."
    return None


def _terms(numbered: Iterable[tuple[int, list[str]]], file: object) -> Iterator[Term]:
    for count, (number, (source, *fields)) in enumerate(numbered, 1):
        target, *attributes = fields or [""]
        if count > MOST:
            raise UserError(f"has more than {MOST:,} terms", file=file, line=number, fix="Leave some out.")
        if fault := fault_of(source, target):
            what, fix = fault
            raise UserError(what, file=file, line=number, fix=fix)
        part_of_speech, case = None, False
        for word in filter(None, map(str.lower, attributes)):
            if word == "case":
                case = True
            elif word in INFLECTED | FIXED:
                part_of_speech = word
            else:
                parts_of_speech = ", ".join(sorted(INFLECTED | FIXED))
                fix = f"Behind source and target there may be `case` and one of {parts_of_speech}."
                raise UserError(f"{word!r} is no part of speech", file=file, line=number, fix=fix)
        yield Term(source, target, part_of_speech, case)
