"""From a configuration to a trained run: read, learn the tokenizer, build, train."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import torch

from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.kernels.devices import choose_device, fixed_order
from translucid.kernels.process import tune_ours
from translucid.layers.low_rank import adapt
from translucid.models.build import build_model
from translucid.models.custom import CustomModel, check_contract
from translucid.models.model_options import CustomOptions
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration, fixed_settings
from translucid.runs.corpus_files import Corpora, read_corpora
from translucid.runs.initialization import begin, begun_tokenizer, lacks_pieces
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import finish_replacing, prepared_folder, refuse_to_replace_sources, staged
from translucid.runs.training_options import TrainingOptions
from translucid.training.dataset import Dataset, Initialization, TrainingData, sha256
from translucid.training.display import Display, clock
from translucid.training.frozen import freeze
from translucid.training.fuzzy_matches import with_matches
from translucid.training.gpu_memory import explained_when_full, refuse_too_large
from translucid.training.labels import LabelledDataset
from translucid.training.progress import Progress
from translucid.training.provenance import device_name, provenance
from translucid.training.record import board_missing
from translucid.training.running_text import RunningTextDataset
from translucid.training.text import TextDataset
from translucid.training.trainer import BEGUN, Checkpoint, Trainer
from translucid.training.workers import Workers


class Outcome(NamedTuple):
    """How a training ended."""

    progress: Progress
    """How far it came."""
    leads: bool
    """Whether this process is the first of those that train together, as one alone is."""


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
    """Train as configured and leave the run in `folder`; arguments and errors as of `prepared`.

    Raises:
        Interrupted: by Ctrl-C or SIGTERM; everything is saved.
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
    """Make all ready for a training as configured, which leaves its run in `folder`: what is left to do is `fit`.

    Settings of the process stay as they are; a program of its own gains speed by `kernels.process.configure_process`.

    Args:
        configuration: all settings; for a resumed run, those of its folder, with later limits if wanted.
        folder: the run folder to make or to continue; other trainings are kept out of it meanwhile.
        corpora: the sentence pairs, if they do not come from the configured files.
        resume: go on from the last checkpoint of the folder; if there is none, begin.
        overwrite: replace a run that is there.
        device: `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.
        console: where progress is shown; standard error if not given.
        command: what was given to `translucid`, for the record.

    Yields:
        The trainer, where the training stands, and what shows its progress.

    Raises:
        UserError: for everything that the user can put right.
    """
    place, options = choose_device(device), configuration.training
    tune_ours(exact=options.precision == "float32")
    with explained_when_full(options), fixed_order(options.deterministic), Workers.joined(place) as workers:
        console = (console or Console(stderr=True)) if workers.leads else Console(quiet=True)
        if workers.note:
            console.print(workers.note, soft_wrap=True)
        run = RunFolder(folder)
        if workers.leads:
            finish_replacing(run)
        resuming = workers.gather(resume and run.exists)[0]
        if workers.leads and not resuming:  # before anything is written, a lock included
            run.refuse_to_lose(overwrite)
            refuse_to_replace_sources(run, configuration)
        with run.locked() if workers.leads else nullcontext():
            setup = _Setup(run, place, console, workers)
            if resuming:
                trainer, files = _resumed(configuration, setup, corpora)
            else:
                trainer, files = _begun(configuration, setup, corpora, resume=resume, overwrite=overwrite)
            if workers.leads:
                run.add_provenance(provenance(files, device_name(place), trainer.progress.step, workers.count, command))
                if missing := board_missing():
                    console.print(missing, soft_wrap=True)
            yield trainer, Display(console)
            if not trainer.over:
                console.print(f"interrupted; go on with translucid train --resume --out {run.path}", soft_wrap=True)
            end = trainer.progress
            best = ""
            if end.best_score is not None:
                best = f"best {trainer.validator.told(end.best_score)} at step {end.best_step:,}; "
            console.print(f"step {end.step:,} after {clock(end.seconds)}; {best}kept in {run.path}")
            if trainer.interrupted:
                raise Interrupted(trainer.interrupted)


class _Setup(NamedTuple):
    """Where and by whom a training is run."""

    run: RunFolder
    device: torch.device
    console: Console
    workers: Workers


