"""From a configuration to a trained run: read, learn the tokenizer, build, train."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
from rich.console import Console

from translucid.data.corpus import Pair, read_pairs
from translucid.data.filtering import Skipped, keep
from translucid.data.tokenizer import Tokenizer
from translucid.devices import choose_device, tune_cpu
from translucid.errors import UserError
from translucid.models.build import build_model
from translucid.training.configuration import Configuration
from translucid.training.display import Display, clock
from translucid.training.epochs import Epochs
from translucid.training.run_folder import RunFolder
from translucid.training.trainer import Place, Trainer
from translucid.training.validation import Validator
from translucid.training.workers import Workers

HELD_OUT = 1000
"""Training pairs kept for validation when no validation file is given, but never more than 2 % of them."""


class Corpora:
    """The pairs of a run, filtered, with a count of what was skipped."""

    def __init__(self, train: Sequence[Pair], valid: Sequence[Pair], skipped: Skipped) -> None:
        """Both must hold pairs."""
        self.train, self.valid, self.skipped = train, valid, skipped


def read_corpora(configuration: Configuration, console: Console) -> Corpora:
    """Read and filter the training and validation files.

    Raises:
        UserError: a file is unreadable, or nothing is left of one.
    """
    data, skipped = configuration.data, Skipped()
    if not data.train:
        raise UserError("there is nothing to train on", fix="Give --train FILES, or data.train in the configuration.")
    with console.status("reading sentence pairs"):
        train = list(keep(read_pairs(*data.train), data.filter, skipped))
        valid = list(keep(read_pairs(*data.valid), data.filter, Skipped()))
    if not train:
        raise UserError(
            f"no sentence pairs are left ({skipped.summary()})", file=data.train[0], fix="See `translucid data stats`."
        )
    if data.valid and not valid:
        raise UserError("no sentence pairs are left", file=data.valid[0], fix="See `translucid data stats`.")
    if not valid:
        train, valid = _hold_out(train, configuration.training.seed)
        console.print(f"no validation files: {len(valid):,} training pairs are held out")
    return Corpora(train, valid, skipped)


def _hold_out(pairs: list[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split off some pairs, none of whose sources is left in training."""
    pairs = list(pairs)
    random.Random(seed).shuffle(pairs)
    count = min(HELD_OUT, len(pairs) // 50)
    if not count:
        raise UserError(f"{len(pairs)} pairs are too few to hold some out", fix="Give validation files with --valid.")
    held = {pair.source for pair in pairs[:count]}
    return [pair for pair in pairs[count:] if pair.source not in held], pairs[:count]


def run_experiment(
    configuration: Configuration,
    folder: Path,
    *,
    corpora: Corpora | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    console: Console | None = None,
) -> Place:
    """Train as configured and leave the run in `folder`.

    Args:
        configuration: all settings; for a resumed run, those of its folder, with later limits if wanted.
        folder: the run folder to make or to continue.
        corpora: the sentence pairs, if they do not come from the configured files.
        resume: go on from the last checkpoint of the folder; if there is none, begin.
        overwrite: replace a run that is there.
        device: `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.
        console: where progress is shown; standard error if not given.

    Raises:
        UserError: for everything that the user can put right.
    """
    place = choose_device(device)
    tune_cpu()
    with Workers.joined(place) as workers:
        console = console or Console(stderr=True)
        return _train(configuration, RunFolder(folder), corpora, resume, overwrite, place, console, workers)


def _train(
    configuration: Configuration,
    run: RunFolder,
    corpora: Corpora | None,
    resume: bool,
    overwrite: bool,
    device: torch.device,
    console: Console,
    workers: Workers,
) -> Place:
    if not workers.leads:
        console = Console(quiet=True)
    options, resuming = configuration.training, workers.gather(resume and run.exists)[0]
    corpora = corpora or read_corpora(configuration, console)
    if not workers.leads:
        workers.wait()  # until the first has begun the run
    if resuming or not workers.leads:
        tokenizer = run.tokenizer()
    else:
        with console.status("learning the vocabulary"):
            tokenizer = Tokenizer.learn(corpora.train, configuration.data.tokenizer, seed=options.seed)
    torch.manual_seed(options.seed)
    model = build_model(configuration.model, tokenizer.source_size, tokenizer.target_size)
    if workers.rank:  # the same weights as the first, but dropout of its own
        torch.manual_seed(options.seed + workers.rank)
    longest = min(configuration.data.max_tokens, model.max_length or configuration.data.max_tokens)
    with console.status("encoding the corpus"):
        epochs = Epochs(
            corpora.train,
            tokenizer,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            seed=options.seed,
            subword_dropout=configuration.data.subword_dropout,
            skipped=corpora.skipped,
        )
        validator = Validator(
            corpora.valid,
            tokenizer,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            sentences=options.validate_sentences,
        )
    trainer = Trainer(model, epochs, validator, run, options, device, workers)
    with run.locked() if workers.leads else nullcontext():
        if workers.leads:
            if resuming:
                run.tidy()
                run.save_configuration(configuration)
            else:
                run.begin(configuration, tokenizer, overwrite=overwrite)
            workers.wait()
        console.print(f"training on {corpora.skipped.summary()}")
        parameters = sum(parameter.numel() for parameter in model.parameters())
        console.print(
            f"model with {parameters / 1e6:.1f}M parameters, vocabulary of {tokenizer.target_size:,}, "
            f"{epochs.size(0):,} batches an epoch, on {device}{workers}"
        )
        if resuming:
            found = trainer.resume(
                lambda error: console.print(f"{error} The checkpoint before it is used.", soft_wrap=True)
            )
            console.print(f"resumed at step {trainer.place.step:,}" if found else "no checkpoint yet: begun anew")
        end = trainer.fit(Display(console))
    if not trainer.over:
        console.print(f"interrupted; go on with translucid train --resume --out {run.path}")
    console.print(
        f"step {end.step:,} after {clock(end.seconds)}; "
        f"best BLEU {max(end.best_bleu, 0):.1f} at step {end.best_step:,}; kept in {run.path}"
    )
    return end
