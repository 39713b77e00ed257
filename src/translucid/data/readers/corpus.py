"""Sentence pairs from files, streamed: .tsv, .jsonl, Moses pairs `name.{en,de}`, .tmx, .po, .xliff, gz or not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from translucid.data.languages import Languages
from translucid.data.readers.bad_lines import OnBad
from translucid.data.readers.file_kinds import PAIR_ENDINGS, refuse_as_pairs
from translucid.data.readers.lines import kind_of, lines, one_line, tell_bad
from translucid.data.readers.po import read_po
from translucid.data.readers.standard_input import NAME
from translucid.data.readers.tmx import read_tmx
from translucid.data.readers.xliff import read_xliff
from translucid.ground.errors import UserError

_MOSES = re.compile(r"^(?P<head>.*)\{(?P<source>[^{},/]+),(?P<target>[^{},/]+)\}(?P<tail>[^{}/]*)$")
_KINDS = (
    f"Use .tsv (source TAB target), .jsonl (source, target), {', '.join(PAIR_ENDINGS[2:])} "
    "or a Moses pair name.{en,de}, each also as .gz."
)


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str

    @property
    def swapped(self) -> Pair:
        """The same, read the other way round."""
        return Pair(self.target, self.source)


class SyntheticPair(Pair):
    """A pair whose source a model wrote: it is encoded with a tag, see `Tokenizer.tag`."""

    __slots__ = ()


class TargetText(Pair):
    """A text of the target language alone: a pair with an empty source."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> TargetText:
        """Return the pair of a text."""
        return cls("", text)


class PlacedPair(NamedTuple):
    """A pair, and where it stands."""

    file: str
    line: int
    """Counted from 1; of a unit of several lines, the first one."""
    pair: Pair


def sides(file: str | Path) -> list[Path]:
    """Return the files of a corpus: two for a Moses pair, else one."""
    if moses := _MOSES.match(str(file)):
        return [Path(f"{moses['head']}{moses[side]}{moses['tail']}") for side in ("source", "target")]
    return [Path(file)]


def read_pairs(*files: str | Path, languages: Languages = (None, None), on_bad: OnBad = None) -> Iterator[Pair]:
    """Yield the sentence pairs of files, one after the other; pairs with an empty side too.

    Args:
        files: of any kind that holds pairs; `-` is standard input, .jsonl if its first line is an object, else .tsv.
        languages: source and target, for files that say in which languages their texts are.
        on_bad: is told of what is no pair.

    Raises:
        UserError: a file is missing, empty, unreadable or of an unknown kind, or a line is not UTF-8 or not a pair.
    """
    for file in map(str, files):
        yield from (Pair(source, target) for _, source, target in _numbered(file, languages, on_bad))


def placed_pairs(*files: str | Path, languages: Languages = (None, None), on_bad: OnBad = None) -> Iterator[PlacedPair]:
    """Yield the same pairs, each with its place."""
    for file in map(str, files):
        yield from (PlacedPair(file, line, Pair(*both)) for line, *both in _numbered(file, languages, on_bad))


def read_lines(file: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, gz or not. They end at a line feed and nowhere else.

    A carriage return before the line feed is dropped, and so is a byte order mark.

    Raises:
        UserError: the file is missing, empty, unreadable, binary, not UTF-8, or has a line of ten million bytes.
    """
    return (line for line in lines(Path(file), None) if line is not None)


def _numbered(file: str, languages: Languages, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, source, target)."""
    if len(both := sides(file)) == 2:
        return _moses(both[0], both[1], on_bad)
    path = Path(file)
    match kind_of(path):
        case ".txt" if file == NAME:  # a line without a tab: the reader reports its number
            return _tsv(path, on_bad)
        case ".tsv":
            return _tsv(path, on_bad)
        case ".jsonl":
            return _jsonl(path, on_bad)
        case ".tmx":
            return read_tmx(path, languages, on_bad)
        case ".po":
            return read_po(path, on_bad)
        case ".xliff" | ".xlf":
            return read_xliff(path, languages, on_bad)
    refuse_as_pairs(file)
    raise UserError("is of no kind that can be read as sentence pairs", file=file, fix=_KINDS)


def _tsv(path: Path, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines(path, on_bad), 1):
        if line is None:
            continue
        columns = line.split("\t")
        if len(columns) > 1:
            yield number, columns[0], columns[1]
        elif not line.strip():
            yield number, "", ""
        else:
            tell_bad(path, number, "there is one column only", "Each line is source TAB target.", line, on_bad)


def _moses(source: Path, target: Path, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    ended = object()
    both = zip_longest(lines(source, on_bad), lines(target, on_bad), fillvalue=ended)
    for number, (one, other) in enumerate(both, 1):
        if one is ended or other is ended:
            longer, shorter = (target, source) if one is ended else (source, target)
            rest = sum(1 for _ in lines(longer, on_bad and (lambda bad: None)))
            raise UserError(
                f"has {rest:,} lines but {shorter} has {number - 1:,}",
                file=longer,
                line=number,
                fix="Line n of one must translate line n of the other.",
            )
        if one is not None and other is not None:
            yield number, str(one), str(other)


def _jsonl(path: Path, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    fix = 'Each line is {"source": "...", "target": "..."}.'
    for number, line in enumerate(lines(path, on_bad), 1):
        if line is None:
            continue
        try:
            record = json.loads(line)
            pair = record["source"], record["target"]
        except (ValueError, RecursionError):  # a number of 5,000 digits is a ValueError too
            tell_bad(path, number, "not JSON", fix, line, on_bad)
        except (KeyError, TypeError):
            tell_bad(path, number, "has no source or no target", fix, line, on_bad)
        else:
            if all(isinstance(text, str) for text in pair):
                yield number, one_line(pair[0]), one_line(pair[1])
            else:
                tell_bad(path, number, "source and target must be strings", fix, line, on_bad)
