"""Arguments and options that several commands share, each declared once, and what the shell completes in them.

A command with many options takes them in groups, which are named tuples: `main.py` makes an option of each field. The
docstring of a group is the title of its panel in `--help`.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import typer
from typer import Argument, Option
from typer.models import OptionInfo

from bitext.readers.file_kinds import refuse_file_names
from translucid.cli.flags import with_flags
from translucid.ground.errors import UserError
from translucid.terminology.glossary import TermsMode


def complete_presets(incomplete: str) -> list[tuple[str, str]]:
    """Return the presets with a prefix, and what each is for."""
    from translucid.runs.presets import all_presets

    return [(name, with_flags(preset.purpose)) for name, preset in all_presets().items() if name.startswith(incomplete)]


def complete_recipes(incomplete: str) -> list[str]:
    """Return the recipes, and the configurations in the folder, with a prefix."""
    from translucid.runs.presets import recipes

    # "runs/" has the parent ".", but the files in runs/ are meant.
    folder = Path(f"{incomplete}x").parent
    names = [*recipes(), *sorted(map(str, folder.glob("*.yaml")))]
    return [name for name in names if name.startswith(incomplete)]


def complete_students(incomplete: str) -> list[str]:
    """Return the presets, the recipes, and the configurations in the folder, with a prefix."""
    return [name for name, _ in complete_presets(incomplete)] + complete_recipes(incomplete)


def complete_settings(incomplete: str) -> list[str]:
    """Return the keys of `--set` with a prefix."""
    from translucid.runs.keys import keys

    return [f"{key.name}=" for key in keys() if key.name.startswith(incomplete)]


Format = Literal["text", "jsonl"]
"""The format of the output."""


def resolved(context: typer.Context, runs: Path | list[Path] | None) -> Path | list[Path] | None:
    """Resolve runs in the same way for every command; a callback of arguments and options."""
    if runs is None or context.resilient_parsing:  # a shell that completes a line imports no model
        return runs
    from translucid.interop.run_resolution import resolve_run

    if isinstance(runs, list):
        return [resolve_run(run) for run in runs]
    return resolve_run(runs)


def checked_texts(context: typer.Context, value: str | list[str] | None) -> str | list[str] | None:
    """Check that no text has no words or is the name of a file, unless the model reads images; a callback of arguments.

    Raises:
        UserError: a text is.
    """
    if value is None or context.resilient_parsing:
        return value
    from translucid.runs.run_folder import RunFolder

    run = RunFolder(context.params["run"])
    if run.exists and run.configuration().model.reads != "images":  # the command reports a folder that is no run
        texts = [value] if isinstance(value, str) else value
        if not all(text.strip() for text in texts):
            raise UserError("there are no words in the text", fix="Give a text with words in it.")
        refuse_file_names(texts)
    return value


def checked_methods(context: typer.Context, methods: str | list[str] | None) -> str | list[str] | None:
    """Check that methods of explanation exist and their packages are installed; a callback of options.

    Raises:
        UserError: there is no such method, or a package is missing.
    """
    if methods and not context.resilient_parsing:
        from translucid.inspection.explain import refuse_method

        for method in [methods] if isinstance(methods, str) else methods:
            refuse_method(method)
    return methods


def to_write(*endings: str) -> Any:
    """Return a callback of the file that a command writes, which replaces no other without `Overwrite`.

    `endings`: the endings that the file may have; any if there are none.
    """

    def checked(context: typer.Context, file: Path | None) -> Path | None:
        if not context.resilient_parsing:
            from translucid.cli.arguments import refuse_to_replace

            refuse_to_replace(file, context.params["overwrite"], endings)
        return file

    return checked


def to_save(help_text: str, *endings: str) -> Any:
    """Return an option whose value is a file with one of these endings, which the command writes."""
    return Option(metavar="FILE", callback=to_write(*endings), help=help_text)


def run(help_text: str) -> Any:
    """Return an option whose value is a run."""
    return Option(metavar="RUN", callback=resolved, help=help_text)


def files(help_text: str, *flags: str) -> Any:
    """Return an option that takes several files."""
    return Option(*flags, metavar="FILES", help=help_text)


Run = Annotated[
    Path,
    Argument(metavar="RUN", callback=resolved, help="A run: its folder, its name, or a Hugging Face folder."),
]
Text = partial(Argument, callback=checked_texts)
"""An argument that is one or several texts, or images for a captioner."""
TextOrImage = Annotated[str, Text(metavar="TEXT|IMAGE", help="The text to translate; for a captioner, an image file.")]

Input = Annotated[Path | None, Option("--input", help="A file with one text per line; - is standard input.")]
Output = Annotated[Path | None, Option(callback=to_write(), help="Write to this file, not to standard output.")]
# Eager, because `to_write` asks for it.
Overwrite = Annotated[bool, Option("--overwrite", is_eager=True, help="Replace an output that exists already.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
SkipBad = Annotated[bool, Option("--skip-bad", help="Skip lines that can't be read, and count them.")]
Reference = Annotated[list[str] | None, files("More references, one per line.")]

SourceLanguage = Annotated[
    str | None, Option(metavar="CODE", help="The language of the source, for a multilingual model.")
]
TargetLanguage = Annotated[
    str | None, Option(metavar="CODE", help="The language of the target, for a multilingual model.")
]

Pivot = Annotated[
    str | None,
    Option(metavar="RUN|CODE", help="Go through another language: by this run first, or RUN's own language CODE."),
]

Beam = Annotated[int | None, Option(help="The beam width; 1 is greedy search.")]
Nbest = Annotated[int | None, Option(help="Outputs for each input; in text format, tabs separate them.")]
LengthPenalty = Annotated[float | None, Option(help="A higher value favors longer outputs.")]
NoRepeatNgram = Annotated[int | None, Option(help="Repeat no sequence of this many pieces.")]
MaxLengthRatio = Annotated[float | None, Option(help="The maximum number of output tokens per input token.")]
Temperature = Annotated[
    float | None, Option(help="Sample at random instead of searching; a temperature below 1 is less random.")
]
TopK = Annotated[int | None, Option(help="Sample from the K most probable pieces.")]
TopP = Annotated[float | None, Option(help="Sample from the most probable pieces that have this probability.")]
Seed = Annotated[int | None, Option(help="The seed of sampling.")]

Ensemble = Annotated[
    list[Path] | None, run("Average the probabilities with those of this run; repeat it for more runs.")
]
Lines = Annotated[
    Literal["sentences", "whole"], Option("--lines", help="Translate sentence by sentence, or whole lines.")
]
Formality = Annotated[
    Literal["formal", "informal"] | None,
    Option(help="Address the reader so, as usted or tú, Sie or du, vous or tu; for a run with data.formality."),
]
Context = Annotated[str | None, Option(metavar="TEXT", help="The text before, for a run with document context.")]
Tokenize = Annotated[
    str | None,
    Option(
        help="sacreBLEU's tokenizer for BLEU, none for tokenized text; the target language decides if not given.",
        show_default=False,
    ),
]
Lowercase = Annotated[bool, Option("--lowercase", help="Ignore case.")]

Device = Annotated[str, Option(help="auto, cpu, cuda, cuda:1, mps.")]
Engine = Annotated[
    Literal["auto", "torch", "ctranslate2", "onnx"],
    Option(help="Our own search in PyTorch, CTranslate2, ONNX Runtime, or the fastest that can do it."),
]
Workers = Annotated[int | None, Option(help="Worker processes; 1 if not given.", min=1)]
Set = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Any setting.", autocompletion=complete_settings),
]


class Languages(NamedTuple):
    """Languages of a multilingual model."""

    source_language: SourceLanguage = None
    target_language: TargetLanguage = None


class Search(NamedTuple):
    """Search."""

    beam: Beam = None
    length_penalty: LengthPenalty = None
    no_repeat_ngram: NoRepeatNgram = None
    max_length_ratio: MaxLengthRatio = None


class Sampling(NamedTuple):
    """Sampling."""

    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = None

    def settings(self) -> dict[str, object]:
        """Return the settings by name; those that are None are left as the run has them."""
        is_sampling = any(value is not None for value in (self.temperature, self.top_k, self.top_p))
        return {**self._asdict(), "sample": True if is_sampling else None}


class Interventions(NamedTuple):
    """Interventions."""

    ablate: Annotated[
        list[str] | None,
        Option(metavar="HEAD", help="Switch off an attention head, such as encoder.1.self.head.2; repeat it for more."),
    ] = None
    feature: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE",
            help="Change a feature of `translucid features`: decoder.1.feature.412=0 switches it off, =3x triples it; "
            "repeat it for more.",
        ),
    ] = None

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values of those that are given, by the names of the options."""
        return {name: tuple(values) for name, values in self._asdict().items() if values}