def _begun(
    configuration: Configuration, setup: _Setup, corpora: Corpora | None, *, resume: bool, overwrite: bool
) -> tuple[Trainer, Mapping[str, str]]:
    """Prepare a new run, and let it replace what is in its folder when nothing can be refused any more.

    It has a first checkpoint then, so that a resumed run need not find the weights again that it began with. Returned
    with the SHA-256 of each corpus file.
    """
    run, workers, console = setup.run, setup.workers, setup.console
    staging = staged(run, overwrite=overwrite, resume=resume) if workers.leads else nullcontext(prepared_folder(run))
    with staging as new:
        if workers.leads:
            new.save_configuration(configuration)  # for whoever resumes after a crash while the corpus is read
            with console.status("reading the corpus"):
                corpora = corpora or _corpora(configuration)
            corpora = with_matches(configuration, corpora, console)
            material = _material(configuration, corpora)
            configuration = material.configuration
            tokenizer = begun_tokenizer(configuration, lambda: material.learn(console), corpora)
            configuration = material.configuration  # which knows now how large the vocabulary is
            new.begin(configuration, tokenizer, corpora.valid if corpora.held_out else None)
        workers.wait()
        if not workers.leads:
            configuration = new.configuration()
            material = _material_again(configuration, new, corpora, console)
        trainer = _trainer(configuration, setup, new, material)
        trainer.save()
        tokenizer, validates_in_bfloat16 = trainer.validator.tokenizer, trainer.validator.bfloat16
        if sys.platform == "win32":
            del trainer.epochs, trainer.validator  # they map the encoded corpus, and no mapped file is moved
        workers.wait()  # until all have opened, or closed, what is moved now
    workers.wait()
    trainer.run = run
    if sys.platform == "win32":
        place = Initialization(run, tokenizer, trainer.weights.model, workers, Console(quiet=True), None)
        moved = material.lessons(place)
        trainer.epochs, trainer.validator = moved.epochs, moved.validator
        trainer.validator.bfloat16 = validates_in_bfloat16
    return trainer, material.corpora.files


def _resumed(configuration: Configuration, setup: _Setup, corpora: Corpora | None) -> tuple[Trainer, Mapping[str, str]]:
    """Go back to the last checkpoint; whatever can be refused is refused before anything in the folder is changed.

    Returned with the SHA-256 of each corpus file.
    """
    run, workers, console = setup.run, setup.workers, setup.console

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    if run.model_file.exists() and not run.state_file.parent.is_dir():
        fix = "Put its state/ back, or begin a new run with another --out."
        raise UserError("is a model to use, with no state/ to go on training from", file=run.path, fix=fix)
    material = _material_again(configuration, run, corpora, console)
    state = run.load_state(say)
    trainer = _trainer(configuration, setup, run, material, state)
    if state:
        trainer.resume(state, say)
    say(f"resumed at step {trainer.progress.step:,}" if state else "no checkpoint yet: begun anew")
    workers.wait()  # until all have read the checkpoint
    if workers.leads:
        run.tidy()
        run.forget_metrics_after(trainer.progress.validated_until)
        run.save_configuration(configuration)
    return trainer, material.corpora.files


