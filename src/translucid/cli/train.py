"""`translucid train`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from translucid.cli import completing
from translucid.cli.arguments import SetOption, pair_up, refuse_to_replace, resolved
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.runs.configuration import Configuration

EPILOG = """
**Examples**

Train on your own pairs, one `source TAB target` a line:

    translucid train --train pairs.tsv --valid dev.tsv --out runs/mine

A Moses pair, a preset for little data, ten minutes of training:

    translucid train --model tiny --train 'train.{en,de}.gz' --out runs/de --set training.max_minutes=10

A recipe, with files of your own; then go on after an interruption, for longer:

    translucid train tatoeba-eng-spa --train train.tsv --valid dev.tsv --out runs/es

    translucid train --resume --out runs/es --set training.max_minutes=120

Few pairs, and text of the target language alone: a translator of the other direction makes pairs of it, and the one
that is wanted learns from both, by `data.weights` one part of an epoch real and three synthetic:

    translucid train low-resource --train pairs.tsv --out runs/reverse --set data.reverse=true

    translucid data back-translate runs/reverse --text target.txt.gz --out synthetic.tsv

    translucid train low-resource --train pairs.tsv --synthetic synthetic.tsv --out runs/mine --set 'data.weights=[1,3]'

The same, and a language model of both languages, learned from text alone, that both halves begin as; the decoder
goes on learning the text of its language:

    translucid train --model lm-transformer --train source.txt target.txt --out runs/language

    translucid train low-resource --init-encoder runs/language --init-decoder runs/language --train pairs.tsv \
        --synthetic synthetic.tsv --target-text target.txt --out runs/mine --set 'data.weights=[1,3,1]'

A translator of your own, from one that is there: fine-tuned on your texts, with four of five sentences general ones,
so that it does not forget; the model kept is the best on yours that has lost no more than a BLEU on the others:

    translucid train --init-from runs/es --train mine.tsv --mix general.tsv=0.8 --valid mine-dev.tsv \
        --valid-general general-dev.tsv --out runs/mine

Captions, one `image TAB caption` a line, several lines for an image, and the images in a folder or a tar:

    translucid train --model caption-soft --train captions.tsv --images photographs.tar --out runs/eyes

Running text, one text a line (`.txt`, `.jsonl` with `text`, `.tsv`), for a model that writes on from what it is given:

    translucid train --model lm-lstm --train articles.txt --valid more.txt --out runs/english

A classifier of texts (`.jsonl` with `text` and `label`, `.tsv`) that begins with what such a model has learned:

    translucid train --model classifier --init-from runs/english --train labelled.jsonl --out runs/mood

