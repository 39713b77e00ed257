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

from translucid.data.bad_lines import BadLine, OnBad
from translucid.data.file_kinds import refuse_as_pairs
from translucid.ground.errors import UserError

_MOSES = re.compile(r"^(?P<head>.*)\{(?P<source>[^{},/]+),(?P<target>[^{},/]+)\}(?P<tail>[^{}/]*)$")
LONGEST_LINE = 10_000_000
"""Bytes of a line, at most: a small .gz may unpack to a line that fills the memory."""
SHOWN = 500
"""Bytes of a bad line that are kept."""
_KINDS = "Use .tsv (source TAB target), .jsonl (source, target) or a Moses pair name.{en,de}, each also as .gz."


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


def sides(file: str | Path) -> list[Path]:
    """Return the files of a corpus: two for a Moses pair, else one."""
    if moses := _MOSES.match(str(file)):
        return [Path(f"{moses['head']}{moses[side]}{moses['tail']}") for side in ("source", "target")]
    return [Path(file)]


def read_pairs(*files: str | Path, on_bad: OnBad = None) -> Iterator[Pair]:
    """Yield the sentence pairs of files, one after the other; pairs with an empty side too.

    Raises:
        UserError: a file is missing, empty, unreadable or of an unknown kind, or a line is not UTF-8 or not a pair.
    """
    for file in map(str, files):
        if len(both := sides(file)) == 2:
            yield from _moses(both[0], both[1], on_bad)
        elif file.removesuffix(".gz").endswith(".tsv"):
            yield from _tsv(Path(file), on_bad)
        elif file.removesuffix(".gz").endswith(".jsonl"):
            yield from _jsonl(Path(file), on_bad)
        else:
            refuse_as_pairs(file)
            raise UserError("is of no kind that can be read as sentence pairs", file=file, fix=_KINDS)


def read_lines(file: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, gz or not. They end at a line feed and nowhere else.

    A carriage return before the line feed is dropped, and so is a byte order mark.

    Raises:
        UserError: the file is missing, empty, unreadable, binary, not UTF-8, or has a line of ten million bytes.
    """
    return (line for line in lines(Path(file), None) if line is not None)


def lines(path: Path, on_bad: OnBad) -> Iterator[str | None]:
    """Yield the lines of a file as `read_lines` does, None in the place of a bad one if somebody is told of it."""
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            for number, raw in enumerate(iter(partial(stream.readline, LONGEST_LINE + 1), b""), 1):
                if len(raw) > LONGEST_LINE:
                    fix = "Each sentence stands on a line of its own."
                    tell_bad(path, number, f"is longer than {LONGEST_LINE:,} bytes", fix, raw, on_bad)
                    while raw and not raw.endswith(b"\n"):
                        raw = stream.readline(LONGEST_LINE)
                    yield None
                    continue
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                if b"\0" in raw:
                    tell_bad(path, number, "holds NUL bytes", "Give a UTF-8 text file.", raw, on_bad)
                    yield None
                    continue
                try:
                    line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
                except UnicodeDecodeError as error:
                    fix = "Convert the file, as with iconv -f latin1 -t utf-8."
                    tell_bad(path, number, f"not UTF-8 ({error.reason})", fix, raw, on_bad)
                    yield None
                else:
                    yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"is damaged or not gzip ({error})", file=path, fix="Fetch it again.") from error
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=path, fix="Check the path.") from error
    except ValueError as error:  # a zero byte, or half a surrogate
        raise UserError("is no name that a file can have", file=repr(str(path)), fix="Check the path.") from error
    if not number:
        raise UserError("is empty", file=path, fix="Is this the right file?")


def tell_bad(path: Path, number: int, what: str, fix: str, raw: bytes | str, on_bad: OnBad) -> None:
    """Tell of a bad line, or refuse it."""
    if on_bad is None:
        raise UserError(what, file=path, line=number, fix=fix)
    text = raw if isinstance(raw, str) else raw[:SHOWN].decode("utf-8", "backslashreplace")
    on_bad(BadLine(str(path), number, what, text[:SHOWN].rstrip("\r\n")))


def _tsv(path: Path, on_bad: OnBad) -> Iterator[Pair]:
    for number, line in enumerate(lines(path, on_bad), 1):
        if line is None:
            continue
        columns = line.split("\t")
        if len(columns) > 1:
            yield Pair(columns[0], columns[1])
        elif not line.strip():
            yield Pair("", "")
        else:
            tell_bad(path, number, "there is one column only", "Each line is source TAB target.", line, on_bad)


def _moses(source: Path, target: Path, on_bad: OnBad) -> Iterator[Pair]:
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
            yield Pair(str(one), str(other))


def _jsonl(path: Path, on_bad: OnBad) -> Iterator[Pair]:
    fix = 'Each line is {"source": "...", "target": "..."}.'
    for number, line in enumerate(lines(path, on_bad), 1):
        if line is None:
            continue
        try:
            record = json.loads(line)
            pair = Pair(record["source"], record["target"])
        except (ValueError, RecursionError):  # a number of 5,000 digits is a ValueError too
            tell_bad(path, number, "not JSON", fix, line, on_bad)
        except (KeyError, TypeError):
            tell_bad(path, number, "has no source or no target", fix, line, on_bad)
        else:
            if all(isinstance(text, str) for text in pair):
                yield Pair(*map(one_line, pair))
            else:
                tell_bad(path, number, "source and target must be strings", fix, line, on_bad)


def one_line(text: str) -> str:
    """Return a string of JSON as a line of text: without line feeds and half surrogates, both of which JSON can say."""
    return text.replace("\n", " ").encode("utf-8", "replace").decode("utf-8")
