"""Sentence pairs streamed from .tsv, .jsonl, .tmx, .po, .xliff, .parquet files or Moses pairs `name.{en,de}`.

The name of a corpus may end with the languages of its sides, as in `train.tsv:en-fr`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from bitext.languages import Languages
from bitext.pair import Pair
from bitext.readers.bad_line import OnBad
from bitext.readers.file_kinds import PAIR_ENDINGS, refuse_as_pairs
from bitext.readers.lines import kind_of, lines, numbered_lines, one_line, report_bad_line
from bitext.readers.po import read_po
from bitext.readers.standard_input import NAME
from bitext.readers.tmx import ALONE, read_tmx
from bitext.readers.xliff import read_xliff
from translucid.data.readers.corpus_names import CorpusName, refuse_wrong_languages
from translucid.data.readers.parquet import read_parquet
from translucid.ground.errors import UserError

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
        return cls(*pair).of_document(pair.document)


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


class PlacedPair(NamedTuple):
    """A pair with its location."""

    file: str
    line: int
    """The first line of the pair, counted from 1."""
    pair: Pair


def sides(file: str | Path) -> list[Path]:
    """Return the files of a corpus: two for a Moses pair, otherwise one."""
    files = CorpusName.parse(str(file)).files
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
        for _, source, target, document in _rows(str(file), languages, on_bad):
            pair = Pair(source, target)
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
        for line, source, target, _ in _rows(name, languages, on_bad):
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
    path, *target_paths = sides(file)
    languages = CorpusName.parse(file).languages or languages
    if target_paths:
        return _moses(path, target_paths[0], on_bad)
    match kind_of(path):
        case ".txt" if file == NAME:  # standard input without a tab: `_tsv` reports the line
            return _tsv(path, on_bad)
        case ".tsv":
            return _tsv(path, on_bad)
        case ".jsonl":
            return _jsonl(path, on_bad)
        case ".tmx":
            return (Row(*row) for row in read_tmx(path, languages, on_bad))
        case ".po":
            return (Row(*row) for row in read_po(path, on_bad))
        case ".xliff" | ".xlf":
            return (Row(*row) for row in read_xliff(path, languages, on_bad))
        case ".parquet":
            return (Row(*row) for row in read_parquet(path, languages, on_bad))
    refuse_as_pairs(str(path))
    raise UserError("is of no kind that can be read as sentence pairs", file=file, fix=_KINDS)


def _tsv(path: Path, on_bad: OnBad) -> Iterator[Row]:
    """Yield the pairs of a table, which may begin with a header that has a column `document`."""
    source, target, document = 0, 1, None
    blank = 0  # the number of blank lines so far
    for number, line in numbered_lines(path, on_bad):
        columns = line.split("\t")
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
            document = record.get("document")
            if not isinstance(source, str) or not isinstance(target, str):
                report_bad_line(path, number, "source and target must be strings", fix, line, on_bad)
            elif not isinstance(document, str | int | float | None):
                report_bad_line(path, number, "document must be a string or a number", fix, line, on_bad)
            else:
                yield Row(number, one_line(source), one_line(target), document)
