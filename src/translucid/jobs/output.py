"""The output of a job: a file that a later run can continue, or a stream such as standard output.

A part of it has a summary of its warnings, one line in all.
"""

from __future__ import annotations

import os
import re
import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from csv import DictReader
from importlib.resources import files
from io import FileIO
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock, Timeout
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from bitext.protected_spans import PlaceholderSyntax, kept_parts
from translucid.ground.atomic import (
    explain_write_errors,
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
from translucid.jobs.windows import Place

EXAMPLES = 10
"""The number of lines that are named for each kind of warning."""
with files(__package__).joinpath("warning_sentences.tsv").open(encoding="utf-8") as _file:
    _SENTENCES = {row["kind"]: row for row in DictReader(_file, dialect="excel-tab")}
"""The sentences for one warning and for several, by kind."""
_COUNTED_KINDS = frozenset({"lost", "invented", "placed"})
"""The kinds whose warnings list parts of the text, such as placeholders; these parts are counted."""
_NUMBERED = re.compile(r"(?P<unit>[a-z]+) (?P<number>[0-9]+)")
"""The usual name of a place in a document, such as `line 15` or `paragraph 2`."""


class WarningSummary(BaseModel):
    """The warnings of any number of lines, by kind."""

    model_config = ConfigDict(extra="forbid")

    lines: int = 0
    """The number of lines with warnings."""
    kinds: dict[str, tuple[int, list[int]]] = {}
    """The number of lines with each kind, and the first of these lines."""
    counts: dict[str, int] = {}
    """The count of each kind: the number of lost placeholders, for example."""
    first: list[str] = []
    """The warnings of the first line with warnings."""

    def with_warnings(self, warnings: Iterable[tuple[int, str]]) -> WarningSummary:
        """Return a summary with more warnings: pairs of a line, counted from 1, and a warning `kind: details`."""
        by_line: dict[int, list[str]] = {}
        for line, warning in warnings:
            by_line.setdefault(line, []).append(warning)
        kinds, counts = dict(self.kinds), dict(self.counts)
        for line, line_warnings in by_line.items():
            line_counts: Counter[str] = Counter()
            for warning in line_warnings:
                kind, _, details = warning.partition(":")
                line_counts[kind] += _count(details) if kind in _COUNTED_KINDS else 1
            for kind, line_count in line_counts.items():
                count, examples = kinds.get(kind, (0, []))
                kinds[kind] = count + 1, [*examples, line][:EXAMPLES]
                # A record of an older version has no counts, but one for each line.
                counts[kind] = counts.get(kind, count) + line_count
        first = self.first or next(iter(by_line.values()), [])
        return WarningSummary(lines=self.lines + len(by_line), kinds=kinds, counts=counts, first=first)

    def summary(self, total: int, unit: str = "line", place: Callable[[int], str] | None = None) -> str:
        """Return the summary as one line; an empty text if there are no warnings.

        Args:
            total: the number of all lines.
            unit: the name of a line.
            place: a function that returns the name of a line by its number; `unit` and the number if not given.
        """
        if not self.lines:
            return ""
        if total == 1:
            return f"warning: {'; '.join(self.first)}"
        looks = "looks" if self.lines == 1 else "look"
        sentences = [f"{self.lines:,} of {total:,} {unit}s {looks} wrong"]
        for kind, (count, examples) in sorted(self.kinds.items(), key=lambda item: -item[1][0]):
            names = [f"{unit} {line}" for line in examples]
            if place:
                names = list(map(place, examples))
            sentences.append(f"{self._sentence(kind)}: {_listed(names, count - len(examples))}")
        if not place:
            sentences.append('`form="jsonl"` shows the warnings of each line')
        return f"warning: {'. '.join(sentences)}."

    def _sentence(self, kind: str) -> str:
        count = self.counts.get(kind, self.kinds[kind][0])
        sentences = _SENTENCES.get(kind, {"one": f"1 warning ({kind})", "several": f"{{count}} warnings ({kind})"})
        return sentences["one"] if count == 1 else sentences["several"].format(count=f"{count:,}")


def _count(details: str) -> int:
    """Return the number of placeholders, tags and numbers in a warning, which are separated by spaces."""
    count, gaps, end = 0, [], 0
    for _, start, stop in kept_parts(details, PlaceholderSyntax.message):
        count += 1
        gaps.append(details[end:start])
        end = stop
    return max(1, count + len(" ".join([*gaps, details[end:]]).split()))


def _listed(names: Sequence[str], omitted: int) -> str:
    """Return a list of different places, grouped by their unit, such as `lines 15, 22 and 4 more`."""
    by_unit: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if match := _NUMBERED.fullmatch(name):
            by_unit.setdefault(match["unit"], []).append(f"{int(match['number']):,}")
        else:
            by_unit.setdefault("", []).append(name)
    parts = []
    for unit, labels in by_unit.items():
        if not unit:
            parts += labels
            continue
        plural = "s" if len(labels) > 1 else ""
        parts.append(f"{unit}{plural} {', '.join(labels)}")
    listing = "; ".join(parts)
    return f"{listing} and {omitted:,} more" if omitted else listing


_FORMER_NAMES = {"format": "form", "mbr": "risk_candidates", "rerank-with": "ranking"}


def _named_by_parameters(identity: Any) -> Any:
    """Return an identity of an older version, which named flags, with the names of parameters."""
    if not isinstance(identity, dict):
        return identity

    def parameter(flag: re.Match[str]) -> str:
        return f"`{_FORMER_NAMES.get(flag[1], flag[1].replace('-', '_'))}`"

    return {re.sub(r"--([a-z-]+)", parameter, str(name)): state for name, state in identity.items()}


Identity = Annotated[dict[str, Any], BeforeValidator(_named_by_parameters)]
"""What must be equal for two jobs to write the same, by name, as `LineJob.identity` returns it."""


class PartRecord(BaseModel):
    """The record beside a partial output: the job that wrote it, and how much of it is valid."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: Identity
    place: Place = Place()
    """The place in the input up to which it is translated."""
    written: int = 0
    """The number of bytes of the output up to there."""
    bad: int = 0
    """The number of unreadable lines up to there."""
    warned: WarningSummary = WarningSummary()
    """The warnings of the lines up to there."""


class Output(AbstractContextManager["Output"]):
    """Receives the translations of windows, in order."""

    def earlier_record(self, identity: Callable[[], dict[str, Any]], say: Say) -> PartRecord:
        """Return the record of an earlier, interrupted run of the same job; an empty one if there was none.

        `identity` returns the identity of the job. It reads the files of the run, and is called only if needed.
        """
        return PartRecord(identity={})

    def begin(self, record: PartRecord) -> None:
        """Prepare to write what follows the output of a record."""

    @abstractmethod
    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """Write the translation of a window; `keep`: save the record, so that a later run can continue from here."""

    def finish(self) -> None:
        """Complete the output."""


class StreamOutput(Output):
    """Standard output, a pipe or a character device, which no later run can continue."""

    def __init__(self, file: Path | None = None) -> None:
        """`file`: standard output if not given."""
        self.file = file
        self.stream = sys.stdout.buffer

    def __enter__(self) -> StreamOutput:
        """Open the stream; a pipe waits for its reader.

        Raises:
            UserError: the stream can't be written to.
        """
        if self.file:
            with explain_write_errors(self.file):
                self.stream = open_stream(self.file)
        return self

    def __exit__(self, *error: object) -> None:
        """Leave standard output open."""
        if self.file:
            with explain_write_errors(self.file):
                self.stream.close()

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """Write a translation at once, for readers of a pipe.

        Raises:
            UserError: the stream can't be written to.
        """
        with explain_write_errors(self.file or Path("-")):
            self.stream.write(text)
            self.stream.flush()


class FileOutput(Output):
    """A file that appears when it is complete; until then there is a partial output and a record beside it.

    The record is written after the output that it describes is on the disk. Whatever follows in the partial output,
    half a line or a thousand, was written by a run that was killed before it could write the record, and is cut off.
    """

    def __init__(self, file: Path) -> None:
        """`file`: the file to write, or a link to it; an existing file is replaced when the new one is complete."""
        self.file = file = resolve_symlinks(file)
        self.part_file = file.with_name(f".{file.name}.part")
        self.record_file = file.with_name(f".{file.name}.part.json")
        self.lock_file = file.with_name(f".{file.name}.lock")
        self.lock = FileLock(self.lock_file, timeout=0)
        self.stream: FileIO | None = None
        self.valid_lines = 0
        """The number of valid lines of the partial output."""

    def __enter__(self) -> FileOutput:
        """Lock the file against other jobs.

        Raises:
            UserError: another job is writing the file, or it can't be written.
        """
        if not self.file.parent.is_dir():
            raise UserError("can't be written (there is no such folder)", file=self.file, fix="Check the path.")
        try:
            self.lock.acquire()
        except Timeout as error:
            fix = "Wait until it ends, or choose another `output`."
            raise UserError("another job is writing this file", file=self.file, fix=fix) from error
        except OSError as error:
            raise UserError(f"can't be written ({error.strerror})", file=self.file, fix="Check the path.") from error
        return self

    def __exit__(self, *error: object) -> None:
        """Unlock the file; a partial output remains if it has valid lines."""
        if self.stream:
            self.stream.close()
            if not self.valid_lines:
                self._clear()
        with suppress(OSError):
            self.lock_file.unlink()
        self.lock.release()

    def earlier_record(self, identity: Callable[[], dict[str, Any]], say: Say) -> PartRecord:
        """Return the record of an earlier run; `say` is called with the reason if it can't be used."""
        fresh = PartRecord(identity=identity())
        if not self.part_file.exists() or not self.record_file.exists():
            return fresh
        try:
            record = PartRecord.model_validate_json(self.record_file.read_bytes())
            size = self.part_file.stat().st_size
        except (OSError, ValidationError):
            reason = "its record can't be read"
        else:
            if record.identity == fresh.identity and record.written <= size:
                return record
            reason = difference(record.identity, fresh.identity) or "some of it is lost"
        self.discard(reason, say)
        return fresh

    def discard(self, reason: str, say: Say) -> None:
        """Delete the partial output, and report the reason."""
        say(f"the partial output of an earlier run is thrown away: {reason}")
        self._clear()

    def begin(self, record: PartRecord) -> None:
        """Open the partial output, and cut off what follows the record.

        Raises:
            UserError: the file can't be written.
        """
        self.valid_lines = record.place.lines
        with self._reported():
            if not self.valid_lines:
                self._clear()
            self.part_file.touch()
            self.stream = FileIO(self.part_file, "r+")
            self.stream.truncate(record.written)
            self.stream.seek(record.written)

    def write(self, text: bytes, record: PartRecord, *, keep: bool) -> None:
        """Append a translation to the partial output.

        Raises:
            UserError: the disk is full. The output up to the last record remains valid.
        """
        assert self.stream
        with self._reported():
            # A raw file may write less than it is given.
            remaining = memoryview(text)
            while remaining:
                remaining = remaining[self.stream.write(remaining) :]
            if keep:
                # The record must not claim what a crash of the machine could still lose.
                os.fsync(self.stream.fileno())
                write_atomically(self.record_file, record.model_dump_json().encode())
                self.valid_lines = record.place.lines

    def finish(self) -> None:
        """Write the file from the partial output, which is complete.

        Raises:
            UserError: the file can't be written. The output up to the last record remains valid.
        """
        assert self.stream
        with self._reported():
            os.fsync(self.stream.fileno())
            self.stream.close()
            self.stream = None
            self.publish()

    def publish(self) -> None:
        """Replace the file by the partial output."""
        replace(self.part_file, self.file)
        sync_folder(self.file.parent)
        self._remove_record()

    def _clear(self) -> None:
        # The record first: a crash in between must not leave it beside the partial output of another job.
        self._remove_record()
        self.part_file.unlink(missing_ok=True)
        remove_half_written(self.file)

    def _remove_record(self) -> None:
        self.record_file.unlink(missing_ok=True)
        remove_half_written(self.record_file)  # an earlier run may have been killed while it wrote the record

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Report errors of the system, and how many lines of the output are kept."""
        try:
            yield
        except OSError as error:
            advice = "make room"
            if isinstance(error, PermissionError):  # Windows replaces no file that is open
                advice = "close the program that has it open"
            instruction = advice.capitalize()
            if self.valid_lines:
                instruction = f"The first {self.valid_lines:,} lines are kept: {advice}"
            fix = f"{instruction}, and give the same command again."
            raise UserError(f"can't be written ({error.strerror})", file=self.file, fix=fix) from error


def output_to(file: Path | None) -> Output:
    """Return the output for a file, or for standard output if there is none.

    Raises:
        UserError: the file is a folder, a block device or a socket.
    """
    if file and not is_stream(file):
        return FileOutput(file)
    return StreamOutput(file)


def difference(earlier: dict[str, Any], current: dict[str, Any]) -> str:
    """Return the first differences between the identities of two jobs, as text."""
    differences = []
    for name in {**earlier, **current}:
        before, after = earlier.get(name), current.get(name)
        if before == after:
            continue
        if max(len(str(before)), len(str(after))) > 20:  # a checksum means nothing to a user
            differences.append(f"{name} has changed")
        else:
            differences.append(f"{name} was {before} and is {after}")
    return ", ".join(differences[:3])
