"""Sentence pairs of Parquet files, as many data sets of the Hugging Face hub are stored; read in batches of rows.

The columns are `source`, `target` and perhaps `document`, or there is one column `translation` with a text for each
language, such as `translation.en` and `translation.fr`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bitext.languages import Languages
from bitext.readers.bad_line import OnBad
from bitext.readers.lines import LONGEST_LINE, empty_file_error, one_line, report_bad_line
from bitext.readers.tmx import matching_code
from translucid.ground.errors import UserError, missing_package

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

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
            for number, (source, target, document) in enumerate(_rows(file, columns), 1):
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


def _rows(file: ParquetFile, columns: _Columns) -> Iterator[tuple[Any, Any, Any]]:
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
