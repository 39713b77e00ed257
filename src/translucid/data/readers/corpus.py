"""Sentence pairs streamed from .tsv, .jsonl, .tmx, .po, .xliff, .parquet files or Moses pairs `name.{en,de}`.

A corpus may also be a test set of sacreBLEU, `sacrebleu:wmt14/en-de`. The name of a file may end with the languages of
its sides, as in `train.tsv:en-fr`. Lines that are not sentence pairs are optionally skipped, counted, and written to a
file. A Parquet file has columns `source`, `target` and perhaps `document`, or one column `translation` with a text for
each language, as data sets of the Hugging Face hub do.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product, zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias
from zlib import crc32

from bitext.languages import Languages, matching_code, usual_code
from bitext.pair import ALONE, Pair
from bitext.readers.file_kinds import PAIR_ENDINGS, ending_of, is_file, refuse_as_pairs
from bitext.readers.lines import (
    LONGEST_LINE,
    STANDARD_INPUT,
    BadLine,
    OnBad,
    empty_file_error,
    kind_of,
    lines,
    numbered_lines,
    one_line,
    report_bad_line,
)
from translucid.data.readers.test_sets import cached_set, is_test_set, problem_of_test_set
from translucid.ground.atomic import replace
from translucid.ground.errors import UserError, missing_package
from translucid.ground.special import FORMALITY

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile


Direction: TypeAlias = tuple[str, str]
"""The codes of the source and the target language of a translation."""

_CODE = r"[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?(?:[-_](?:[A-Z]{2}|[0-9]{3}))?"
_LANGUAGES = re.compile(f"({_CODE})-({_CODE})")
_MEANT = re.compile(r"([A-Za-z]{2,3}(?:_[A-Za-z0-9]{2,4})?)-?([A-Za-z]{2,3})?(?:[-_][A-Za-z0-9]+)*")
"""Letters after the colon that were meant as languages."""


class CorpusName(NamedTuple):
    """The two parts of a corpus's name."""

    files: str
    """The file, or a Moses pair `name.{en,fr}`."""
    languages: Direction | None
    """The languages of the first and the second side, if the name has them."""

    @classmethod
    def parse(cls, name: str) -> CorpusName:
        r"""Split a name; a colon in the path of a file is not the beginning of languages.

        >>> CorpusName.parse("eng-fra.tsv:en-fr")
        CorpusName(files='eng-fra.tsv', languages=('en', 'fr'))
        >>> CorpusName.parse("sacrebleu:wmt14/en-de")
        CorpusName(files='sacrebleu:wmt14/en-de', languages=('en', 'de'))
        >>> CorpusName.parse("C:\\train.tsv").languages
        """
        if is_test_set(name):
            match = _LANGUAGES.fullmatch(name.rpartition("/")[2])
            return cls(name, (match[1], match[2]) if match else None)
        files, _, languages = name.rpartition(":")
        match = _LANGUAGES.fullmatch(languages)
        # The name of an existing file may end like this, too.
        if files in ("", STANDARD_INPUT) or match is None or is_file(name):
            return cls(name, None)
        return cls(files, (match[1], match[2]))

    @property
    def suffix(self) -> str:
        """The languages as they follow the files: `:en-fr`, or nothing."""
        return f":{label(self.languages)}" if self.languages else ""


def problem_of_languages(name: str) -> tuple[str, str] | None:
    """Return what is wrong with the languages in the name of a corpus, and how to write them; None if nothing is.

    >>> problem_of_languages("train.tsv:EN-ES")
    ("has the languages 'EN-ES', which are no codes", 'Write train.tsv:en-es; codes are such as en, pt-BR and zh-Hans.')
    """
    if is_test_set(name):
        return problem_of_test_set(name)
    corpus = CorpusName.parse(name)
    if corpus.languages is None:
        files, _, written = name.rpartition(":")
        names_corpus = is_file(files) or ending_of(files) in PAIR_ENDINGS or files.endswith("}")
        if files in ("", STANDARD_INPUT) or is_file(name) or not names_corpus or not _MEANT.fullmatch(written):
            return None
        example = _corrected(written) or "en-es"
        return (
            f"has the languages {written!r}, which are no codes",
            f"Write {files}:{example}; codes are such as en, pt-BR and zh-Hans.",
        )
    source, target = corpus.languages
    for code in corpus.languages:
        # Codes of three letters are more than any list has; all of two letters are known.
        if len(code.replace("_", "-").split("-")[0]) == 2 and usual_code(code) is None:
            fix = "Write codes such as en, pt-BR or zh-Hans (ISO 639)."
            return f"has the language {code!r}, which is no code", fix
    if source == target or (usual_code(source) or source) == usual_code(target):
        return f"has the language {source} on both sides", f"Write {corpus.files}:en-es, for instance."
    return None