def _trainer(
    configuration: Configuration,
    setup: _Setup,
    folder: RunFolder,
    material: Dataset,
    state: Checkpoint | None = None,
) -> Trainer:
    """Build the model and encode the corpus; `folder` is where the run is now, `state` its checkpoint."""
    options, workers, console = configuration.training, setup.workers, setup.console
    tokenizer = folder.tokenizer().between(*configuration.data.languages, configuration.data.tokenizer)
    torch.manual_seed(options.seed)
    model = _built(build_model, configuration, tokenizer)
    if state is None or options.l2_sp or options.distillation_weight:
        begin(model, options, tokenizer)
    _fit_for_tuning(model, options)
    if isinstance(model, CustomModel):
        assert isinstance(configuration.model, CustomOptions)
        check_contract(model, configuration.model.implementation, configuration.model.maps)
    if workers.rank:  # the same weights as the first, but dropout of its own
        torch.manual_seed(options.seed + workers.rank)
    origin = {
        "the tokenizer": tokenizer.fingerprint,
        "a setting that can not change (model, data, seed)": sha256(fixed_settings(configuration)),
    }
    if options.l2_sp or options.distillation_weight or options.adapter_rank:
        assert options.begin_from
        origin[BEGUN] = RunFolder(Path(options.begin_from)).model_digest()
    before = state[1].get("origin") if state else None
    if state:
        if not isinstance(before, dict):
            fix = "Begin a new run with another --out."
            raise UserError("is not a checkpoint of this run", file=folder.state_file, fix=fix)
        folder.refuse_changes(before, origin)
    refuse_too_large(model, setup.device, workers.count if options.sharded else 1)
    model.to(setup.device)
    lessons = material.lessons(Initialization(folder, tokenizer, model, workers, console, before))
    _tell_of_lines(lessons, material.corpora, folder, setup)
    origin |= lessons.fingerprints
    trainer = Trainer(
        model,
        lessons.epochs,
        lessons.validator,
        folder,
        options,
        setup.device,
        workers,
        origin,
        lessons.reward,
        validated_on=lessons.validated_on,
        begins_ready=bool(state) or not lacks_pieces(configuration),  # it can't use pieces that it has never read
    )
    sizes = {parameter.requires_grad: 0 for parameter in model.parameters()}
    for parameter in model.parameters():
        sizes[parameter.requires_grad] += parameter.numel()
    learned = f", of them {sizes[True] / 1e6:.2g}M that learn" if options.freeze or options.adapter_rank else ""
    console.print(
        f"model with {sum(sizes.values()) / 1e6:.1f}M parameters{learned}, vocabulary of {tokenizer.target_size:,}, "
        f"{lessons.epochs.size(0):,} batches an epoch, on {setup.device}"
        f"{' in bfloat16' if trainer.bfloat16 else ''}{workers}"
    )
    return trainer


def _tell_of_lines(lessons: TrainingData, corpora: Corpora, folder: RunFolder, setup: _Setup) -> None:
    """Show how much there is to learn from, and which lines were skipped."""
    console, unit = setup.console, lessons.skipped.unit
    console.print(f"training on {lessons.skipped.summary()}")
    if corpora.bad and (count := len(corpora.bad.first)):
        skipped = f"1 line is no {unit} and" if count == 1 else f"{count:,} lines are no {unit}s and"
        console.print(f"of the validation files, {skipped} skipped")
    if folder.bad_lines_file.exists():
        console.print(f"the lines that are no {unit}s are in {setup.run.bad_lines_file}", soft_wrap=True)


def _material_again(
    configuration: Configuration, folder: RunFolder, corpora: Corpora | None, console: Console
) -> Dataset:
    """Read the corpus of a run that was begun."""
    corpora = corpora or _corpora(configuration, folder.held_out())
    return _material(configuration, with_matches(configuration, corpora, console))


def _built(build: Callable[..., Model], configuration: Configuration, tokenizer: Tokenizer) -> Model:
    sizes = tokenizer.source_size, tokenizer.target_size
    return build(configuration.model, *sizes, tokenizer.target_vocabulary)


def _fit_for_tuning(model: Model, options: TrainingOptions) -> None:
    """Freeze what is to stay as it is, and let the rest learn differences of low rank, if it is to.

    Raises:
        UserError: nothing is left to learn.
    """
    freeze(model, options.freeze)
    rank, scale, parts = options.adapter_rank, options.adapter_scale, options.adapter_parts
    if rank and not adapt(model, rank, scale, parts):
        raise UserError("training.freeze leaves no matrix that training.adapter_rank is for", fix="Name fewer parts.")


def _corpora(configuration: Configuration, held_out: list[Pair] | None = None) -> Corpora:
    texts = configuration.model.reads in {"running text", "texts with labels"}
    return read_corpora(configuration.data, configuration.training.seed, held_out, texts=texts)


def _material(configuration: Configuration, corpora: Corpora) -> Dataset:
    if configuration.model.reads == "text":
        return TextDataset(configuration, corpora)
    if configuration.model.reads == "running text":
        return RunningTextDataset(configuration, corpora)
    if configuration.model.reads == "texts with labels":
        return LabelledDataset(configuration, corpora)
    from translucid.training.images import ImageDataset  # which needs Pillow

    return ImageDataset(configuration, corpora)
