"""Beginning a run: it is prepared in a folder of its own, and replaces what is in its place when it is complete.

    OUT/.preparing   the new run, as long as it may still be refused
    OUT/.ready       the new run, complete: what is in OUT gives way
    OUT/.replaced    the old run, which is removed last
    OUT/.moving      the new run, when nothing of the old one is in its way: its files move to OUT, `config.yaml` last

Each step is one renaming, so a crash leaves the old run or the new one, and `finish_replacing` ends what was begun.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from translucid.data.readers.corpus import sides
from translucid.ground.atomic import sync_folder
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import OURS, RunFolder

_READY, _MOVING, _REPLACED = ".ready", ".moving", ".replaced"


def prepared_folder(run: RunFolder) -> RunFolder:
    """Return the folder in which a new run is prepared."""
    return RunFolder(run.path / ".preparing")


@contextmanager
def staged(run: RunFolder, *, overwrite: bool = False, resume: bool = False) -> Iterator[RunFolder]:
    """Give a folder to prepare a new run in; at the end, it replaces what is in the folder of the run.

    If something is raised, the folder of the run stays as it is. The caller holds its lock.

    Args:
        run: the new run.
        overwrite: replace a run that is there.
        resume: keep what an interrupted preparation has left, such as half of an encoded corpus.

    Raises:
        UserError: there is a run, or something that is not ours, or the folder can't be written.
    """
    run.refuse_to_lose(overwrite)
    new = prepared_folder(run)
    if resume:
        new.tidy()
        new.state_file.unlink(missing_ok=True)
    else:
        shutil.rmtree(new.path, ignore_errors=True)
    try:
        new.path.mkdir(exist_ok=True)
        yield new
    except BaseException as error:
        if run.exists or not isinstance(error, KeyboardInterrupt):
            shutil.rmtree(new.path, ignore_errors=True)
        raise
    for folder in (new.path / "state", new.path):
        if folder.is_dir():
            sync_folder(folder)
    new.path.rename(run.path / _READY)
    try:
        _replace(run)
    except UserError:
        shutil.rmtree(run.path / _READY, ignore_errors=True)
        raise


def finish_replacing(run: RunFolder) -> None:
    """Let a new run that was complete when its process was killed take its place, if there is one.

    Raises:
        UserError: a training is at work in the folder.
    """
    if (run.path / _READY).is_dir() or (run.path / _MOVING).is_dir():
        with run.locked():
            _replace(run)


def interrupted_configuration(run: RunFolder) -> Configuration | None:
    """Return the configuration of a new run whose preparation was interrupted, if there is one to go on with.

    Raises:
        UserError: it was to replace the run that is there, which nobody may take for the new one.
    """
    new = prepared_folder(run)
    if not new.exists:
        return None
    if run.exists:
        what = "holds a run that was to be replaced by one whose preparation was interrupted"
        fix = f"Repeat that command, with --overwrite; or keep the run that is there: remove {new.path}."
        raise UserError(what, file=run.path, fix=fix)
    return new.configuration()


def refuse_to_replace_sources(run: RunFolder, configuration: Configuration) -> None:
    """Check that a new run does not replace what it is made from, by whatever name.

    Raises:
        UserError: it would.
    """
    if not run.path.is_dir():
        return
    options, data = configuration.training, configuration.data
    begun = filter(None, (options.begin_from, options.init_encoder, options.init_decoder, options.elmo))
    if any(_is_replaced(RunFolder(Path(source)).model_file, run) for source in begun):
        raise UserError("is what the new run begins with", file=run.path, fix="Choose another --out.")
    files = (*data.train, *data.valid, *data.synthetic, *data.target_text, *data.mix, *data.valid_general)
    for file in (*_every_side(files), *map(Path, data.images)):
        if _is_replaced(file, run):
            fix = "Copy it elsewhere, or choose another --out."
            raise UserError(f"is part of the run in {run.path}, which would be replaced", file=file, fix=fix)


def _every_side(files: Iterable[str]) -> Iterator[Path]:
    for name in files:
        yield from sides(name)


def _is_replaced(file: Path, run: RunFolder) -> bool:
    """Whether a file is one of those of a run that a new one replaces; links and mounts are seen through."""
    file = file.resolve()
    if file.name in OURS and _same(file.parent, run.path):
        return True
    return any(_same(folder, run.path / "state") for folder in file.parents)


def _same(folder: Path, other: Path) -> bool:
    try:
        return folder.samefile(other)
    except OSError:  # one of them is not there
        return False


def _replace(run: RunFolder) -> None:
    ready, moving, replaced = run.path / _READY, run.path / _MOVING, run.path / _REPLACED
    if ready.is_dir():
        _set_aside(run, replaced)
        ready.rename(moving)
    # The configuration makes the folder a run.
    for file in sorted(moving.iterdir(), key=lambda file: file.name == run.config_file.name):
        file.replace(run.path / file.name)
    moving.rmdir()
    sync_folder(run.path)
    shutil.rmtree(replaced, ignore_errors=True)


def _set_aside(run: RunFolder, replaced: Path) -> None:
    """Move what is ours of a run, and nothing else, into a folder; the configuration first.

    Raises:
        UserError: another program has a file of it open, and Windows does not move it; the run stays as it was.
    """
    run.tidy()
    names = [*OURS, "state", *(events.name for events in run.path.glob("events.out.tfevents.*"))]
    moved = []
    shutil.rmtree(replaced, ignore_errors=True)
    try:
        replaced.mkdir(exist_ok=True)
        for name in names:
            if (run.path / name).exists():
                (run.path / name).replace(replaced / name)
                moved.append(name)
    except OSError as error:
        for earlier in reversed(moved):
            (replaced / earlier).replace(run.path / earlier)
        fix = "Close the program that has it open, such as TensorBoard."
        raise UserError(f"can't be replaced ({error.strerror})", file=run.path / name, fix=fix) from error