class Execution(NamedTuple):
    """Execution."""

    device: Device = "auto"
    engine: Engine = "auto"
    workers: Workers = None


class TermTreatment(StrEnum):
    """A value of `--terms-mode`."""

    ANNOTATE = "annotate"
    CONSTRAIN = "constrain"
    INFLECT = "inflect"


class Terms(NamedTuple):
    """Terminology."""

    terms: Annotated[
        Path | None, Option(metavar="FILE", help="A term list: source TAB target, or a term to leave untranslated.")
    ] = None
    terms_mode: Annotated[
        list[TermTreatment] | None,
        Option(
            help="annotate: mark terms for a run trained with terms. constrain: force them. By default both, as far as "
            "needed. inflect: also match inflected forms. Repeat it for two of them.",
        ),
    ] = None
    domain: Annotated[str | None, Option(help="The subject field of the texts, among those of the terms.")] = None

    @property
    def mode(self) -> TermsMode:
        """The way in which the terms are applied."""
        treatments = self.terms_mode or ()
        annotates, constrains = TermTreatment.ANNOTATE in treatments, TermTreatment.CONSTRAIN in treatments
        if annotates == constrains:
            return "auto"
        return "annotate" if annotates else "constrain"

    @property
    def inflect(self) -> bool:
        """Whether inflected forms match, too."""
        return TermTreatment.INFLECT in (self.terms_mode or ())


def changed_flags(*groups: Any) -> dict[str, object]:
    """Return by flag the options of groups that differ from their defaults; all have the value True.

    That is what `refuse_together` and `refuse_unsuitable` check.
    """
    changed: dict[str, object] = {}
    for group in groups:
        hints = get_type_hints(type(group), include_extras=True)
        for name, value in group._asdict().items():
            # A required option has no default, and is always given.
            if value != group._field_defaults.get(name):
                _, declaration = get_args(hints[name])
                changed[_flag(name, value, declaration)] = True
    return changed


def _flag(name: str, value: object, declaration: OptionInfo) -> str:
    """Return the flag that sets an option to a value; `name` is the field, after which Typer names it by default."""
    # In an annotation, Typer's parameter `default` is the first flag.
    flag = str(declaration.default)
    if declaration.default is ...:
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flag = f"{flag}/--no-{flag[2:]}"
    on, _, off = flag.partition("/")
    return off if off and value is False else on
