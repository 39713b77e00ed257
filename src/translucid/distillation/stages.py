"""The stages of a distillation, each with an atomic record: finished work is never repeated, and changes are refused.

    RUN/distillation/translate.json    the record of the stage `translate`: what it was made from, and its results
    RUN/distillation/decoded.tsv       a file that it wrote

A stage that was interrupted is started again; what it has written so far decides where it continues.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from bitext.reading import digest
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.jobs.output import Identity, difference

Results = dict[str, Any]
"""The results of a stage, as JSON can hold them."""


class Stage(NamedTuple):
    """A stage."""

    name: str
    activity: str
    """What the progress bar says."""
    files: tuple[str, ...] = ()
    """The files that the stage writes into the folder, whose content is part of its results; or a temporary folder."""
    repeatable: bool = False
    """Whether the stage is repeated without asking when its inputs have changed, because it takes little time."""


class StageRecord(BaseModel):
    """The record of a stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: Identity
    """What must be equal for the stage to have the same results."""
    results: Results | None = None
    """The results; None while the stage is not finished."""
    digests: dict[str, str] = {}
    """The SHA-256 of the files that the stage has written."""


class Stages:
    """The stages of one distillation, in order."""

    def __init__(self, folder: Path, stages: Sequence[Stage], console: Console, *, overwrite: bool = False) -> None:
        """Describe the stages, and do nothing yet.

        Args:
            folder: the folder of the records, inside that of the student.
            stages: all stages of this distillation.
            console: shows which stage runs.
            overwrite: whether stages are repeated if their inputs have changed.
        """
        self.folder, self.stages, self.console, self.overwrite = folder, list(stages), console, overwrite

    def label(self, stage: Stage) -> str:
        """Return what the progress bar of a stage says, such as `2 of 7: translating`."""
        return f"{self.stages.index(stage) + 1} of {len(self.stages)}: {stage.activity}"

    def begun(self, stage: Stage) -> bool:
        """Whether a stage has been started."""
        return self._record_file(stage).exists()

    def check(self, stage: Stage, identity: dict[str, Any]) -> None:
        """Compare the identity of a stage with its record; the record is removed if it differs and may be replaced.

        Raises:
            UserError: the stage was done, or begun, with other inputs or options.
        """
        record, identity = self._record(stage), _as_json(identity)
        if record is None or record.identity == identity:
            return
        changes = difference(record.identity, identity)
        if not (self.overwrite or stage.repeatable):
            what = f"stage {self.label(stage)} was begun with other inputs: {changes}"
            fix = "Undo that, repeat the stages from this one on with `overwrite=True`, or choose another `out`."
            raise UserError(what, file=self.folder.parent, fix=fix)
        self.console.print(f"{self.label(stage)} is repeated: {changes}", soft_wrap=True)
        self._discard_from(stage)

    def run(self, stage: Stage, identity: dict[str, Any], work: Callable[[], Results]) -> Results:
        """Return the results of a stage: those of its record, or those of `work`.

        Raises:
            UserError: the stage was done, or begun, with other inputs or options.
        """
        self.check(stage, identity)
        record = self._record(stage)
        if record and record.results is not None and self._complete(record):
            self.console.print(f"{self.label(stage)}: done before")
            return record.results
        self.console.print(self.label(stage))
        self._write(stage, StageRecord(identity=identity))
        results = work()
        digests = {name: digest(self.folder / name) for name in stage.files if (self.folder / name).is_file()}
        self._write(stage, StageRecord(identity=identity, results=results, digests=digests))
        return results

    def results(self, stage: Stage) -> Results:
        """Return the results of a finished stage."""
        record = self._record(stage)
        assert record and record.results is not None
        return record.results

    def digests(self, *stages: Stage) -> dict[str, str]:
        """Return the SHA-256 of the files that finished stages have written."""
        digests: dict[str, str] = {}
        for stage in stages:
            record = self._record(stage)
            if record:
                digests |= record.digests
        return digests

    def _record_file(self, stage: Stage) -> Path:
        return self.folder / f"{stage.name}.json"

    def _record(self, stage: Stage) -> StageRecord | None:
        """Return the record of a stage; None if there is none that can be read."""
        file = self._record_file(stage)
        if not file.exists():
            return None
        try:
            return StageRecord.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            fix = "Begin anew in another folder, or remove this file to repeat the stage."
            raise UserError("can't be read as the record of a stage", file=file, fix=fix) from error

    def _write(self, stage: Stage, record: StageRecord) -> None:
        write_atomically(self._record_file(stage), record.model_dump_json(indent=1).encode())

    def _complete(self, record: StageRecord) -> bool:
        """Whether the files of a finished stage are still there."""
        return all((self.folder / name).is_file() for name in record.digests)

    def _discard_from(self, stage: Stage) -> None:
        """Remove the records and the files of a stage and of those after it."""
        for later in self.stages[self.stages.index(stage) :]:
            # The record first: a crash in between must not leave it beside the files of other inputs.
            self._record_file(later).unlink(missing_ok=True)
            for name in later.files:
                for path in self.folder.glob(f"*{name}*"):
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink(missing_ok=True)


def _as_json(identity: dict[str, Any]) -> dict[str, Any]:
    """Return an identity as it is read from a record: with lists in place of tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(identity))
    return plain
