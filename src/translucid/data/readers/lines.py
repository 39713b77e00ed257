"""Lines streamed from UTF-8 files, gzipped or not; lines that can't be read are reported."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from translucid.data.readers import standard_input
from translucid.data.readers.bad_lines import BadLine, OnBad
from translucid.data.readers.file_kinds import ending_of
from translucid.ground.errors import UserError

LONGEST_LINE = 10_000_000
"""The most bytes of a line: a small .gz file may unpack to a line that fills the memory."""
SHOWN = 500
"""The number of bytes of a bad line that are kept."""
_SPACES = re.compile(r"[ \t\r\n]+")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if it ends in .gz.

    Raises:
        UserError: the file is missing, unreadable or damaged, or its name is not a possible name.
    """
    try:
        packed = path.suffix.lower() == ".gz"
        file = path
        if str(path) == standard_input.NAME:
            file = standard_input.standard_input()
            packed = standard_input.is_packed(file)
        with gzip.open(file) if packed else file.open("rb") as stream:
            yield cast(BinaryIO, stream)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"is damaged or not gzip ({error})", file=path, fix="Fetch it again.") from error
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=path, fix="Check the path.") from error
    except ValueError as error:  # a NUL byte or a lone surrogate in the name
        raise UserError("is no name that a file can have", file=repr(str(path)), fix="Check the path.") from error


def kind_of(path: Path) -> str:
    """Return the ending of a file in lower case and without `.gz`; the first line of standard input suggests one."""
    if str(path) != standard_input.NAME:
        return ending_of(str(path))
    with opened(path) as stream:
        first_line = stream.readline(LONGEST_LINE).removeprefix(BOM_UTF8)
    return standard_input.ending(first_line.decode("utf-8", "replace"))


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
