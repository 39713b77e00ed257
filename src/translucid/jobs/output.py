"""Where the translation goes: a file that a later run can go on with, or a stream such as standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from translucid.ground.atomic import (
    explained,
    is_stream,
    open_stream,
    remove_half_written,
    replace,
    resolve_symlinks,
    sync_folder,
    write_atomically,
)
from translucid.ground.errors import UserError
from translucid.jobs.job import Say
from translucid.jobs.warning_summary import WarningSummary
from translucid.jobs.windows import Place


class PartRecord(BaseModel):
    """What stands beside a partial output: how much of it is good, and what it is the output of."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    identity: dict[str, Any]
    """Of the job; see `Job.identity`."""
    place: Place = Place()
    """How far the text is translated."""
    written: int = 0
    """Bytes of the output up to there."""
    bad: int = 0
    """Lines up to there that are not UTF-8."""
    warned: WarningSummary = WarningSummary()
    """What looks wrong in the lines up to there."""


class Output(AbstractContextManager["Output"], Protocol):
    """Takes the translations of windows, in order."""

    def earlier(self, identity: Callable[[], dict[str, Any]], say: Say) -> PartRecord:
        """Return what an earlier run of the same job has left, which may be nothing.

        `identity` reads the files of the run to tell what job it is, and is asked only where something can be left.
        """

    def begin(self, record: PartRecord) -> None:
        """Make ready to write what comes after this."""

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """Write the translation of a window; `keep` what is written so far, as `record` says."""

    def finish(self) -> None:
        """Say that this was all."""


class StreamOutput(Output):
    """Standard output, a pipe or a character device, which nothing is left of."""

    def __init__(self, file: Path | None = None) -> None:
        """`file`: standard output if not given."""
        self.file = file
        self.stream = sys.stdout.buffer

    def __enter__(self) -> StreamOutput:
        """Open it; a pipe waits for its reader.

        Raises:
            UserError: it can't be written to.
        """
        if self.file:
            with explained(self.file):
                self.stream = open_stream(self.file)
        return self

    def __exit__(self, *error: object) -> None:
        """Leave standard output open."""
        if self.file:
            with explained(self.file):
                self.stream.close()

    def earlier(self, identity: Callable[[], dict[str, Any]], say: Say) -> PartRecord:
        """See `Output`."""
        return PartRecord(identity={})

    def begin(self, record: PartRecord) -> None:
        """See `Output`."""

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """See `Output`.

        Raises:
            UserError: it can't be written to.
        """
        with explained(self.file or Path("-")):
            self.stream.write(text)
            self.stream.flush()

    def finish(self) -> None:
        """See `Output`."""


