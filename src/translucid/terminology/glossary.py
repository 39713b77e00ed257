"""Glossaries: terms with their translations, and the files that list them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from bitext.languages import Languages, usual_code
from bitext.readers.lines import OnBad, kind_of, lines, report_bad_line
from bitext.words import words_in
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.terminology.tbx import LeftOut

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
    domain: str = ""
    """The subject field in which the source has this translation, such as `law`."""
    example: str = ""
    """A sentence with the source, in the sense that this translation has."""

    @property
    def kept(self) -> bool:
        """Whether the term is not translated."""
        return not self.target or self.target == self.source

    @property
    def inflects(self) -> bool:
        """Whether other forms of the words match too, if there is a dictionary."""
        return not self.kept and self.part_of_speech not in FIXED


class TermRow(NamedTuple):
    """A line of a term list, or an entry of a termbase, before it is checked."""

    line: int
    source: str
    target: str
    attributes: Sequence[str] = ()
    """A part of speech, and `case`, in any order."""
    domain: str = ""
    example: str = ""


class Sense(NamedTuple):
    """The terms of a source that have the same meaning."""

    source: str
    targets: Sequence[str]
    """The translations, any of which may be used; the first one is preferred."""
    part_of_speech: str | None
    case: bool
    domains: Sequence[str]
    examples: Sequence[str]


def senses(terms: Iterable[Term]) -> list[Sense]:
    """Return the senses of terms, in their order, as `sense_groups` finds them."""
    groups = sense_groups(terms, lambda term: (term.source, term.part_of_speech, term.case))
    return list(map(_sense, groups))


def sense_groups(
    terms: Iterable[Term], source_of: Callable[[Term], tuple[object, ...]] = lambda term: ()
) -> list[list[Term]]:
    """Return terms of the same sense together, in their order.

    Terms have the same sense if they have the same target, or the same domain and example: those without either are
    alternatives of each other.

    Args:
        terms: the terms.
        source_of: terms of which this returns different values have different senses.
    """
    listed = list(terms)
    # Sets of terms, as trees whose roots are the first term of each.
    parents = list(range(len(listed)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = index = parents[parents[index]]
        return index

    first_with: dict[tuple[object, ...], int] = {}
    for index, term in enumerate(listed):
        source = source_of(term)
        for key in ((*source, term.target), (*source, term.domain, term.example)):
            early, late = sorted((root(index), root(first_with.setdefault(key, index))))
            parents[late] = early
    groups: dict[int, list[Term]] = {}
    for index, term in enumerate(listed):
        groups.setdefault(root(index), []).append(term)
    return list(groups.values())


def _sense(terms: Sequence[Term]) -> Sense:
    first = terms[0]
    domains = dict.fromkeys(term.domain for term in terms if term.domain)
    examples = dict.fromkeys(term.example for term in terms if term.example)
    targets = dict.fromkeys(term.target or term.source for term in terms)
    return Sense(first.source, [*targets], first.part_of_speech, first.case, [*domains], [*examples])


def in_domain(terms: Sequence[Term], domain: str) -> list[Term]:
    """Return the terms of a subject field, and for sources that have none in it, those without a subject field.

    Raises:
        UserError: no term is of this subject field.
    """
    wanted = domain.casefold()
    fields = [[field.strip() for field in term.domain.split(";")] for term in terms]
    chosen = [wanted in map(str.casefold, names) for names in fields]
    if not any(chosen):
        names = dict.fromkeys(name for listed in fields for name in listed if name)
        fix = f"There are: {', '.join([*names][:10])}." if names else "Add a column named domain."
        raise UserError(f"has no term of the domain {domain!r}", file="terms", fix=fix)
    sources = {term.source for term, is_chosen in zip(terms, chosen, strict=True) if is_chosen}
    kept = []
    for term, is_chosen in zip(terms, chosen, strict=True):
        if is_chosen or not (term.domain or term.source in sources):
            kept.append(term)
    return kept


def read_terms(file: Path, languages: Languages = (None, None)) -> list[Term]:
    """Read a file of terms: source TAB target, and then, in any order, a part of speech and `case`.

    A term without a target, or with the same one, is not translated. Blank lines are skipped, and so is a first row
    that names the columns, such as `source TAB target` or `English TAB Spanish`; it may name the further columns
    `domain` and `example`, too. A .csv may have commas or semicolons instead of tabs, and quotes. A .tbx is a termbase
    (see `terminology.tbx`), for which the languages may be necessary.

    Raises:
        UserError: the file can't be read, holds no terms, or a line is invalid.
    """
    return list(iterate_terms(file, languages))


def iterate_terms(
    file: Path, languages: Languages = (None, None), on_bad: OnBad = None, left_out: LeftOut | None = None
) -> Iterator[Term]:
    """Yield the terms of a file, as `read_terms` does.

    Args:
        file: the file.
        languages: the languages to read from a termbase.
        on_bad: called with each term that is invalid, which is then skipped.
        left_out: counts what is not read of a termbase.

    Raises:
        UserError: the file can't be read or holds no terms; or a line is invalid, and `on_bad` is None.
    """
    rows: Iterable[TermRow]
    if kind_of(file) == ".tbx":
        from translucid.terminology.tbx import read_tbx

        rows = read_tbx(file, languages, on_bad, left_out)
    else:
        content = [line or "" for line in islice(lines(file, None), MOST + 2)]
        rows = _rows(content, file)
    has_terms = False
    for term in _terms(rows, file, on_bad):
        has_terms = True
        yield term
    if not has_terms:
        raise UserError("holds no terms", file=file, fix="Each line is a source, a tab and a target.")


_CONDITIONS = "domain", "example"
_NO_ATTRIBUTES = "accepted", "count", "share", "example translation", "note", "comment", "definition"
"""Names of columns that say nothing about how a term is used."""


def _rows(content: list[str], file: Path) -> Iterator[TermRow]:
    """Yield each line that has fields, except a header."""
    delimiter = _delimiter(file, content)
    columns: list[str] = []
    for number, line in enumerate(content, 1):
        fields = list(map(str.strip, _fields(line, delimiter, file, number)))
        if number == 1 and _is_heading(fields):
            columns = list(map(str.casefold, fields))
        elif any(fields):
            source, target, *others = [*fields, ""][: max(len(fields), 2)]
            attributes: list[str] = []
            named: dict[str, str] = {}
            for index, field in enumerate(others, 2):
                name = columns[index] if index < len(columns) else ""
                if name in _CONDITIONS + _NO_ATTRIBUTES:
                    named[name] = field
                else:
                    attributes.append(field)
            if named.get("accepted", "yes"):
                yield TermRow(number, source, target, attributes, named.get("domain", ""), named.get("example", ""))


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
    rows = []
    for number, entry in enumerate(entries, 1):
        source, target, *attributes = [*map(str.strip, entry), ""]
        rows.append(TermRow(number, source, target, attributes))
    return list(_terms(rows, "terms"))


def fault_of(source: str, target: str) -> tuple[str, str] | None:
    """Return what is wrong with a term and its target, and how to correct it; None if they are valid."""
    if not any(map(str.isalnum, source)):
        return "has no source word", "Give a source, a tab and a target."
    if max(len(words_in(source)), len(words_in(target))) > LONGEST:
        return f"has more than {LONGEST} words", "Terms are shorter."
    if max(len(source), len(target)) > LONGEST_CHARACTERS:
        return f"has more than {LONGEST_CHARACTERS} characters", "Terms are shorter."
    return None


def _terms(rows: Iterable[TermRow], file: object, on_bad: OnBad = None) -> Iterator[Term]:
    for count, row in enumerate(rows, 1):
        if count > MOST:
            raise UserError(f"has more than {MOST:,} terms", file=file, line=row.line, fix="Leave some out.")
        try:
            yield _term(row)
        except _InvalidTerm as error:
            what, fix = error.args
            text = f"{row.source}\t{row.target}"
            report_bad_line(Path(str(file)), row.line, what, fix, text, on_bad)


class _InvalidTerm(Exception):  # noqa: N818  # `_terms` turns it into a `UserError`.
    """What is wrong with a term, and how to correct it."""


def _term(row: TermRow) -> Term:
    """Return the term of a line.

    Raises:
        _InvalidTerm: something is wrong with it.
    """
    if fault := fault_of(row.source, row.target):
        raise _InvalidTerm(*fault)
    part_of_speech, case = None, False
    for word in filter(None, map(str.lower, row.attributes)):
        if word == "case":
            case = True
        elif word in INFLECTED | FIXED:
            part_of_speech = word
        else:
            parts_of_speech = ", ".join(sorted(INFLECTED | FIXED))
            fix = f"Behind source and target there may be `case` and one of {parts_of_speech}."
            raise _InvalidTerm(f"{word!r} is no part of speech", fix)
    return Term(row.source, row.target, part_of_speech, case, row.domain, row.example)


def tsv_text(terms: Iterable[Term], delimiter: str = "\t") -> str:
    """Return a term list with a row that names its columns; read again, it has the same terms."""
    rows = []
    for term in terms:
        fields = term.source, term.target, term.part_of_speech or "", "case" * term.case, term.domain, term.example
        rows.append([" ".join(field.split()) for field in fields])
    names = "source", "target", "part of speech", "case", "domain", "example"
    used = [index for index in range(len(names)) if index < 2 or any(row[index] for row in rows)]
    table = [names, *rows]
    if delimiter == "\t":
        return "".join("\t".join(row[index] for index in used) + "\n" for row in table)
    text = StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(
        [row[index] for index in used] for row in table
    )
    return text.getvalue()