def refuse_wrong_languages(name: str) -> None:
    """Check that the languages in the name of a corpus are two different language codes.

    Raises:
        UserError: they are not.
    """
    if problem := problem_of_languages(name):
        what, fix = problem
        raise UserError(what, file=name, fix=fix)


def _corrected(written: str) -> str | None:
    """Return two language codes as they are to be written, if they can be read from some letters."""
    parts = written.replace("_", "-").split("-")
    for length in range(1, len(parts)):
        codes = usual_code("-".join(parts[:length])), usual_code("-".join(parts[length:]))
        if codes[0] and codes[1]:
            return f"{codes[0]}-{codes[1]}"
    return None


def label(direction: Direction) -> str:
    """Return the name of a direction, such as `en-fr`."""
    return "-".join(direction)


def without_languages(names: Iterable[str]) -> list[str]:
    """Return names of corpora without languages."""
    return [CorpusName.parse(name).files for name in names]


class BadLines:
    """Counts bad lines, and writes them to a file."""

    def __init__(self) -> None:
        self.count = 0
        """The number of bad lines since `written_to` began."""
        self.validation_lines: list[BadLine] = []
        """Bad lines of the validation files, which are read only once. They are written first and not counted."""
        self._stream: IO[str] | None = None

    def __call__(self, bad: BadLine) -> None:
        """Count a line; within `written_to`, also write it."""
        self.count += 1
        if self._stream:
            self._stream.write(_row(bad))

    @contextmanager
    def written_to(self, file: Path) -> Iterator[None]:
        """In this context, start counting at 0 and write each line as JSON.

        The file is put in place at the end of the context; without bad lines, it is removed.

        Raises:
            UserError: the file can't be written.
        """
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        self.count = 0
        try:
            with temporary.open("x", encoding="utf-8", errors="backslashreplace") as self._stream:
                self._stream.writelines(map(_row, self.validation_lines))
                yield
            if self.count or self.validation_lines:
                replace(temporary, file)
            else:
                file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"can't be written ({error.strerror})", file=file, fix="Make room.") from error
        finally:
            self._stream = None
            temporary.unlink(missing_ok=True)


def _row(bad: BadLine) -> str:
    return json.dumps(bad._asdict(), ensure_ascii=False) + "\n"


_MOSES = re.compile(r"^(?P<head>.*)\{(?P<source>[^{},/]+),(?P<target>[^{},/]+)\}(?P<tail>[^{}/]*)$")
_HEADER = {"source", "target", "document"}
"""The columns of a table with a header; a table without a column `document` needs none."""
_NO_DOCUMENT = object()
_DOCUMENT_BITS = 24
"""The bits of a document's number within its file; the higher bits are a checksum of the file's name."""
_KINDS = (
    f"Use .tsv (source TAB target), .jsonl (source, target), {', '.join(PAIR_ENDINGS[2:])} "
    "or a Moses pair name.{en,de}; each except .parquet also as .gz, .bz2 or .xz."
)


class SyntheticPair(Pair):
    """A pair whose source was written by a model; it is encoded with the tag `Tokenizer.tag`."""

    @classmethod
    def of(cls, pair: Pair) -> SyntheticPair:
        """Return a synthetic pair with the texts of a pair."""
        return cls(*pair).like(pair)


class TargetText(Pair):
    """A text of the target language alone, as a pair with an empty source."""

    @classmethod
    def of(cls, text: str) -> TargetText:
        """Return the pair of a text."""
        return cls("", text)


def sources_of(pairs: Iterable[Pair]) -> list[str]:
    """Return the sources of pairs."""
    return [pair.source for pair in pairs]


def targets_of(pairs: Iterable[Pair]) -> list[str]:
    """Return the targets of pairs."""
    return [pair.target for pair in pairs]


def references_of(pairs: Sequence[Pair]) -> list[list[str]]:
    """Return the sets of references of pairs: their targets, and further ones with "" where a pair has fewer."""
    sets = [targets_of(pairs)]
    for number in range(max((len(pair.references) for pair in pairs), default=0)):
        sets.append([pair.references[number] if number < len(pair.references) else "" for pair in pairs])
    return sets


