"""Lines of a corpus that are not sentence pairs: optionally skipped, counted, and written to a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bitext.readers.bad_line import BadLine
from translucid.ground.atomic import replace
from translucid.ground.errors import UserError


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
