"""Sentence pairs from files, streamed: .tsv, .jsonl and Moses pairs `name.{en,de}`, gz or not."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from translucid.data.documents import refuse_as_pairs
from translucid.errors import UserError

_MOSES = re.compile(r"^(?P<head>.*)\{(?P<source>[^{},/]+),(?P<target>[^{},/]+)\}(?P<tail>[^{}/]*)$")
LONGEST_LINE = 10_000_000
"""Bytes of a line, at most: a small .gz may unpack to a line that fills the memory."""
_KINDS = "Use .tsv (source TAB target), .jsonl (source, target) or a Moses pair name.{en,de}, each also as .gz."


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


def sides(file: str | Path) -> list[Path]:
    """Return the files of a corpus: two for a Moses pair, else one."""
    if moses := _MOSES.match(str(file)):
        return [Path(f"{moses['head']}{moses[side]}{moses['tail']}") for side in ("source", "target")]
    return [Path(file)]


def read_pairs(*files: str | Path) -> Iterator[Pair]:
    """Yield the sentence pairs of files, one after the other; pairs with an empty side too.

    Raises:
        UserError: a file is missing, empty, unreadable, of an unknown kind, not UTF-8, or a line is not a pair.
    """
    for file in map(str, files):
        if len(both := sides(file)) == 2:
            yield from _moses(*both)
        elif file.removesuffix(".gz").endswith(".tsv"):
            yield from _tsv(Path(file))
        elif file.removesuffix(".gz").endswith(".jsonl"):
            yield from _jsonl(Path(file))
        else:
            refuse_as_pairs(file)
            raise UserError("is of no kind that can be read as sentence pairs", file=file, fix=_KINDS)


def read_lines(file: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, gz or not. They end at a line feed and nowhere else.

    A carriage return before the line feed is dropped, and so is a byte order mark.

    Raises:
        UserError: the file is missing, empty, unreadable, binary, not UTF-8, or has a line of ten million bytes.
    """
    path = Path(file)
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            for number, raw in enumerate(iter(partial(stream.readline, LONGEST_LINE + 1), b""), 1):
                if len(raw) > LONGEST_LINE:
                    fix = "Each sentence stands on a line of its own."
                    raise UserError(f"is longer than {LONGEST_LINE:,} bytes", file=path, line=number, fix=fix)
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                if b"\0" in raw:
                    raise UserError("holds NUL bytes", file=path, line=number, fix="Give a UTF-8 text file.")
                yield raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        fix = "Convert the file, as with iconv -f latin1 -t utf-8."
        raise UserError(f"not UTF-8 ({error.reason})", file=path, line=number, fix=fix) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"is damaged or not gzip ({error})", file=path, fix="Fetch it again.") from error
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=path, fix="Check the path.") from error
    except ValueError as error:  # a zero byte, or half a surrogate
        raise UserError("is no name that a file can have", file=repr(str(path)), fix="Check the path.") from error
    if not number:
        raise UserError("is empty", file=path, fix=_KINDS)


def _tsv(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) < 2:
            if not line.strip():
                yield Pair("", "")
                continue
            fix = "Each line is source TAB target."
            raise UserError("there is one column only", file=path, line=number, fix=fix)
        yield Pair(columns[0], columns[1])


def _moses(source: Path, target: Path) -> Iterator[Pair]:
    ended = object()
    for number, (one, other) in enumerate(zip_longest(read_lines(source), read_lines(target), fillvalue=ended), 1):
        if one is ended or other is ended:
            longer, shorter = (target, source) if one is ended else (source, target)
            rest = sum(1 for _ in read_lines(longer))
            raise UserError(
                f"has {rest:,} lines but {shorter} has {number - 1:,}",
                file=longer,
                line=number,
                fix="Line n of one must translate line n of the other.",
            )
        yield Pair(str(one), str(other))


def _jsonl(path: Path) -> Iterator[Pair]:
    fix = 'Each line is {"source": "...", "target": "..."}.'
    for number, line in enumerate(read_lines(path), 1):
        try:
            record = json.loads(line)
            pair = Pair(record["source"], record["target"])
        except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError too
            raise UserError("not JSON", file=path, line=number, fix=fix) from error
        except (KeyError, TypeError) as error:
            raise UserError("has no source or no target", file=path, line=number, fix=fix) from error
        if not all(isinstance(text, str) for text in pair):
            raise UserError("source and target must be strings", file=path, line=number, fix=fix)
        yield Pair(*map(_one_line, pair))


def _one_line(text: str) -> str:
    """Return a string of JSON as a line of text: without line feeds and half surrogates, both of which JSON can say."""
    return text.replace("\n", " ").encode("utf-8", "replace").decode("utf-8")