class PlacedPair(NamedTuple):
    """A pair with its location."""

    file: str
    line: int
    """The first line of the pair, counted from 1."""
    pair: Pair


def sides(file: str | Path) -> list[Path]:
    """Return the files of a corpus: two for a Moses pair or a test set of sacreBLEU, otherwise one.

    Raises:
        UserError: there is no such test set, or it can't be downloaded.
    """
    files = CorpusName.parse(str(file)).files
    if is_test_set(files):
        test_set = cached_set(files)
        return [test_set.source, test_set.references[0]]
    if moses := _MOSES.match(files):
        return [Path(f"{moses['head']}{moses[side]}{moses['tail']}") for side in ("source", "target")]
    return [Path(files)]


class Row(NamedTuple):
    """A pair in a file."""

    line: int
    """The first line of the pair, counted from 1."""
    source: str
    target: str
    document: object = None
    """A value that changes where another document begins."""
    references: tuple[str, ...] = ()
    """Further translations of the source."""
    formality: str | None = None
    """The form of address of the target: `formal` or `informal`."""


def read_pairs(
    *files: str | Path, languages: Languages = (None, None), on_bad: OnBad = None, documents: bool = False
) -> Iterator[Pair]:
    """Yield the sentence pairs of files, including those with an empty side.

    Args:
        files: corpora of any kind. `-` is standard input, .jsonl if its first line is an object, otherwise .tsv.
        languages: source and target, for kinds of files that name the languages of their texts; those in the name of
            a corpus win.
        on_bad: called with each line or unit that is not a pair, which is then skipped.
        documents: whether pairs have the number of their `document`. Another document begins with each file, after a
            line that is blank on both sides, and where the column or key `document` has another value. The units of a
            .tmx file have documents if they have a property `x-document` or a `tuid` such as `document:7`.

    Raises:
        UserError: a file is missing, empty, unreadable or of an unknown kind, or a line is not UTF-8 or not a pair.
    """
    for file in files:
        number = crc32(str(file).encode("utf-8", "surrogatepass")) << _DOCUMENT_BITS
        last_document: object = _NO_DOCUMENT
        for _, source, target, document, references, formality in _rows(str(file), languages, on_bad):
            pair = Pair(source, target)
            if references:
                pair.references = references
            if formality:
                pair.formality = formality
            if documents and document is not ALONE:
                if document != last_document:
                    number += 1
                pair.document = number
            last_document = document
            yield pair


def placed_pairs(*files: str | Path, languages: Languages = (None, None), on_bad: OnBad = None) -> Iterator[PlacedPair]:
    """Yield the pairs of `read_pairs`, each with its location."""
    for name in map(str, files):
        file = CorpusName.parse(name).files
        for line, source, target, *_ in _rows(name, languages, on_bad):
            yield PlacedPair(file, line, Pair(source, target))


