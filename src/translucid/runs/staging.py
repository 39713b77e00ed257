"""The start of a run: it is prepared in a separate folder and then replaces the run in its place.

    OUT/.preparing   the new run while it is prepared and may still be refused
    OUT/.ready       the new run when it is complete: the files of the old run are moved away
    OUT/.replaced    the old run, which is removed last
    OUT/.moving      the new run after that: its files are moved to OUT, `config.yaml` last

Each step is a single renaming, so a crash leaves either the old run or the new one; `finish_replacing` completes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from translucid.data.readers.corpus import sides
from translucid.ground.atomic import sync_folder
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration, batches_for_gpu, resolve, resumable, resumed
from translucid.runs.presets import SMALL_PAIRS, advice_for_size, recipes
from translucid.runs.run_folder import RUN_FILES, RUN_FOLDERS, RunFolder
from translucid.runs.settings import Settings

_READY, _MOVING, _REPLACED = ".ready", ".moving", ".replaced"


def prepared_folder(run: RunFolder) -> RunFolder:
    """Return the folder in which a new run is prepared."""
    return RunFolder(run.path / ".preparing")


@contextmanager
def staged(run: RunFolder, *, overwrite: bool = False, resume: bool = False) -> Iterator[RunFolder]:
    """Yield a folder in which to prepare a new run; at the end of the context, it replaces the old run.

    If an exception is raised, the old run stays. The caller holds the lock of the run.

    Args:
        run: the new run.
        overwrite: whether to replace an existing run.
        resume: whether to keep the files of an interrupted preparation, such as half of an encoded corpus.

    Raises:
        UserError: there is a run or another file already, or the folder can't be written.
    """
    run.refuse_overwrite(overwrite)
    staged_run = prepared_folder(run)
    if resume:
        staged_run.tidy()
        staged_run.state_file.unlink(missing_ok=True)
    else:
        shutil.rmtree(staged_run.path, ignore_errors=True)
    try:
        staged_run.path.mkdir(exist_ok=True)
        yield staged_run
    except BaseException as error:
        # `--resume` can continue an interrupted preparation, unless there is an old run that it would resume.
        if run.exists or not isinstance(error, KeyboardInterrupt):
            shutil.rmtree(staged_run.path, ignore_errors=True)
        raise
    for folder in (staged_run.path / "state", staged_run.path):
        if folder.is_dir():
            sync_folder(folder)
    staged_run.path.rename(run.path / _READY)
    try:
        _replace(run)
    except UserError:
        shutil.rmtree(run.path / _READY, ignore_errors=True)
        raise


def finish_replacing(run: RunFolder) -> None:
    """Complete the replacement of a run by a new one, if the process was killed meanwhile.

    Raises:
        UserError: another training uses the folder.
    """
    if (run.path / _READY).is_dir() or (run.path / _MOVING).is_dir():
        with run.locked():
            _replace(run)


def discard(run: RunFolder) -> None:
    """Remove the files of a run, and no others, and those of a run that was being prepared in its place.

    Raises:
        UserError: another training uses the folder, or another program has a file open.
    """
    finish_replacing(run)
    with run.locked():
        shutil.rmtree(prepared_folder(run).path, ignore_errors=True)
        _set_aside(run, run.path / _REPLACED)
        shutil.rmtree(run.path / _REPLACED, ignore_errors=True)


def interrupted_configuration(run: RunFolder) -> Configuration | None:
    """Return the configuration of a new run whose preparation was interrupted and can be resumed, if there is one.

    Raises:
        UserError: it would have replaced an existing run, which must not be resumed in its place.
    """
    staged_run = prepared_folder(run)
    if not staged_run.exists:
        return None
    if run.exists:
        what = "holds a run that was to be replaced by one whose preparation was interrupted"
        fix = f"Repeat that command, with `overwrite=True`; or keep the run that is there: remove {staged_run.path}."
        raise UserError(what, file=run.path, fix=fix)
    return staged_run.configuration()


def configuration_to_resume(run: RunFolder) -> Configuration | None:
    """Return the configuration of the training that was interrupted, if there was one.

    Raises:
        UserError: it would have replaced an existing run, which must not be resumed in its place.
    """
    finish_replacing(run)
    interrupted = interrupted_configuration(run)
    if interrupted or not run.exists:
        return interrupted
    return run.configuration()


def configuration_to_train(
    earlier: Configuration | None,
    device: str,
    overrides: Mapping[str, Any],
    *,
    file: Path | None = None,
    preset: str | None = None,
    assignments: Iterable[str] = (),
    initial_settings: Settings | None = None,
    is_recipe: bool = False,
) -> Configuration:
    """Return the configuration of a training on a device, given that of the run that is resumed, if any.

    The other arguments are those of `resolve`.

    Raises:
        UserError: a setting is wrong, one of a resumed run has changed, or there is no such device.
    """
    if earlier and not file and not preset:
        return resumed(earlier, assignments, overrides)
    on_gpu = batches_for_gpu(device, earlier)
    requested = resolve(file, preset, assignments, overrides, initial_settings, is_recipe=is_recipe, on_gpu=on_gpu)
    # The same command again, as torchrun repeats it after a failure.
    return resumable(earlier, requested) if earlier else requested


def configuration_by_size(
    configuration: Configuration,
    configure: Callable[..., Configuration],
    pairs: Callable[[int], int],
    settings: Collection[str],
    say: Callable[[str], None],
    *,
    on_gpu: bool,
) -> Configuration:
    """Return the configuration of a translator, with the preset or recipe for the size of its corpus.

    Args:
        configuration: the configuration without a preset.
        configure: returns the configuration for the arguments `preset`, `file` and `is_recipe` of `resolve`.
        pairs: returns the number of pairs, counted up to a number.
        settings: the keys that the user has set; with another kind of model, the configuration stays.
        say: called with the choice.
        on_gpu: whether the training is on a GPU.

    Raises:
        UserError: the settings do not fit the preset, or a corpus can't be read.
    """
    if configuration.model.reads != "text" or "model.kind" in settings:
        return configuration
    count = pairs(SMALL_PAIRS + 1)
    *preferred, last = advice_for_size(count, on_gpu=on_gpu)
    number = f"{count:,}" if count <= SMALL_PAIRS else f"more than {SMALL_PAIRS:,}"
    for advice in (*preferred, last):
        source = {"file": recipes()[advice.name], "is_recipe": True} if advice.is_recipe else {"preset": advice.name}
        try:
            chosen = configure(**source)
        except UserError:
            if advice is last:
                raise
            continue
        say(f"{number} training pairs: {advice}; another one that you name takes its place")
        return chosen
    return configuration


def check_new_run(run: RunFolder, configuration: Configuration, *, overwrite: bool) -> None:
    """Check, before any work, that a new run may be started, and replaces nothing that it is made from.

    Raises:
        UserError: the folder contains a run or other files, or, even through links, a source of the new run.
    """
    run.refuse_overwrite(overwrite)
    if not run.path.is_dir():
        return
    data = configuration.data
    for source in configuration.training.other_runs:
        if _is_replaced(RunFolder(source).model_file, run):
            raise UserError(
                "is a run from which the new run is initialized", file=run.path, fix="Choose another folder."
            )
    names = (*data.train, *data.valid, *data.synthetic, *data.target_text, *data.mix, *data.valid_general)
    names += tuple(data.train_alignments)
    for file in (*chain.from_iterable(map(sides, names)), *map(Path, data.images)):
        if _is_replaced(file, run):
            fix = "Copy it elsewhere, or choose another folder."
            raise UserError(f"is part of the run in {run.path}, which would be replaced", file=file, fix=fix)


def _is_replaced(file: Path, run: RunFolder) -> bool:
    """Whether a file is among those of a run that a new run replaces, also through links and mounts."""
    file = file.resolve()
    if file.name in RUN_FILES and _same(file.parent, run.path):
        return True
    return any(_same(folder, run.path / "state") for folder in file.parents)


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one of them does not exist
        return False


def _replace(run: RunFolder) -> None:
    """Do the remaining steps of the replacement."""
    ready, moving, replaced = run.path / _READY, run.path / _MOVING, run.path / _REPLACED
    if ready.is_dir():
        _set_aside(run, replaced)
        ready.rename(moving)
    # The configuration comes last, because it makes the folder a run.
    for file in sorted(moving.iterdir(), key=lambda file: file.name == run.config_file.name):
        file.replace(run.path / file.name)
    moving.rmdir()
    sync_folder(run.path)
    shutil.rmtree(replaced, ignore_errors=True)


def _set_aside(run: RunFolder, replaced: Path) -> None:
    """Move the files of a run, and no others, into a folder; the configuration first.

    Raises:
        UserError: another program has a file of the run open, and Windows does not move it; the run stays unchanged.
    """
    run.tidy()
    events = (file.name for file in run.path.glob("events.out.tfevents.*"))
    names = [*RUN_FILES, *RUN_FOLDERS, *events]
    moved_names = []
    shutil.rmtree(replaced, ignore_errors=True)
    try:
        replaced.mkdir(exist_ok=True)
        for name in names:
            if (run.path / name).exists():
                (run.path / name).replace(replaced / name)
                moved_names.append(name)
    except OSError as error:
        for moved_name in reversed(moved_names):
            (replaced / moved_name).replace(run.path / moved_name)
        fix = "Close the program that has it open, such as TensorBoard."
        raise UserError(f"can't be replaced ({error.strerror})", file=run.path / name, fix=fix) from error