class FileOutput(Output):
    """A file that appears when it is whole; until then a part stands beside it, and a record of how much is good.

    The record is written when what it speaks of is on the disk. So whatever follows it in the part, half a line or a
    thousand, was written by a run that did not live to say so, and is cut off.
    """

    def __init__(self, file: Path) -> None:
        """`file`: need not exist; if it does, it stays as it is until the new one is whole; so does a link to it."""
        self.file = file = resolve_symlinks(file)
        self.part = file.with_name(f".{file.name}.part")
        self.record_file = file.with_name(f".{file.name}.part.json")
        self.lock_file = file.with_name(f".{file.name}.lock")
        self.lock = FileLock(self.lock_file, timeout=0)
        self.stream: FileIO | None = None
        self.kept = 0
        """Lines of the part that are good."""

    def __enter__(self) -> FileOutput:
        """Keep other jobs away from it.

        Raises:
            UserError: one is at work on it, or it can't be written.
        """
        if not self.file.parent.is_dir():
            raise UserError("can't be written (there is no such folder)", file=self.file, fix="Check the path.")
        try:
            self.lock.acquire()
        except Timeout as error:
            fix = "Wait until it ends, or choose another --output."
            raise UserError("another job is writing this file", file=self.file, fix=fix) from error
        except OSError as error:
            raise UserError(f"can't be written ({error.strerror})", file=self.file, fix="Check the path.") from error
        return self

    def __exit__(self, *error: object) -> None:
        """Let others at it; a part stays if there is anything good in it."""
        if self.stream:
            self.stream.close()
            if not self.kept:
                self._clear()
        with suppress(OSError):
            self.lock_file.unlink()
        self.lock.release()

    def earlier(self, identity: Callable[[], dict[str, Any]], say: Say) -> PartRecord:
        """See `Output`; `say` is told why something is left that can't be used."""
        fresh = PartRecord(identity=identity())
        if not self.part.exists() or not self.record_file.exists():
            return fresh
        try:
            record = PartRecord.model_validate_json(self.record_file.read_bytes())
            size = self.part.stat().st_size
        except (OSError, ValidationError):
            why = "its record can't be read"
        else:
            if record.identity == fresh.identity and record.written <= size:
                return record
            why = _difference(record.identity, fresh.identity) or "some of it is lost"
        self.discard(why, say)
        return fresh

    def discard(self, why: str, say: Say) -> None:
        """Throw the partial output away, and say why."""
        say(f"the partial output of an earlier run is thrown away: {why}")
        self._clear()

    def begin(self, record: PartRecord) -> None:
        """See `Output`.

        Raises:
            UserError: the file can't be written.
        """
        self.kept = record.place.lines
        try:
            if not self.kept:
                self._clear()
            self.part.touch()
            self.stream = FileIO(self.part, "r+")
            self.stream.truncate(record.written)
            self.stream.seek(record.written)
        except OSError as error:
            raise self._failed(error) from error

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """See `Output`.

        Raises:
            UserError: the disk is full; what was kept before is still good.
        """
        assert self.stream
        try:
            left = memoryview(text)
            while left:
                left = left[self.stream.write(left) :]
            if keep:
                os.fsync(self.stream.fileno())
                write_atomically(self.record_file, record.model_dump_json().encode())
                self.kept = record.place.lines
        except OSError as error:
            raise self._failed(error) from error

    def finish(self) -> None:
        """See `Output`.

        Raises:
            UserError: the disk is full; what was kept before is still good.
        """
        assert self.stream
        try:
            os.fsync(self.stream.fileno())
            self.stream.close()
            self.stream = None
            replace(self.part, self.file)
            sync_folder(self.file.parent)
            self._remove_record()
        except OSError as error:
            raise self._failed(error) from error

    def _clear(self) -> None:
        # The record first: it must never speak of a part that it does not belong to.
        self._remove_record()
        self.part.unlink(missing_ok=True)
        remove_half_written(self.file)

    def _remove_record(self) -> None:
        self.record_file.unlink(missing_ok=True)
        remove_half_written(self.record_file)  # an earlier run may have been killed while it wrote the record

    def _failed(self, error: OSError) -> UserError:
        # Windows replaces no file that is open.
        way = "close the program that has it open" if isinstance(error, PermissionError) else "make room"
        kept = f"The first {self.kept:,} lines are kept: {way}" if self.kept else way.capitalize()
        fix = f"{kept}, and give the same command again."
        return UserError(f"can't be written ({error.strerror})", file=self.file, fix=fix)


def output_to(file: Path | None) -> Output:
    """Return where a translation goes that is to go there; to standard output if nothing is named.

    Raises:
        UserError: it is a folder, a block device or a socket.
    """
    return FileOutput(file) if file and not is_stream(file) else StreamOutput(file)


def _difference(then: dict[str, Any], now: dict[str, Any]) -> str:
    """Say in what two jobs differ; a checksum says nothing to anybody."""
    changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    values = [(str(then.get(name)), str(now.get(name))) for name in changed]
    told = [
        f"{name} has changed" if max(len(before), len(after)) > 20 else f"{name} was {before} and is {after}"
        for name, (before, after) in zip(changed, values, strict=True)
    ]
    return ", ".join(told[:3])
