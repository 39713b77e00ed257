"""Lines of a corpus that are no sentence pairs: skipped if that is wanted, counted, and written down."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from translucid.ground.atomic import replace
from translucid.ground.errors import UserError


class BadLine(NamedTuple):
    """A line that is no sentence pair."""

    file: str
    line: int
    """Counted from 1."""
    what: str
    """What is wrong with it."""
    text: str
    """Its beginning; bytes that are not UTF-8 as \\xff."""


OnBad = Callable[[BadLine], None] | None
"""Is told of each bad line, which is then skipped; without it, the first one is an error."""


class BadLines:
    """Told of each bad line."""

    def __init__(self) -> None:
        self.count = 0
        """Of the lines told of since the last `written_to`."""
        self.first: list[BadLine] = []
        """Lines of the validation files, which are read only once: written down before the others, and not counted."""
        self._stream: IO[str] | None = None

    def __call__(self, bad: BadLine) -> None:
        """Count a line, and write it down within `written_to`."""
        self.count += 1
        if self._stream:
            self._stream.write(_row(bad))

    @contextmanager
    def written_to(self, file: Path) -> Iterator[None]:
        """Within it, count anew and write each line as JSON; the file appears in the end, if there is any.

        Raises:
            UserError: the file can't be written.
        """
        half = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        self.count = 0
        try:
            with half.open("x", encoding="utf-8", errors="backslashreplace") as self._stream:
                self._stream.writelines(map(_row, self.first))
                yield
            if self.count or self.first:
                replace(half, file)
            else:
                file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"can't be written ({error.strerror})", file=file, fix="Make room.") from error
        finally:
            self._stream = None
            half.unlink(missing_ok=True)


def _row(bad: BadLine) -> str:
    return json.dumps(bad._asdict(), ensure_ascii=False) + "\n"
