"""From a configuration to a trained run: read the corpus, learn the vocabulary, build the model, train.

Errors of a training that does not fit into the memory of a GPU become advice here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from bitext.pair import Pair
from translucid import __version__
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.kernels.devices import (
    choose_device,
    fixed_order,
    gpu_memory,
    is_memory_full,
    memory_for_training,
    tune_pytorch,
)
from translucid.models.build import build_model
from translucid.models.custom import CustomModel, check_contract
from translucid.models.kinds import resolved, task_of
from translucid.models.model_options import CustomOptions
from translucid.runs.configuration import FIXED_SETTINGS, Configuration, fixed_settings, fixed_values
from translucid.runs.corpus_files import Corpora, read_corpora
from translucid.runs.initialization import begin, initial_tokenizer, lacks_pieces
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import flat
from translucid.runs.staging import check_new_run, finish_replacing, prepared_folder, staged
from translucid.runs.training_options import TrainingOptions
from translucid.training.dataset import Dataset, Initialization, TrainingData, sha256
from translucid.training.hardware.ddp import Workers
from translucid.training.hardware.precision import choose_precision
from translucid.training.records.record import Display, Progress, clock, device_name, provenance
from translucid.training.records.trackers import check_packages
from translucid.training.steps import dataset_steps, training_steps
from translucid.training.trainer import Checkpoint, Trainer
from translucid.training.weights import is_sharded, sizes


class Outcome(NamedTuple):
    """The result of a training."""

    progress: Progress
    leads: bool
    """Whether this process is the first of those that train together, or the only one."""


def run_experiment(
    configuration: Configuration,
    folder: Path,
    *,
    corpora: Corpora | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    console: Console | None = None,
    command: Sequence[str] | None = None,
) -> Outcome:
    """Train as configured and leave the run in `folder`; the arguments are those of `prepared`.

    Raises:
        Interrupted: by Ctrl-C or SIGTERM, after everything has been saved.
    """
    with prepared(
        configuration,
        folder,
        corpora=corpora,
        resume=resume,
        overwrite=overwrite,
        device=device,
        console=console,
        command=command,
    ) as (trainer, display):
        trainer.fit(display)
    return Outcome(trainer.progress, trainer.workers.leads)


@contextmanager
def prepared(
    configuration: Configuration,
    folder: Path,
    *,
    corpora: Corpora | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    console: Console | None = None,
    command: Sequence[str] | None = None,
) -> Iterator[tuple[Trainer, Display]]:
    """Prepare a training as configured, which leaves its run in `folder`; the caller calls `Trainer.fit`.

    Settings of the process stay unchanged. A program can call `kernels.devices.configure_process` for more speed.

    Args:
        configuration: all settings; for a resumed run, those of its folder, possibly with new limits.
        folder: the run folder to create or to continue; it is locked against other trainings.
        corpora: the sentence pairs, if they do not come from the configured files.
        resume: continue from the last checkpoint in the folder, if there is one.
        overwrite: replace an existing run.
        device: `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.
        console: the console for progress; standard error by default.
        command: the arguments of the command `translucid`, for the provenance.

    Yields:
        The trainer and the display of its progress.

    Raises:
        UserError: for every error that the user can correct.
    """
    torch_device, options = choose_device(device), configuration.training
    tune_pytorch(exact=options.precision == "float32")
    with explained_when_full(options), fixed_order(options.deterministic), Workers.joined(torch_device) as workers:
        if not workers.leads:
            console = Console(quiet=True)
        console = console or Console(stderr=True)
        if workers.note:
            console.print(workers.note, soft_wrap=True)
        run = RunFolder(folder)
        if workers.leads:
            finish_replacing(run)
        note = check_packages(options.trackers) if workers.leads else ""
        resuming = workers.gather(resume and run.exists)[0]
        if workers.leads and not resuming:  # before anything is written, even a lock
            check_new_run(run, configuration, overwrite=overwrite)
        with run.locked() if workers.leads else nullcontext():
            setup = _Setup(run, torch_device, console, workers)
            if resuming:
                trainer, files = _resumed_trainer(configuration, setup, corpora)
            else:
                trainer, files = _new_trainer(configuration, setup, corpora, resume=resume, overwrite=overwrite)
            if workers.leads:
                origin = provenance(files, device_name(torch_device), trainer.progress.step, workers.count, command)
                run.add_provenance(origin | {"precision": trainer.precision._asdict()})
            if note:
                console.print(note, soft_wrap=True)
            yield trainer, Display(console)
            _show_end(trainer, console)
            if trainer.interrupted:
                raise Interrupted(trainer.interrupted)


def _show_end(trainer: Trainer, console: Console) -> None:
    """Show how far the training came, and where its run is."""
    progress, folder, best = trainer.progress, trainer.run.path, ""
    if not trainer.finished:
        console.print(f"interrupted; resume with `train(resume=True, out={folder})`", soft_wrap=True)
    if progress.best_score is not None:
        best = f"best {trainer.validator.describe(progress.best_score)} at step {progress.best_step:,}; "
    console.print(f"step {progress.step:,} after {clock(progress.seconds)}; {best}kept in {folder}")


class _Setup(NamedTuple):
    """Where a training runs: its folder, device, console and processes."""

    run: RunFolder
    device: torch.device
    console: Console
    workers: Workers


def _new_trainer(
    configuration: Configuration, setup: _Setup, corpora: Corpora | None, *, resume: bool, overwrite: bool
) -> tuple[Trainer, Mapping[str, str]]:
    """Prepare a new run in a staging folder, and move it to its folder when no error can occur any more.

    The new run has a checkpoint, so resuming does not need the run again from which it was initialized.

    Returns:
        The trainer, and the SHA-256 of each corpus file.
    """
    run, workers, console = setup.run, setup.workers, setup.console
    staging = staged(run, overwrite=overwrite, resume=resume) if workers.leads else nullcontext(prepared_folder(run))
    with staging as staged_run:
        if workers.leads:
            staged_run.save_configuration(configuration)  # for --resume after a crash while the corpus is read
            with console.status("reading the corpus"):
                corpora = corpora or _corpora(configuration)
            dataset = _dataset(configuration, corpora, console)
            tokenizer = initial_tokenizer(
                dataset.configuration,
                lambda: dataset.learn(console),
                dataset.corpora,
                lambda line: console.print(line, soft_wrap=True),
            )
            configuration = dataset.configuration  # `learn` has added the size of the vocabulary
            held_out = dataset.corpora.valid if dataset.corpora.held_out else None
            staged_run.begin(configuration, tokenizer, held_out)
        workers.wait()
        if not workers.leads:
            configuration = staged_run.configuration()
            dataset = _dataset_of_run(configuration, staged_run, corpora, console)
        trainer = _trainer(configuration, setup, staged_run, dataset)
        trainer.save()
        tokenizer, validates_in_bfloat16 = trainer.validator.tokenizer, trainer.validator.bfloat16
        if sys.platform == "win32":
            # They map files of the encoded corpus into memory, and Windows cannot move a mapped file.
            del trainer.epochs, trainer.validator
        workers.wait()  # until all processes have opened, or on Windows closed, the files to move
    workers.wait()
    trainer.run = run
    if sys.platform == "win32":
        start = Initialization(run, tokenizer, trainer.weights.model, workers, Console(quiet=True), None)
        data = dataset.training_data(start)
        trainer.epochs, trainer.validator = data.epochs, data.validator
        trainer.validator.bfloat16 = validates_in_bfloat16
    return trainer, dataset.corpora.files


def _resumed_trainer(
    configuration: Configuration, setup: _Setup, corpora: Corpora | None
) -> tuple[Trainer, Mapping[str, str]]:
    """Restore the last checkpoint; all errors are raised before anything in the folder changes.

    Returns:
        The trainer, and the SHA-256 of each corpus file.
    """
    run, workers, console = setup.run, setup.workers, setup.console

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    if run.model_file.exists() and not run.state_file.parent.is_dir():
        fix = "Put its state/ back, or begin a new run with another `out`."
        raise UserError("has a model, but no state/ to resume the training from", file=run.path, fix=fix)
    dataset = _dataset_of_run(configuration, run, corpora, console)
    state = run.load_state(say)
    trainer = _trainer(configuration, setup, run, dataset, state)
    if state:
        trainer.resume(state, say)
        say(f"resumed at step {trainer.progress.step:,}")
    else:
        say("no checkpoint yet: starting from the beginning")
    workers.wait()  # until all processes have read the checkpoint
    if workers.leads:
        run.tidy()
        run.forget_metrics_after(trainer.progress.validated_until)
        run.save_configuration(configuration)
    return trainer, dataset.corpora.files


def _trainer(
    configuration: Configuration, setup: _Setup, folder: RunFolder, dataset: Dataset, state: Checkpoint | None = None
) -> Trainer:
    """Build the model and encode the corpus of a run.

    `folder`: the current folder of the run, which is a staging folder for a new run; `state`: its checkpoint, if any.
    """
    options, workers, console = configuration.training, setup.workers, setup.console
    steps, tokenizer = training_steps(configuration), folder.tokenizer()
    if not configuration.data.is_multilingual:
        tokenizer = tokenizer.between(*configuration.data.languages, configuration.data.tokenizer)
    torch.manual_seed(options.seed)
    model = build_model(configuration.model, tokenizer.source_size, tokenizer.target_size, tokenizer.target_vocabulary)
    if state is None or any(step.needs_initial_weights for step in steps):
        begin(model, options, tokenizer)
    for step in steps:
        step.prepare(model)
    if isinstance(model, CustomModel):
        assert isinstance(configuration.model, CustomOptions)
        check_contract(model, configuration.model.implementation, configuration.model.maps)
    if workers.rank:  # all processes have the same weights, but each its own dropout
        torch.manual_seed(options.seed + workers.rank)
    origin = {
        "the tokenizer": tokenizer.fingerprint,
        FIXED_SETTINGS: sha256(fixed_settings(configuration)),
    }
    for step in steps:
        origin |= step.fingerprints()
    checkpoint_origin = None
    if state:
        checkpoint_origin = state[1].get("origin")
        if not isinstance(checkpoint_origin, dict):
            fix = "Begin a new run with another `out`."
            raise UserError("is not a checkpoint of this run", file=folder.state_file, fix=fix)
        if checkpoint_origin.get(FIXED_SETTINGS) != origin[FIXED_SETTINGS]:
            raise _other_settings(folder, configuration)
        folder.refuse_changes(checkpoint_origin, origin)
    sharded = is_sharded(options, workers)
    refuse_too_large(model, setup.device, workers.count if sharded else 1)
    if not sharded:  # `ShardedWeights` moves one block at a time
        model.to(setup.device)
    data = dataset.training_data(Initialization(folder, tokenizer, model, workers, console, checkpoint_origin))
    _show_data_size(data, dataset.corpora, folder, setup)
    trainer = Trainer(
        model,
        data.epochs,
        data.validator,
        folder,
        options,
        setup.device,
        choose_precision(options, setup.device, workers, state[1].get("precision") if state else None),
        workers,
        origin | data.fingerprints,
        steps=[*steps, *data.steps],
        validated_on=data.validated_on,
        # The initial model cannot use pieces that it has never read.
        begins_ready=bool(state) or not lacks_pieces(configuration),
    )
    _show_size(trainer, tokenizer, console)
    return trainer


def _other_settings(run: RunFolder, configuration: Configuration) -> UserError:
    """Return the error about a checkpoint whose settings differ from those of a run that is to be resumed.

    `config.yaml` still holds the settings of the run's last training. If these are equal to the current ones, it is
    another version of this package that wrote the checkpoint.
    """
    before, now = flat(fixed_values(run.configuration())), flat(fixed_values(configuration))
    for key in {**before, **now}:
        if before.get(key) != now.get(key):
            problem = f"{key} can't change in a resumed run, from {_yaml(before.get(key))} to {_yaml(now.get(key))}"
            return UserError(problem, file=run.path, fix="Leave it as it was, or begin a new run with another `out`.")
    problem = f"its training was begun by translucid {run.first_version()}, whose settings were others: "
    problem += f"translucid {__version__} can use its model, but can't resume its training"
    fix = f"Begin a new run from its weights (`begin_from={run.path}`), or resume it with the version that began it."
    return UserError(problem, file=run.path, fix=fix)


def _yaml(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]} …"


def _show_size(trainer: Trainer, tokenizer: Tokenizer, console: Console) -> None:
    """Show the size of the model, of its vocabulary and of an epoch, and the precision."""
    options, (learned, frozen) = trainer.options, sizes(trainer.weights.model)
    size = f"{(learned + frozen) / 1e6:.1f}M parameters"
    if options.freeze or options.adapter_rank:
        size += f", of them {learned / 1e6:.2g}M that learn"
    console.print(
        f"model with {size}, vocabulary of {tokenizer.target_size:,}, {trainer.epochs.size(0):,} batches an epoch, "
        f"on {trainer.device}{trainer.workers}"
    )
    console.print(f"large products in {trainer.precision}")
    if trainer.uncaptured:
        console.print(f"training.captured has no effect with {trainer.uncaptured}")


@contextmanager
def explained_when_full(options: TrainingOptions) -> Iterator[None]:
    """Turn PyTorch's errors about a full GPU into advice to use smaller batches.

    Raises:
        UserError: the memory is full.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_memory_full(error):
            raise
        halved = max(1, options.batch_tokens // 2)
        fix = (
            f"Lower training.batch_tokens (now {options.batch_tokens}), and raise training.accumulate (now "
            f"{options.accumulate}) by the same factor, which learns the same from each update: "
            f"training.batch_tokens={halved} training.accumulate={2 * options.accumulate}."
        )
        raise UserError(f"the memory of the GPU is full ({str(error).splitlines()[0]})", fix=fix) from error


def refuse_too_large(model: nn.Module, device: torch.device, parts: int) -> None:
    """Compare the memory that the weights need in training with the memory of the GPU.

    `parts`: the number of processes that share the weights.

    Raises:
        UserError: the weights do not fit, even with small batches.
    """
    memory = gpu_memory(device)
    learned, frozen = sizes(model)
    needed = memory_for_training(learned, frozen) // parts
    if memory is not None and needed > memory:
        raise UserError(
            f"to train {learned / 1e6:,.0f}M weights takes at least {needed / 2**30:.1f} GiB, and the GPU has "
            f"{memory / 2**30:.1f} GiB of memory",
            fix="Take a smaller model, or share the weights among several GPUs with training.sharded=true.",
        )


def _show_data_size(data: TrainingData, corpora: Corpora, folder: RunFolder, setup: _Setup) -> None:
    """Show the size of the training data, and how many lines were skipped."""
    console, unit = setup.console, data.skipped.unit
    console.print(f"training on {data.skipped.summary()}")
    bad_count = len(corpora.bad.validation_lines) if corpora.bad else 0
    if bad_count:
        skipped = f"1 line is no {unit} and" if bad_count == 1 else f"{bad_count:,} lines are no {unit}s and"
        console.print(f"of the validation files, {skipped} skipped")
    if folder.bad_lines_file.exists():
        console.print(f"the lines that are no {unit}s are in {setup.run.bad_lines_file}", soft_wrap=True)


def _dataset_of_run(
    configuration: Configuration, folder: RunFolder, corpora: Corpora | None, console: Console
) -> Dataset:
    """Read the corpus of a run that exists already."""
    return _dataset(configuration, corpora or _corpora(configuration, folder.held_out()), console)


def _corpora(configuration: Configuration, held_out: list[Pair] | None = None) -> Corpora:
    texts = not task_of(configuration.model.reads).reads_pairs
    training = configuration.training
    return read_corpora(configuration.data, training.seed, held_out, texts=texts, with_links=training.needs_word_links)


def _dataset(configuration: Configuration, corpora: Corpora, console: Console) -> Dataset:
    """Return the dataset for the kind of model, with the corpora that the settings ask for."""
    for step in dataset_steps(configuration):
        corpora = step.corpora(corpora, console)
    dataset: Dataset = resolved(task_of(configuration.model.reads).dataset)(configuration, corpora)
    return dataset