def read_lines(file: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, compressed or not. Only a line feed ends a line.

    A carriage return before the line feed is removed, and so is a byte order mark.

    Raises:
        UserError: the file is missing, empty, unreadable, binary, not UTF-8, or has a line of ten million bytes.
    """
    return (line for _, line in numbered_lines(Path(file), None))


def _rows(file: str, languages: Languages, on_bad: OnBad) -> Iterator[Row]:
    """Yield the pairs of a file."""
    refuse_wrong_languages(file)
    if is_test_set(file):
        return _test_set(file, on_bad)
    path, *target_paths = sides(file)
    languages = CorpusName.parse(file).languages or languages
    if target_paths:
        return _moses(path, target_paths[0], on_bad)
    match kind_of(path):
        case ".txt" if file == STANDARD_INPUT:  # standard input without a tab: `_tsv` reports the line
            return _tsv(path, on_bad)
        case ".tsv":
            return _tsv(path, on_bad)
        case ".jsonl":
            return _jsonl(path, on_bad)
        case ".tmx":
            from bitext.readers.tmx import read_tmx

            return (Row(*row) for row in read_tmx(path, languages, on_bad))
        case ".po":
            from bitext.readers.po import read_po

            return (Row(*row) for row in read_po(path, on_bad))
        case ".xliff" | ".xlf":
            from bitext.readers.xliff import read_xliff

            return (Row(*row) for row in read_xliff(path, languages, on_bad))
        case ".parquet":
            return (Row(*row) for row in read_parquet(path, languages, on_bad))
    refuse_as_pairs(str(path))
    raise UserError("is of no kind that can be read as sentence pairs", file=file, fix=_KINDS)


def _tsv(path: Path, on_bad: OnBad) -> Iterator[Row]:
    """Yield the pairs of a table, which may begin with a header that has a column `document`.

    The tables of the Tatoeba challenge have two columns with the languages of the texts before them.
    """
    source, target, document = 0, 1, None
    blank = 0  # the number of blank lines so far
    for number, line in numbered_lines(path, on_bad):
        columns = line.split("\t")
        if number == 1 and len(columns) == 4 and all(map(_is_iso_639_3, columns[:2])):
            source, target = 2, 3
        if number == 1 and not _HEADER.difference(columns):
            source, target, document = map(columns.index, ("source", "target", "document"))
        elif not line.strip():
            blank += 1
            has_both = len(columns) > max(source, target)
            yield Row(number, columns[source] if has_both else "", columns[target] if has_both else "", blank)
        elif len(columns) > max(source, target, document or 0):
            value = "" if document is None else columns[document]
            yield Row(number, columns[source], columns[target], (blank, value))
        else:
            what, fix = "there is one column only", "Each line is source TAB target."
            if document is not None:
                what, fix = "a column is missing", "Each line has the columns that the header names."
            report_bad_line(path, number, what, fix, line, on_bad)


def _is_iso_639_3(text: str) -> bool:
    return re.fullmatch("[a-z]{3}(_[A-Z][a-z]{3})?", text) is not None and usual_code(text) is not None


def _moses(source: Path, target: Path, on_bad: OnBad) -> Iterator[Row]:
    blank = 0  # the number of lines so far that are blank on both sides
    end_mark = "\n"  # no line contains a line feed; None is a bad line
    line_pairs = zip_longest(lines(source, on_bad), lines(target, on_bad), fillvalue=end_mark)
    for number, (source_line, target_line) in enumerate(line_pairs, 1):
        if source_line == end_mark:
            raise _unequal_lengths(target, source, number, on_bad)
        if target_line == end_mark:
            raise _unequal_lengths(source, target, number, on_bad)
        if source_line is not None and target_line is not None:
            if not source_line.strip() and not target_line.strip():
                blank += 1
            yield Row(number, source_line, target_line, blank)


def _test_set(name: str, on_bad: OnBad) -> Iterator[Row]:
    """Yield the pairs of a test set of sacreBLEU, with all references and the documents."""
    files = cached_set(name)
    others = [*files.references[1:], *([files.documents] if files.documents else [])]
    columns = [list(read_lines(file)) for file in others]
    count = sum(1 for _ in lines(files.source, on_bad and (lambda bad: None))) if columns else 0
    for file, column in zip(others, columns, strict=True):
        if len(column) != count:
            what = f"has {len(column):,} lines but {files.source.name} has {count:,}"
            raise UserError(what, file=file, fix="Delete the files of this test set, and run the command again.")
    for row in _moses(files.source, files.references[0], on_bad):
        values = [column[row.line - 1] for column in columns]
        document = values.pop() if files.documents else row.document
        yield row._replace(document=document, references=tuple(values))


def _unequal_lengths(longer: Path, shorter: Path, number: int, on_bad: OnBad) -> UserError:
    """Return the error that the shorter file ends before line `number`."""
    # Bad lines count too, but are not reported a second time.
    count = sum(1 for _ in lines(longer, on_bad and (lambda bad: None)))
    return UserError(
        f"has {count:,} lines but {shorter} has {number - 1:,}",
        file=longer,
        line=number,
        fix="Line n of one must translate line n of the other.",
    )


def _jsonl(path: Path, on_bad: OnBad) -> Iterator[Row]:
    fix = 'Each line is {"source": "...", "target": "..."}.'
    for number, line in numbered_lines(path, on_bad):
        try:
            record = json.loads(line)
            source, target = record["source"], record["target"]
        except (ValueError, RecursionError):  # a number of 5,000 digits is a ValueError too
            report_bad_line(path, number, "not JSON", fix, line, on_bad)
        except (KeyError, TypeError):
            report_bad_line(path, number, "has no source or no target", fix, line, on_bad)
        else:
            document, formality = record.get("document"), record.get("formality")
            if not isinstance(source, str) or not isinstance(target, str):
                report_bad_line(path, number, "source and target must be strings", fix, line, on_bad)
            elif not isinstance(document, str | int | float | None):
                report_bad_line(path, number, "document must be a string or a number", fix, line, on_bad)
            elif formality not in (None, *FORMALITY):
                report_bad_line(path, number, "formality must be formal or informal", fix, line, on_bad)
            else:
                yield Row(number, one_line(source), one_line(target), document, formality=formality)


BATCH = 1024
"""Rows that are decoded at a time."""
TRANSLATION = "translation"


class _Columns(NamedTuple):
    """The names of the columns to read."""

    source: str
    target: str
    document: str | None = None


def read_parquet(path: Path, languages: Languages, on_bad: OnBad) -> Iterator[tuple[int, str, str, object]]:
    """Yield (row from 1, source, target, document) of a Parquet file.

    Args:
        path: the file.
        languages: source and target, which select two texts of the column `translation`; by default its two languages
            in the order of the file.
        on_bad: called with each row without two texts, which is then skipped.

    Raises:
        UserError: the package pyarrow is not installed, the file is unreadable, or it lacks the columns; or a row has
            no two texts, and `on_bad` is None.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise missing_package("reading .parquet", "pyarrow", "parquet") from error
    number = 0
    try:
        with ParquetFile(path) as file:
            columns = _columns(path, file, languages)
            for number, (source, target, document) in enumerate(_parquet_rows(file, columns), 1):
                if isinstance(source, str) and isinstance(target, str) and max(len(source), len(target)) < LONGEST_LINE:
                    yield number, one_line(source), one_line(target), document
                else:
                    what = (
                        f"{columns.source} or {columns.target} is no text, or longer than {LONGEST_LINE:,} characters"
                    )
                    report_bad_line(path, number, what, "Remove the row.", f"{source}\t{target}", on_bad)
    except (OSError, ArrowException) as error:
        what = f"can't be read as Parquet ({str(error).splitlines()[0]})"
        raise UserError(what, file=path, fix="Check the path, or fetch the file again.") from error
    if not number:
        raise empty_file_error(path)


def _parquet_rows(file: ParquetFile, columns: _Columns) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the values of the columns in each row, without decoding the whole file at a time."""
    for batch in file.iter_batches(BATCH, columns=list(filter(None, columns)), use_threads=False):
        sources, targets = _values(batch, columns.source), _values(batch, columns.target)
        documents = _values(batch, columns.document) if columns.document else [None] * len(sources)
        yield from zip(sources, targets, documents, strict=True)


def _values(batch: pyarrow.RecordBatch, column: str) -> list[Any]:
    """Return the values of a column, such as `source` or `translation.en`."""
    name, _, language = column.partition(".")
    values = batch.column(name)
    if language:
        # `StructArray.field` would ignore rows in which the whole struct is null.
        from pyarrow.compute import struct_field

        values = struct_field(values, language)
    return values.to_pylist()


def _columns(path: Path, file: ParquetFile, languages: Languages) -> _Columns:
    """Return the columns to read.

    Raises:
        UserError: the columns are missing, or it is unclear which languages to read.
    """
    from pyarrow import types

    schema = file.schema_arrow
    if {"source", "target"}.issubset(schema.names):
        return _Columns("source", "target", "document" if "document" in schema.names else None)
    if TRANSLATION not in schema.names or not types.is_struct(schema.field(TRANSLATION).type):
        fix = f"It needs columns source and target, or one column {TRANSLATION} with a text for each language."
        raise UserError(f"has the columns {', '.join(schema.names[:20])}", file=path, fix=fix)
    codes = [field.name for field in schema.field(TRANSLATION).type]
    sides = _sides(codes, languages)
    if sides is None:
        fix = "Name two of them after the file, as in FILE.parquet:en-fr."
        raise UserError(f"has translations in {', '.join(codes[:20])}", file=path, fix=fix)
    return _Columns(*(f"{TRANSLATION}.{code}" for code in sides))


def _sides(codes: list[str], languages: Languages) -> tuple[str, str] | None:
    """Return which languages of a file are source and target, or None if that is unclear.

    >>> _sides(["en", "fr"], (None, None)), _sides(["en", "fr"], ("fr-FR", None)), _sides(["en", "fr"], ("de", None))
    (('en', 'fr'), ('fr', 'en'), None)
    """
    source, target = languages
    if source is None and target is None:
        return (codes[0], codes[1]) if len(codes) == 2 else None
    sources = [matching_code(source, codes)] if source else codes
    targets = [matching_code(target, codes)] if target else codes
    candidates = []
    for source_code, target_code in product(sources, targets):
        if source_code and target_code and source_code != target_code:
            candidates.append((source_code, target_code))
    return candidates[0] if len(candidates) == 1 else None
