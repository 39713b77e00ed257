"""From a configuration to a trained run: read, learn the tokenizer, build, train."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import torch

from translucid.data.corpus import Pair
from translucid.data.tokenizer import Tokenizer
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.kernels.devices import choose_device, fixed_order
from translucid.kernels.process import tune_ours
from translucid.layers.low_rank import adapt
from translucid.models.build import build_model, hollow_model
from translucid.models.protocol import Model
from translucid.runs.beginning import begin, begun_tokenizer, lacks_pieces
from translucid.runs.configuration import Configuration, fixed_settings
from translucid.runs.corpora import Corpora, read_corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.training_options import TrainingOptions
from translucid.training.display import Display, clock
from translucid.training.frozen import freeze
from translucid.training.labels import LabelledMaterial
from translucid.training.matched import with_matches
from translucid.training.material import Beginning, Material, sha256
from translucid.training.provenance import provenance
from translucid.training.record import board_missing
from translucid.training.running_text import RunningTextMaterial
from translucid.training.text import TextMaterial
from translucid.training.trainer import BEGUN, Progress, Trainer
from translucid.training.workers import Workers


class Outcome(NamedTuple):
    """How a training ended."""

    progress: Progress
    """How far it came."""
    over: bool
    """Whether it came to its end; False if it was interrupted."""
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
    """Train as configured and leave the run in `folder`; arguments and errors as of `prepared`."""
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
    return Outcome(trainer.progress, trainer.over, trainer.workers.leads)


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

    Settings of the process stay as they are; a program of its own gains some speed by `kernels.process.take_over`.

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
    place = choose_device(device)
    tune_ours()
    with fixed_order(configuration.training.deterministic), Workers.joined(place) as workers:
        console = (console or Console(stderr=True)) if workers.leads else Console(quiet=True)
        run = RunFolder(folder)
        resuming = workers.gather(resume and run.exists)[0]
        begins = workers.leads and not resuming
        if begins:
            run.refuse_to_lose(overwrite)
            with console.status("reading the corpus"):
                corpora = corpora or _corpora(configuration)
            corpora = with_matches(configuration, corpora, console)
            material = _material(configuration, corpora)
            configuration = material.configuration
            tokenizer = begun_tokenizer(configuration, lambda: material.learn(console), corpora)
            if configuration.training.freeze:  # a wrong name is said before anything is written
                _fit_for_tuning(_built(hollow_model, configuration, tokenizer), configuration.training)
        with run.locked() if workers.leads else nullcontext():
            if begins:
                assert corpora is not None
                run.begin(configuration, tokenizer, corpora.valid if corpora.held_out else None, overwrite=overwrite)
            workers.wait()
            if not (begins or resuming):
                configuration = run.configuration()
            if not begins:
                corpora = corpora or _corpora(configuration, run.held_out())
                corpora = with_matches(configuration, corpora, console)
                material = _material(configuration, corpora)
            trainer = _trainer(configuration, run, material, resuming, place, console, workers, command)
            yield trainer, Display(console)
            if not trainer.over:
                console.print(f"interrupted; go on with translucid train --resume --out {run.path}")
            end = trainer.progress
            best = ""
            if end.best_score is not None:
                best = f"best {trainer.validator.told(end.best_score)} at step {end.best_step:,}; "
            console.print(f"step {end.step:,} after {clock(end.seconds)}; {best}kept in {run.path}")


def _trainer(
    configuration: Configuration,
    run: RunFolder,
    material: Material,
    resuming: bool,
    device: torch.device,
    console: Console,
    workers: Workers,
    command: Sequence[str] | None,
) -> Trainer:
    """Build the model, encode the corpus, and go back to the last checkpoint if there is one."""
    options = configuration.training
    tokenizer = run.tokenizer().between(*configuration.data.languages, configuration.data.tokenizer)
    torch.manual_seed(options.seed)
    model = _built(build_model, configuration, tokenizer)
    if not resuming or options.stay_near or options.stay_like:
        begin(model, options, tokenizer)
    _fit_for_tuning(model, options)
    if workers.rank:  # the same weights as the first, but dropout of its own
        torch.manual_seed(options.seed + workers.rank)
    # Whatever can be refused is refused before anything in the folder of a run that is there is changed.
    if resuming and run.model_file.exists() and not run.state_file.parent.is_dir():
        fix = "Put its state/ back, or begin a new run with another --out."
        raise UserError("is a model to use, with no state/ to go on training from", file=run.path, fix=fix)
    state = run.load_state(lambda damage: console.print(damage, soft_wrap=True)) if resuming else None
    origin = {
        "the tokenizer": tokenizer.fingerprint,
        "a setting that can not change (model, data, seed)": sha256(fixed_settings(configuration)),
    }
    if options.stay_near or options.stay_like or options.adapter_rank:
        assert options.begin_from
        origin[BEGUN] = RunFolder(Path(options.begin_from)).model_digest()
    before = state[1].get("origin") if state else None
    if state:
        if not isinstance(before, dict):
            fix = "Begin a new run with another --out."
            raise UserError("is not a checkpoint of this run", file=run.state_file, fix=fix)
        run.refuse_changes(before, origin)
    model.to(device)
    lessons, corpora = material.lessons(Beginning(run, tokenizer, model, workers, console, before)), material.corpora
    console.print(f"training on {lessons.skipped.summary()}")
    unit = lessons.skipped.unit
    if corpora.bad and (count := len(corpora.bad.first)):
        skipped = f"1 line is no {unit} and" if count == 1 else f"{count:,} lines are no {unit}s and"
        console.print(f"of the validation files, {skipped} skipped")
    if run.bad_lines_file.exists():
        console.print(f"the lines that are no {unit}s are in {run.bad_lines_file}", soft_wrap=True)
    origin |= lessons.fingerprints
    trainer = Trainer(
        model,
        lessons.epochs,
        lessons.validator,
        run,
        options,
        device,
        workers,
        origin,
        lessons.reward,
        begins_ready=bool(state) or not lacks_pieces(configuration),  # it can't use pieces that it has never read
    )
    sizes = {parameter.requires_grad: 0 for parameter in model.parameters()}
    for parameter in model.parameters():
        sizes[parameter.requires_grad] += parameter.numel()
    learned = f", of them {sizes[True] / 1e6:.2g}M that learn" if options.freeze or options.adapter_rank else ""
    console.print(
        f"model with {sum(sizes.values()) / 1e6:.1f}M parameters{learned}, vocabulary of {tokenizer.target_size:,}, "
        f"{lessons.epochs.size(0):,} batches an epoch, on {device}{' in bfloat16' if trainer.bfloat16 else ''}{workers}"
    )
    if resuming:
        if state:
            trainer.resume(state, lambda damage: console.print(damage, soft_wrap=True))
        console.print(f"resumed at step {trainer.progress.step:,}" if state else "no checkpoint yet: begun anew")
        workers.wait()  # until all have read the checkpoint
        if workers.leads:
            run.tidy()
            run.forget_metrics_after(trainer.progress.step if state else -1)
            run.save_configuration(configuration)
    if workers.leads:
        run.add_provenance(provenance(corpora.files, str(device), trainer.progress.step, workers.count, command))
    if workers.leads and (missing := board_missing()):
        console.print(missing, soft_wrap=True)
    return trainer


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


def _material(configuration: Configuration, corpora: Corpora) -> Material:
    if configuration.model.reads == "text":
        return TextMaterial(configuration, corpora)
    if configuration.model.reads == "running text":
        return RunningTextMaterial(configuration, corpora)
    if configuration.model.reads == "texts with labels":
        return LabelledMaterial(configuration, corpora)
    from translucid.training.images import ImageMaterial  # which needs Pillow

    return ImageMaterial(configuration, corpora)
