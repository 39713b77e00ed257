"""`translucid train`.

**Examples**

Train on your own pairs, one `source TAB target` per line; then resume for longer:

    translucid train --train pairs.tsv --valid dev.tsv --out runs/mine

    translucid train --resume --out runs/mine --set training.max_minutes=120

Use a preset for little data on a Moses pair, or a recipe:

    translucid train --model tiny --train 'train.{en,de}.gz' --out runs/de --set training.max_minutes=10

    translucid train tatoeba-eng-spa --train train.tsv --valid dev.tsv --out runs/es

Train three runs that differ in their seed, and compare their mean (docs/evaluation.md):

    translucid train --train train.tsv --valid dev.tsv --seeds 1 2 3 --out runs/es

Fine-tune a run on your texts, with general pairs as four of five (docs/fine-tuning.md):

    translucid train --init-from runs/es --train mine.tsv --mix general.tsv=0.8 --out runs/mine

Train one model for several languages, in both directions (docs/multilingual.md):

    translucid train --train fr.tsv:en-fr de.tsv:en-de --valid dev.tsv:en-fr --both-directions --out runs/many

Train a captioner (docs/captions.md), or a language model or classifier (docs/language-models.md):

    translucid train --model caption-soft --train captions.tsv --images photographs.tar --out runs/eyes

`translucid models` lists presets and recipes, `translucid models --keys` lists all settings.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer import Argument, Option

from bitext.readers.lines import STANDARD_INPUT, kind_of, opened, refuse_twice
from translucid.cli import option
from translucid.cli.arguments import pair_up, refuse_to_replace
from translucid.cli.printing import with_examples
from translucid.ground.atomic import output
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.models.kinds import task_of

Files = dict[str, list[str]]
"""The files of each setting, such as `data.train`."""


class RunOptions(NamedTuple):
    """Run."""

    out: Annotated[Path | None, Option(help="The run folder to make or continue.")] = None
    model: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="A preset, or the file and class of your own model; for pairs, their number decides if not given.",
            autocompletion=option.complete_presets,
        ),
    ] = None
    settings: option.Set = None
    seeds: Annotated[
        list[int] | None,
        Option(
            metavar="SEEDS",
            help="Train a run for each of these seeds, in OUT/seed-1 and so on.",
            min=0,
            max=(1 << 63) - 1,
        ),
    ] = None
    resume: Annotated[bool, Option("--resume", help="Continue from the last checkpoint of --out.")] = False
    overwrite: option.Overwrite = False
    device: option.Device = "auto"
    profile: Annotated[bool, Option("--profile", help="Print what updates spend their time on.")] = False
    tune: Annotated[bool, Option(help="On a CPU, finally run `translucid tune speed`.")] = True


class DataFiles(NamedTuple):
    """Data."""

    train_files: Annotated[
        list[str] | None,
        option.files(
            "Training pairs: .tsv, .jsonl, name.{en,de}, .tmx, .po, .xliff, .parquet; or texts: .txt, .jsonl.",
            "--train",
        ),
    ] = None
    valid_files: Annotated[list[str] | None, option.files("Validation pairs, or texts.", "--valid")] = None
    synthetic: Annotated[list[str] | None, option.files("More pairs, with sources from `data back-translate`.")] = None
    mix: Annotated[list[str] | None, Option(metavar="FILES=SHARE", help="More pairs, with a share of an epoch.")] = None
    target_text: Annotated[list[str] | None, option.files("Text of the target language, for the decoder.")] = None
    train_alignments: Annotated[
        list[str] | None, option.files("For guided alignment: word links, a file for each of --train.")
    ] = None
    images: Annotated[list[str] | None, option.files("For captions: folders and .tar files of images.")] = None
    both_directions: Annotated[bool, Option("--both-directions", help="Learn both directions of all pairs.")] = False
    skip_bad: option.SkipBad = False
    seen_index: Annotated[
        bool,
        Option("--seen-index/--no-seen-index", help="Keep hashes of the sentences, to report which ones a test has."),
    ] = True

    def files(self) -> Files:
        """Return the files of sentences by their setting."""
        files = {
            "data.train": self.train_files,
            "data.valid": self.valid_files,
            "data.synthetic": self.synthetic,
            "data.target_text": self.target_text,
        }
        return {key: names for key, names in files.items() if names}

    def names(self) -> list[str]:
        """Return all names of corpora, those of --mix with their share."""
        return [*chain.from_iterable(self.files().values()), *(self.mix or ())]

    def settings(self) -> dict[str, object]:
        """Return the other settings."""
        settings = {
            "data.mix": shares(self.mix or []),
            "data.train_alignments": self.train_alignments,
            "data.images": self.images,
            "data.both_directions": self.both_directions,
            "data.skip_bad": self.skip_bad,
        }
        given: dict[str, object] = {key: value for key, value in settings.items() if value}
        return given if self.seen_index else given | {"data.seen_index": False}


class Initialization(NamedTuple):
    """Initialization."""

    init_from: Annotated[
        list[Path] | None,
        Option(
            metavar="RUN|PART=RUN",
            help="Start from the tokenizer and the weights of this run. encoder=RUN, decoder=RUN: start a part of a "
            "translator from a language model. Repeat it for both parts.",
        ),
    ] = None
    valid_general: Annotated[list[str] | None, option.files("Validation pairs that guard against forgetting.")] = None
    elmo: Annotated[Path | None, option.run("Give the encoder the word embeddings of this lm-bilstm, too.")] = None

    def settings_for(self, preset: str | None) -> dict[str, Any] | None:
        """Return the settings that the model inherits from other runs; None if there are none.

        Raises:
            UserError: a run can't be read, or the runs do not go together, or do not fit the preset.
        """
        from translucid.interop.run_resolution import resolve_run
        from translucid.runs.initialization import Pretrained, settings_from
        from translucid.runs.run_folder import RunFolder

        parts: dict[str, RunFolder] = {}
        for value in map(str, self.init_from or ()):
            part, equals, run = value.partition("=")
            if not equals or part not in ("encoder", "decoder"):
                part, run = "model", value
            if part in parts:
                raise UserError(f"--init-from has two runs for the {part}", fix="Leave one of them out.")
            parts[part] = RunFolder(resolve_run(Path(run)))
        if self.elmo:
            parts["elmo"] = RunFolder(self.elmo)
        if "model" not in parts:
            return Pretrained(**parts).settings(preset) if parts else None
        if len(parts) > 1:
            raise UserError(
                "--init-from already says what all of the model begins with", fix="Leave the other runs out."
            )
        return settings_from(parts["model"].path, preset)


@with_examples(__doc__)
def train(
    context: typer.Context,
    config: Annotated[
        Path | None,
        Argument(
            metavar="[CONFIG.yaml]",
            help="Settings, or the name of a recipe; --set can set every key, too.",
            autocompletion=option.complete_recipes,
        ),
    ] = None,
    *,
    options: RunOptions,
    data: DataFiles,
    initialization: Initialization,
) -> None:
    """Train a translator, an image captioner, a language model or a text classifier.

    Ctrl-C saves a checkpoint, and --resume continues from it with the same result.
    """
    if options.out is None:
        raise UserError("no --out was given", fix="Name the run folder: --out runs/mine.")
    if not options.seeds:
        _train(context.obj, config, options.out, options, data, initialization)
        return
    console = Console(stderr=True)
    if len(options.seeds) == 1:
        (seed,) = options.seeds
        message = (
            f"--seeds names seeds, not their number: this is one run, with seed {seed}; --seeds 1 2 3 is three runs"
        )
        console.print(message, soft_wrap=True)
    runs = options_of_seeds(options.out, options, [*data.names(), *(initialization.valid_general or ())])
    for number, (out, seed_options) in enumerate(runs.items(), 1):
        console.print(f"run {number} of {len(runs)}: {out}", soft_wrap=True)
        try:
            _train(context.obj, config, out, seed_options, data, initialization)
        except KeyboardInterrupt:
            console.print("repeat the command with --resume to continue with all seeds")
            raise
    console.print(f"compare the runs with translucid compare {options.out} --test FILES", soft_wrap=True)


def options_of_seeds(out: Path, options: RunOptions, names: list[str]) -> dict[Path, RunOptions]:
    """Return the options of each seed's run by its folder; `names` are those of all corpora.

    Raises:
        UserError: a seed is named twice, other options do not go together with it, or a folder may not be replaced.
    """
    from translucid.runs.run_folder import RunFolder

    seeds = options.seeds or []
    if len(set(seeds)) < len(seeds):
        raise UserError("--seeds names a seed twice", fix="Name each one once.")
    if any(setting.partition("=")[0].strip() == "training.seed" for setting in options.settings or ()):
        raise UserError("--seeds and training.seed do not go together", fix="Leave one of them out.")
    if any(name.rpartition("=")[0] == STANDARD_INPUT or name == STANDARD_INPUT for name in names):
        raise UserError("--seeds reads its files for each seed, and standard input only once", fix="Use a file.")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        fix = "Start torchrun once for each seed, with --set training.seed=N."
        raise UserError("--seeds and several processes do not go together", fix=fix)
    runs = {}
    for seed in seeds:
        settings = [*(options.settings or ()), f"training.seed={seed}"]
        runs[out / f"seed-{seed}"] = options._replace(settings=settings)
    if not options.resume:
        for run in runs:
            # Otherwise the first seeds would train before the folder of a later one is refused.
            RunFolder(run).refuse_overwrite(options.overwrite)
    return runs


def _train(
    command: list[str],
    config: Path | None,
    out: Path,
    options: RunOptions,
    data: DataFiles,
    initialization: Initialization,
) -> None:
    """Train one run in the folder `out`."""
    from translucid.models.user_code import allow_named_code
    from translucid.runs.configuration import batches_for_gpu
    from translucid.runs.corpus_files import count_pairs
    from translucid.runs.presets import recipe, recipes
    from translucid.runs.run_folder import RunFolder
    from translucid.runs.staging import (
        check_new_run,
        configuration_by_size,
        configuration_to_resume,
        configuration_to_train,
    )
    from translucid.training.experiment import prepared
    from translucid.training.hardware.ddp import is_first_process
    from translucid.training.post_training import measure_trained, show_gain, tune_trained
    from translucid.training.profile import UpdateProfile

    config = recipe(config) if config else None
    files, overrides = data.files(), data.settings()
    if initialization.valid_general:
        files["data.valid_general"] = initialization.valid_general
    settings = {}
    for setting in options.settings or ():
        key, _, value = setting.partition("=")
        settings[key.strip()] = value
    model = allow_named_code(options.model, settings)
    initial = initialization.settings_for(model or _preset_of(config))
    run = RunFolder(out)
    earlier = configuration_to_resume(run) if options.resume else None
    configure = partial(
        configuration_to_train,
        earlier,
        options.device,
        file=config,
        preset=model,
        assignments=options.settings or (),
        initial_settings=initial,
        is_recipe=config in recipes().values(),
    )
    refuse_twice(*files.values(), data.mix)
    configuration = configure(overrides | files)
    if not earlier:  # a run that is resumed is not lost
        check_new_run(run, configuration, overwrite=options.overwrite)
    console = Console(stderr=True, quiet=not is_first_process())
    reads_pairs = task_of(configuration.model.reads).reads_pairs
    files = _with_kept_input(files, out, options.overwrite or run.exists, pairs=reads_pairs, console=console)
    if reads_pairs:
        # Only now is it known that these files have two sides.
        for key in files.keys() - {"data.target_text"}:
            files[key] = pair_up(files[key])
    configuration = configure(overrides | files)
    if configuration.data.train and not (earlier or config or model or initial):
        configuration = configuration_by_size(
            configuration,
            partial(configure, overrides | files),
            partial(count_pairs, configuration.data),
            settings,
            partial(console.print, soft_wrap=True),
            on_gpu=batches_for_gpu(options.device, None),
        )
    with prepared(
        configuration,
        out,
        resume=options.resume,
        overwrite=options.overwrite,
        device=options.device,
        console=console,
        command=command,
    ) as (trainer, display):
        if options.profile:
            trainer.profile = UpdateProfile(
                trainer.device,
                bfloat16=trainer.precision.bfloat16,
                counts=trainer.workers.count == 1,
                show=display.note,
            )
        trainer.fit(display)
    show_gain(trainer, console)
    if configuration.model.reads == "text":
        if options.tune:
            tune_trained(trainer, console)
        measure_trained(trainer, console)


def _preset_of(config: Path | None) -> str | None:
    from translucid.runs.settings import read_settings

    if config is None:
        return None
    # A recipe names the preset that it changes.
    return str(read_settings(config).get("preset", "")) or None


def _with_kept_input(files: Files, out: Path, replace: bool, *, pairs: bool, console: Console) -> Files:
    """Return the files, with a copy of standard input instead of `-`."""
    if not any(STANDARD_INPUT in names for names in files.values()):
        return files
    input_copy = str(keep_standard_input(out, replace, pairs=pairs))
    console.print(f"standard input is kept in {input_copy}: a training that is resumed reads it there", soft_wrap=True)
    new_names = {STANDARD_INPUT: input_copy}
    new_files = {}
    for key, names in files.items():
        new_files[key] = [new_names.get(name, name) for name in names]
    return new_files


def keep_standard_input(out: Path, replace: bool, *, pairs: bool) -> Path:
    """Copy standard input to a file beside a run folder, which the configuration can name.

    Args:
        out: the run folder.
        replace: whether the file may be replaced.
        pairs: whether the model needs pairs (of sentences, or of images and captions) and not texts.

    Raises:
        UserError: standard input is empty, the file exists already, or it can't be written.
    """
    ending = kind_of(Path(STANDARD_INPUT))
    if pairs and ending == ".txt":  # the first line is no pair, which is reported when the file is read
        ending = ".tsv"
    file = out.with_name(f"{out.name}.input{ending}")
    refuse_to_replace(file, replace)
    with opened(Path(STANDARD_INPUT)) as stream, output(file) as input_copy:
        shutil.copyfileobj(stream, input_copy)
    return file


def shares(mix: list[str]) -> dict[str, float]:
    """Return the share of each corpus from the values of `--mix FILES=SHARE`.

    Raises:
        UserError: a share is no number.
    """
    shares = {}
    for value in mix:
        files, _, share = value.rpartition("=")
        try:
            if not files:
                raise ValueError
            number = float(share)
        except ValueError as error:
            fix = "Write --mix general.tsv=0.3."
            raise UserError(f"--mix {value} has no share of the epoch", fix=fix) from error
        (corpus,) = pair_up([files])
        shares[corpus] = number
    return shares
