"""Lines streamed from UTF-8 files, compressed or not, or from standard input; lines that can't be read are reported.

Standard input is a corpus named `-`, stored in a temporary file because corpora are read more than once.
"""

from __future__ import annotations

import atexit
import bz2
import gzip
import lzma
import re
import shutil
import sys
import tempfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from io import BufferedReader, RawIOBase
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from bitext.errors import UserError
from bitext.readers.file_kinds import PACKINGS, ending_of

STANDARD_INPUT = "-"
"""The name of standard input among the files of a corpus."""


@cache
def standard_input() -> Path:
    """Read standard input to its end, once, into a file that is removed when the process ends.

    Raises:
        UserError: standard input is closed.
    """
    if sys.stdin is None:
        raise UserError("is closed", file=STANDARD_INPUT, fix="Give a file.")
    # A folder, because Windows can't open a temporary file a second time while it is open.
    folder = tempfile.TemporaryDirectory(prefix="translucid-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "standard-input"
    with file.open("wb") as stream:
        shutil.copyfileobj(sys.stdin.buffer, stream)
    return file


def ending_of_lines(first_line: str) -> str:
    """Return the ending for lines of this kind: `.jsonl` for an object, `.tsv` for a line with a tab, else `.txt`."""
    if first_line.lstrip().startswith("{"):
        return ".jsonl"
    return ".tsv" if "\t" in first_line else ".txt"


def refuse_twice(*groups: Iterable[str] | None) -> None:
    """Check that standard input is given for one corpus at most.

    Raises:
        UserError: it is given for several.
    """
    files = chain.from_iterable(group or () for group in groups)
    if list(map(str, files)).count(STANDARD_INPUT) > 1:
        raise UserError("can be one corpus and not several", file=STANDARD_INPUT, fix="Give files for the others.")


class BadLine(NamedTuple):
    """A line that is not a sentence pair."""

    file: str
    line: int
    """The number of the line, counted from 1."""
    what: str
    """What is wrong with the line."""
    text: str
    """The beginning of the line; bytes that are not UTF-8 are written as \\xff."""


OnBad = Callable[[BadLine], None] | None
"""A function that is called with each bad line, which is then skipped; if it is None, the first one is an error."""


LONGEST_LINE = 10_000_000
"""The most bytes of a line: a small .gz file may unpack to a line that fills the memory."""
SHOWN = 500
"""The number of bytes of a bad line that are kept."""
UNPACKING_MEMORY = 256 << 20
"""The most bytes that unpacking .xz may take; `xz -9` needs 65 MiB, and the header of a file may ask for 4 GiB."""
_CHUNK = 1 << 16
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
"""The first bytes of compressed files, by which standard input is recognized."""
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
"""The errors of unpacking; that of bzip2 is an `OSError` without a number."""
_SPACES = re.compile(r"[ \t\r\n]+")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if it ends in .gz, .bz2 or .xz.

    Raises:
        UserError: the file is missing, unreadable or damaged, or its name is not a possible name.
    """
    try:
        file, packing = path, path.suffix.lower()
        if str(path) == STANDARD_INPUT:
            file = standard_input()
            packing = _packing_of(file)
        with file.open("rb") as stream, unpacked(stream, packing) as content:
            yield content
    except DAMAGED as error:
        raise damaged(path, error) from error
    except OSError as error:
        if error.errno is None:
            raise damaged(path, error) from error
        raise UserError(f"can't be read ({error.strerror})", file=path, fix="Check the path.") from error
    except ValueError as error:  # a NUL byte or a lone surrogate in the name
        raise UserError("is no name that a file can have", file=repr(str(path)), fix="Check the path.") from error


def unpacked(stream: BinaryIO, packing: str) -> BinaryIO:
    """Return the content of a stream, given the ending of its compression; other streams are returned unchanged."""
    if packing not in PACKINGS:
        return stream
    if packing == ".gz":
        return cast(BinaryIO, gzip.open(stream))
    return cast(BinaryIO, BufferedReader(_Unpacked(stream, packing), _CHUNK))


def damaged(path: Path, error: Exception) -> UserError:
    """Return the error that a file can't be unpacked."""
    if "usage limit" in str(error).lower():
        what = f"needs more than {UNPACKING_MEMORY >> 20} MiB of memory to unpack"
        return UserError(what, file=path, fix="Unpack it first, as with xz -d.")
    name = {".bz2": "bzip2", ".xz": "xz"}.get(path.suffix.lower(), "gzip")
    return UserError(f"is damaged or not {name} ({error})", file=path, fix="Fetch it again.")


class _Unpacked(RawIOBase):
    """The content of a .bz2 or .xz stream, of which little is in memory at a time."""

    def __init__(self, stream: BinaryIO, packing: str) -> None:
        self.stream = stream
        self.new_decompressor: Any = bz2.BZ2Decompressor
        if packing == ".xz":
            self.new_decompressor = partial(lzma.LZMADecompressor, memlimit=UNPACKING_MEMORY)
        self.decompressor = self.new_decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the next bytes go.

        Raises:
            EOFError: the file ends in the middle of a stream.
        """
        while True:
            packed = b""
            if self.decompressor.eof:  # a file may consist of several streams
                packed = self.decompressor.unused_data.lstrip(b"\0") or self.stream.read(_CHUNK).lstrip(b"\0")
                if not packed:
                    return 0
                self.decompressor = self.new_decompressor()
            elif self.decompressor.needs_input:
                packed = self.stream.read(_CHUNK)
                if not packed:
                    raise EOFError("it ends too early")
            content = self.decompressor.decompress(packed, len(buffer))
            if content:
                buffer[: len(content)] = content
                return len(content)


def _packing_of(file: Path) -> str:
    """Return the ending for the compression of a file, according to its first bytes; empty for none.

    Raises:
        UserError: it is of a kind that is not unpacked.
    """
    with file.open("rb") as stream:
        start = stream.read(max(map(len, _MAGIC)))
    for magic, packing in _MAGIC.items():
        if start.startswith(magic):
            if packing not in PACKINGS:
                fix = f"Unpack it in the pipe, or send it as it is, or as one of {', '.join(PACKINGS)}."
                raise UserError(f"is compressed ({packing})", file=STANDARD_INPUT, fix=fix)
            return packing
    return ""


def kind_of(path: Path) -> str:
    """Return the ending of a file in lower case, without that of its compression.

    The first line of standard input suggests one.
    """
    if str(path) != STANDARD_INPUT:
        return ending_of(str(path))
    with opened(path) as stream:
        first_line = stream.readline(LONGEST_LINE).removeprefix(BOM_UTF8)
    return ending_of_lines(first_line.decode("utf-8", "replace"))


def empty_file_error(path: Path) -> UserError:
    """Return the error that a file is empty."""
    return UserError("is empty", file=path, fix="Is this the right file?")


def lines(path: Path, on_bad: OnBad) -> Iterator[str | None]:
    """Yield the lines of a UTF-8 file; with `on_bad`, None for each bad line.

    Only a line feed ends a line. A carriage return before it is removed, and so is a byte order mark.
    """
    number = 0
    with opened(path) as stream:
        for number, raw in enumerate(iter(partial(stream.readline, LONGEST_LINE + 1), b""), 1):
            if len(raw) > LONGEST_LINE:
                fix = "Put each sentence on its own line."
                report_bad_line(path, number, f"is longer than {LONGEST_LINE:,} bytes", fix, raw, on_bad)
                while raw and not raw.endswith(b"\n"):
                    raw = stream.readline(LONGEST_LINE)
                yield None
                continue
            if number == 1:
                raw = raw.removeprefix(BOM_UTF8)
            if b"\0" in raw:
                report_bad_line(path, number, "holds NUL bytes", "Give a UTF-8 text file.", raw, on_bad)
                yield None
                continue
            try:
                line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                fix = "Convert the file, as with iconv -f latin1 -t utf-8."
                report_bad_line(path, number, f"not UTF-8 ({error.reason})", fix, raw, on_bad)
                yield None
            else:
                yield line
    if not number:
        raise empty_file_error(path)


def numbered_lines(path: Path, on_bad: OnBad) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file that are not bad, each with its number."""
    for number, line in enumerate(lines(path, on_bad), 1):
        if line is not None:
            yield number, line


def report_bad_line(path: Path, number: int, what: str, fix: str, raw: bytes | str, on_bad: OnBad) -> None:
    """Report a bad line.

    Raises:
        UserError: `on_bad` is None.
    """
    if on_bad is None:
        raise UserError(what, file=path, line=number, fix=fix)
    if isinstance(raw, bytes):
        raw = raw[:SHOWN].decode("utf-8", "backslashreplace")
    on_bad(BadLine(str(path), number, what, raw[:SHOWN].rstrip("\r\n")))


def one_line(text: str) -> str:
    """Return a JSON string as a line of text, without the line feeds and lone surrogates that JSON can contain."""
    return text.replace("\n", " ").encode("utf-8", "replace").decode("utf-8")


def one_space(text: str) -> str:
    """Return a text with a single space for each sequence of spaces, tabs and line ends, and none at its ends."""
    return _SPACES.sub(" ", text).strip(" ")
