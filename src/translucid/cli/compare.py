"""`translucid compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.printing import print_scores
from translucid.cli.run_kinds import configuration_of
from translucid.data.readers.corpus import Pair, read_lines, read_pairs, sources_of, targets_of
from translucid.data.readers.file_kinds import ending_of
from translucid.data.readers.standard_input import refuse_twice
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.evaluation.comparing import Comparison
    from translucid.evaluation.system_table import SystemTable
    from translucid.runs.data_options import DataOptions

Table = Literal["text", "markdown", "latex"]
Systems = Annotated[
    list[Path],
    Argument(
        metavar="A B...",
        help="Runs, folders of `train --seeds`, Hugging Face folders, or files with a translation of --test per line.",
    ),
]


class TestSet(NamedTuple):
    """Test set."""

    test: Annotated[list[str], option.files("Sentence pairs to compare on.")]
    reference: option.Reference = None
    frequencies: Annotated[list[str] | None, option.files("Training pairs or .txt for word counts.")] = None


class Scoring(NamedTuple):
    """Scores."""

    as_json: option.Json = False
    table: Annotated[Table, Option("--format", help="A table of the systems in this format.")] = "text"
    tokenize: option.Tokenize = None
    lowercase: option.Lowercase = False
    significance: Annotated[bool, Option(help="Test whether chance explains the differences.")] = True
    samples: Annotated[int, Option(help="Show this many sentences on which B gains or loses most.", min=0)] = 3


class Translation(NamedTuple):
    """Translation by runs."""

    beam: option.Beam = None
    device: option.Device = "auto"
    engine: option.Engine = "auto"


def compare(
    systems: Systems,
    *,
    data: TestSet,
    scoring: Scoring,
    translation: Translation,
    languages: option.Languages,
) -> None:
    """Compare systems on a test set: scores and significance; of two also sentence lengths, rare words, differences.

    Three or more systems are compared with the first. Runs with several seeds get their mean and standard deviation.

    BLEU, chrF and TER and the two tests of their differences are sacreBLEU's: paired bootstrap resampling with 1,000
    samples and approximate randomisation with 10,000. A p-value is the probability of a difference as large between
    systems that are equally good. Runs translate each line as it is, as with `translucid evaluate`.

    Each occurrence of a word that translation and reference share is correct. F1 of words is reported by their
    frequency in the text of --frequencies, which is best the training text.

    **Examples**

        translucid compare runs/first runs/second --test test.tsv --frequencies train.tsv

        translucid compare theirs.txt runs/es --test 'test.{en,es}' --samples 10

        translucid compare runs/base runs/seed-1 runs/seed-2 --test test.tsv --format latex

        translucid compare beam1.txt beam5.txt --test test.tsv --json > compared.json
    """
    from translucid.evaluation.system_table import with_seeds
    from translucid.interop.run_resolution import resolve_run
    from translucid.runs.corpus_files import pairs_of

    refuse_twice(data.test, data.reference, data.frequencies)
    files = pair_up(data.test)
    # Messages and tables show the names as they were given.
    names = list(map(str, with_seeds(systems)))
    if len(names) == 1:
        raise UserError("is the only system", file=names[0], fix="Name two or more runs or files of translations.")
    # Seeds have a mean, which only the table shows.
    as_table = len(names) != 2 or len(systems) != 2 or scoring.table != "text"
    _refuse_without_effect(as_table, data, scoring)
    folders = [resolve_run(Path(name)) for name in names]
    data_options = _data_of(folders, names).between(*languages)
    pairs = list(pairs_of(data_options, *files))
    if not pairs:
        raise UserError("holds no sentence pairs", file=files[0], fix="Check the file.")
    # This reports errors in references and options before runs translate, which may take minutes.
    compare_systems = _prepared(pairs, data, scoring, data_options, as_table=as_table)
    log = Console(stderr=True)
    outputs = [_output(system, pairs, translation, languages, log) for system in folders]
    with log.status("comparing"):
        comparison = compare_systems(list(zip(names, outputs, strict=True)))
    if isinstance(comparison, str):
        print(comparison, end="")
    else:
        print_scores(comparison, as_json=scoring.as_json)


def _refuse_without_effect(as_table: bool, data: TestSet, scoring: Scoring) -> None:
    """Check that no option is given that a table ignores.

    Raises:
        UserError: an option is for the comparison of two systems, or excludes --format.
    """
    if scoring.as_json and scoring.table != "text":
        raise UserError("--json and --format do not go together", fix="Leave one of them out.")
    if not as_table:
        return
    for_two_systems = {"--frequencies": data.frequencies, "--samples": scoring.samples != Scoring().samples}
    for flag, is_given in for_two_systems.items():
        if is_given:
            raise UserError(f"{flag} is for two systems without --format", fix="Leave it out.")


def _data_of(systems: Sequence[Path], names: Sequence[str]) -> DataOptions:
    """Return how runs read pairs, or the default if all systems are files.

    Raises:
        UserError: a run does not translate, or has another direction than the first one.
    """
    from translucid.runs.data_options import DataOptions

    first_options: DataOptions | None = None
    for name, system in zip(names, systems, strict=True):
        if not system.is_dir():
            continue
        options = configuration_of(system, "text").data
        if first_options and first_options.reverse != options.reverse:
            fix = "Give runs of the same direction."
            raise UserError("translates in the opposite direction of the first run", file=name, fix=fix)
        first_options = first_options or options
    return first_options or DataOptions()


def _prepared(
    pairs: list[Pair], data: TestSet, scoring: Scoring, data_options: DataOptions, *, as_table: bool
) -> Callable[[list[tuple[str, list[str]]]], Comparison | SystemTable | str]:
    """Read the references and load the tokenizer; return a function that compares named translations.

    The function returns all about two systems, or a table of several, as text if --format asks for another format.

    Raises:
        UserError: a file of references can't be read, or the tokenizer is unknown or not installed.
    """
    from translucid.evaluation.breakdown import frequencies, split_words
    from translucid.evaluation.comparing import compare
    from translucid.evaluation.metrics import bleu_tokenizer, without_blank
    from translucid.evaluation.system_table import system_table

    sets = [targets_of(pairs)]
    for file in data.reference or []:
        sets.append(list(read_lines(file)))
    references = without_blank(sets)
    tokenize = scoring.tokenize or bleu_tokenizer(data_options.languages[1], references)
    words = split_words(tokenize=tokenize, lowercase=scoring.lowercase)

    def compare_systems(systems: list[tuple[str, list[str]]]) -> Comparison | SystemTable | str:
        if as_table:
            table = system_table(
                systems, references, significance=scoring.significance, tokenize=tokenize, lowercase=scoring.lowercase
            )
            if scoring.table == "text":
                return table
            return table.markdown() if scoring.table == "markdown" else table.latex()
        texts = _texts(data.frequencies, data_options.reverse) if data.frequencies else chain.from_iterable(sets)
        return compare(
            sources_of(pairs),
            systems,
            references,
            frequencies(texts, words),
            words,
            significance=scoring.significance,
            samples=scoring.samples,
            tokenize=tokenize,
            lowercase=scoring.lowercase,
        )

    return compare_systems


def _output(
    system: Path, pairs: Sequence[Pair], translation: Translation, languages: option.Languages, log: Console
) -> list[str]:
    """Return the translations of a run, or read those of another system.

    Raises:
        UserError: a file has another number of lines than the test set.
    """
    from translucid.api.scoring import translated
    from translucid.api.translator import Translator

    if not system.is_dir():
        lines = list(read_lines(system))
        if len(lines) != len(pairs):
            what = f"has {len(lines):,} lines, the test set {len(pairs):,} sentences"
            raise UserError(what, file=system, fix="Give one translation a line, or a run folder.")
        return lines
    source, target = languages
    translator = Translator.load(system, translation.device, translation.engine, source=source, target=target)
    options = translator.configuration.decoding_with({"beam": translation.beam})
    return translated(translator, pairs, options, console=log)


def _texts(files: Sequence[str], reverse: bool) -> Iterator[str]:
    """Yield the texts of the target language in files."""
    corpora = []
    for file in files:
        if ending_of(file) == ".txt":
            yield from read_lines(file)
        else:
            corpora.append(file)
    for pair in read_pairs(*pair_up(corpora)):
        yield pair.source if reverse else pair.target
