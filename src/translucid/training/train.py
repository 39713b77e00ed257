"""Training from Python: `translucid.train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bitext.pair import Pair
from translucid.ground.console import Console
from translucid.models.user_code import allow_code, allow_named_code
from translucid.runs.configuration import batches_for_gpu
from translucid.runs.corpus_files import Corpora, count_pairs
from translucid.runs.data_options import DataOptions
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import configuration_by_size, configuration_to_resume, configuration_to_train
from translucid.training.experiment import run_experiment
from translucid.training.hardware.ddp import is_first_process


def train(
    data: str | Path | Sequence[str | Path] | Sequence[tuple[str, str]],
    out: str | Path,
    *,
    valid: str | Path | Sequence[str | Path] | Sequence[tuple[str, str]],
    model: str | None = None,
    settings: Mapping[str, Any] | None = None,
    code: Sequence[str | Path] = (),
    device: str = "auto",
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> Path:
    """Train a model as `translucid train` does, and return its run folder.

    `Translator.load(translucid.train("pairs.tsv", "runs/mine", valid="dev.tsv"))` is a translator.

    Args:
        data: corpus files to train on, or pairs of a source and its translation.
        out: the run folder to write.
        valid: corpus files, or pairs, to validate with; pairs if `data` is pairs.
        model: a preset, or the file and class of your own model, such as `code/my_model.py:MyModel`; the number of
            pairs decides if not given, as for the command.
        settings: values by key, such as `{"training.max_steps": 1000}`.
        code: your Python files that may be executed, if `model` or `settings` name them without their folders.
        device: `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.
        resume: whether to continue from the last checkpoint in `out`, if there is one.
        overwrite: whether to replace a run in `out`.
        quiet: whether to show no progress on standard error.

    Raises:
        UserError: a file, a setting or the folder can't be used.
        Interrupted: by Ctrl-C or SIGTERM; everything is saved.
        ValueError: one of `data` and `valid` is files and the other is pairs.
    """
    allow_code(*code)
    model = allow_named_code(model, settings or {})
    files, pairs = _files_and_pairs(data)
    valid_files, valid_pairs = _files_and_pairs(valid)
    if bool(pairs) != bool(valid_pairs):
        raise ValueError("data and valid have to be both files or both pairs")
    overrides = dict(settings or {})
    if files:
        overrides |= {"data.train": files, "data.valid": valid_files}
    earlier = configuration_to_resume(RunFolder(Path(out))) if resume else None
    configure = partial(configuration_to_train, earlier, device, overrides)
    configuration = configure(preset=model)
    console = Console(stderr=True, quiet=quiet or not is_first_process())
    if not earlier and not model:
        configuration = configuration_by_size(
            configuration,
            configure,
            partial(_number_of_pairs, configuration.data, pairs),
            overrides,
            partial(console.print, soft_wrap=True),
            on_gpu=batches_for_gpu(device, None),
        )
    run_experiment(
        configuration,
        Path(out),
        corpora=Corpora.of(pairs, valid_pairs) if pairs else None,
        resume=resume,
        overwrite=overwrite,
        device=device,
        console=console,
    )
    return Path(out)


def _number_of_pairs(options: DataOptions, pairs: Sequence[Pair], most: int) -> int:
    """Return the number of pairs in memory, or of those in the files; counting stops at `most`."""
    return len(pairs) if pairs else count_pairs(options, most)


def _files_and_pairs(data: str | Path | Sequence[Any]) -> tuple[list[str], list[Pair]]:
    """Return the names of the files and the pairs in `data`, which has only one of both kinds."""
    files: list[str] = []
    pairs: list[Pair] = []
    items: Sequence[Any] = [data] if isinstance(data, str | Path) else data
    for item in items:
        if isinstance(item, str | Path):
            files.append(str(item))
        else:
            pairs.append(item if isinstance(item, Pair) else Pair(*item))
    return files, pairs