`translucid models` lists presets and recipes, `translucid models --keys` every key that can be set.
"""


def train(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG.yaml]",
            help="Settings, or the name of a recipe; --set can set every key too.",
            autocompletion=completing.recipes,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make or continue.")] = None,
    train_files: Annotated[
        list[str] | None,
        typer.Option(
            "--train",
            metavar="FILES",
            help="Training pairs: .tsv, .jsonl, name.{en,de}, .tmx, .po, .xliff; or running text: .txt, .jsonl.",
        ),
    ] = None,
    valid_files: Annotated[
        list[str] | None, typer.Option("--valid", metavar="FILES", help="Validation pairs, or texts.")
    ] = None,
    synthetic: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES", help="More training pairs, whose sources `data back-translate` wrote."),
    ] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES=SHARE",
            help="More training pairs, such as general ones, and what share of an epoch they are.",
        ),
    ] = None,
    valid_general: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES", help="With --init-from: validation pairs of what is not to be forgotten."),
    ] = None,
    images: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES", help="For captions: folders and .tar files with the images; that of --train if not given."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A preset (see `translucid models`), or the file and class of your own model.",
            autocompletion=completing.presets,
        ),
    ] = None,
    target_text: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES", help="Text of the target language alone, for the decoder to learn as well."),
    ] = None,
    begin_from: Annotated[
        Path | None,
        typer.Option(
            "--init-from",
            metavar="RUN",
            callback=resolved,
            help="Begin with the tokenizer and the weights of this run.",
        ),
    ] = None,
    init_encoder: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", callback=resolved, help="Let the encoder begin as this language model, vocabulary and all."
        ),
    ] = None,
    init_decoder: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", callback=resolved, help="Let the decoder begin as this language model, vocabulary and all."
        ),
    ] = None,
    elmo: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", callback=resolved, help="Tell the encoder what this lm-bilstm makes of each source word."
        ),
    ] = None,
    settings: SetOption = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad",
            help="Skip lines that are no sentence pairs, or no texts; they are counted and kept in a file.",
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint of --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    tune: Annotated[
        bool, typer.Option(help="On a CPU, find the fastest way to translate in the end; see `translucid tune`.")
    ] = True,
) -> None:
    """Train a translator, an image captioner, a language model or a text classifier.

    Ctrl-C saves, --resume goes on exactly.
    """
    from translucid.data.readers.standard_input import NAME, refuse_twice
    from translucid.runs.configuration import resolve, resumed, unchanged
    from translucid.runs.initialization import settings_from
    from translucid.runs.pretrained import Pretrained
    from translucid.runs.recipes import recipe, recipes
    from translucid.runs.run_folder import RunFolder
    from translucid.runs.settings import read_settings
    from translucid.runs.staging import finish_replacing, interrupted_configuration, refuse_to_replace_sources
    from translucid.training.experiment import prepared
    from translucid.training.post_training import measure_trained, show_gain, tune_trained

    shipped = False
    if config:
        config = recipe(config)
        shipped = config in recipes().values()
    if out is None:
        raise UserError("no --out was given", fix="Name the run folder: --out runs/mine.")
    overrides: dict[str, object] = {}
    given = {
        "data.train": train_files,
        "data.valid": valid_files,
        "data.valid_general": valid_general,
        "data.synthetic": synthetic,
        "data.target_text": target_text,
    }
    files = {key: names for key, names in given.items() if names}
    if mix:
        overrides["data.mix"] = shares(mix)
    if images:
        overrides["data.images"] = images
    if skip_bad:
        overrides["data.skip_bad"] = True
    pretrained = Pretrained(*(RunFolder(run) if run else None for run in (init_encoder, init_decoder, elmo)))
    if begin_from and any(pretrained):
        raise UserError("--init-from already says what all of the model begins with", fix="Leave the other runs out.")
    model = allow_named_code(model, settings or [])
    preset = model or (str(read_settings(config).get("preset", "")) if config else "") or None
    begun = None
    if begin_from or any(pretrained):
        begun = settings_from(begin_from, preset) if begin_from else pretrained.settings(preset)
    run = RunFolder(out)
    before = None
    if resume:
        finish_replacing(run)
        before = interrupted_configuration(run) or (run.configuration() if run.exists else None)

    def configured(files: dict[str, list[str]]) -> Configuration:
        if before and not config and not model:
            return resumed(before, settings or [], overrides | files)
        wanted = resolve(config, model, settings or [], overrides | files, begun, shipped=shipped)
        # The same command again, as torchrun gives it after a failure.
        return unchanged(before, wanted) if before else wanted

    refuse_twice(*files.values(), mix)
    configuration = configured(files)
    if not before:
        run.refuse_to_lose(overwrite)
        refuse_to_replace_sources(run, configuration)
    console = Console(stderr=True)
    if any(NAME in names for names in files.values()):
        kept = keep_standard_input(out, overwrite or run.exists, pairs=configuration.model.reads in {"text", "images"})
        console.print(f"standard input is kept in {kept}: a training that is resumed reads it there", soft_wrap=True)
        names_kept = {NAME: str(kept)}
        for key, names in files.items():
            files[key] = [names_kept.get(name, name) for name in names]
        configuration = configured(files)
    if configuration.model.reads in {"text", "images"}:
        paired = {key: pair_up(names) for key, names in files.items() if key != "data.target_text"}
        configuration = configured({**files, **paired})
    with prepared(
        configuration, out, resume=resume, overwrite=overwrite, device=device, console=console, command=context.obj
    ) as (trainer, display):
        trainer.fit(display)
    show_gain(trainer, console)
    if configuration.model.reads == "text":
        if tune:
            tune_trained(trainer, console)
        measure_trained(trainer, console)


def allow_named_code(model: str | None, settings: Sequence[str]) -> str | None:
    """Allow code to be executed that the user names on the command line, and return the model by its file name alone.

    `model`: a preset, or the file and the class of a model, as `code/my_model.py:MyModel`.

    Raises:
        UserError: there is no such file.
    """
    from translucid.models.user_code import allow_code

    for setting in settings:
        key, _, value = setting.partition("=")
        file, colon, _ = value.rpartition(":")
        if key.strip() in ("model.attention", "model.implementation") and colon and Path(file).is_file():
            allow_code(file)
    file, colon, class_name = (model or "").rpartition(":")
    if not (colon and file.endswith(".py")):
        return model
    allow_code(file)
    return f"{Path(file).name}:{class_name}"


def keep_standard_input(out: Path, replace: bool, *, pairs: bool) -> Path:
    """Write what comes on standard input into a file beside a run folder, which its configuration can name.

    Args:
        out: the run folder.
        replace: whether a file that is there gives way.
        pairs: whether there are to be sentence pairs, or images with captions, and no texts.

    Raises:
        UserError: there is nothing, a file stands there already, or it can't be written.
    """
    from translucid.data.readers.lines import kind_of, opened
    from translucid.data.readers.standard_input import NAME
    from translucid.ground.atomic import output

    ending = kind_of(Path(NAME))
    if pairs and ending == ".txt":  # the first line is none, which is said where it is read
        ending = ".tsv"
    file = out.with_name(f"{out.name}.input{ending}")
    refuse_to_replace(file, replace)
    with opened(Path(NAME)) as stream, output(file) as kept:
        shutil.copyfileobj(stream, kept)
    return file


def shares(mix: list[str]) -> dict[str, float]:
    """Return the files and shares of `FILES=SHARE`, given several times.

    Raises:
        UserError: one has no share that is a number.
    """
    shares = {}
    for given in mix:
        files, _, share = given.rpartition("=")
        try:
            shares[files] = float(share)
        except ValueError:
            files = ""
        if not files:
            raise UserError(f"--mix {given} has no share of the epoch", fix="Write --mix general.tsv=0.3.")
    return {corpus: share for files, share in shares.items() for corpus in pair_up([files])}


train.__doc__ = f"{train.__doc__}\n\n{EPILOG}"
