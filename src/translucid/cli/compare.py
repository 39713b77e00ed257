"""`translucid compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from typer import Argument, Option

from bitext.pair import Pair
from bitext.readers.file_kinds import ending_of
from bitext.readers.lines import refuse_twice
from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.printing import print_json, print_scores
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.data.readers.corpus import read_lines, read_pairs, references_of, sources_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from bitext.languages import Languages
    from translucid.evaluation.comparing import Comparison
    from translucid.evaluation.metrics import ReferenceSets
    from translucid.evaluation.report import SeenReport
    from translucid.evaluation.system_table import DirectionTable, System, SystemTable
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
    names: Annotated[list[str] | None, Option(metavar="NAMES", help="The names of the systems, in order.")] = None
    table: Annotated[Table, Option("--format", help="A table of the systems in this format.")] = "text"
    tokenize: option.Tokenize = None
    lowercase: option.Lowercase = False
    significance: Annotated[bool, Option(help="Test whether chance explains the differences.")] = True
    samples: Annotated[int, Option(help="Show this many sentences on which B gains or loses most.", min=0)] = 3


class Translation(NamedTuple):
    """Translation by runs."""

    beam: option.Beam = None
    lines: option.Lines = "sentences"
    formality: option.Formality = None
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

    Three or more systems are compared with the first. A folder of `train --seeds` is one system, with the mean and the
    standard deviation over its seeds; its p-values count the choice of seeds, too. Multilingual runs are compared in
    each direction of the test files, whose names end with their languages.

    BLEU, chrF, chrF++ and TER and the two tests of their differences are sacreBLEU's: paired bootstrap resampling with
    1,000 samples and approximate randomization with 10,000. A p-value is the probability of a difference as large
    between systems that are equally good. Runs translate sentence by sentence, as with `translucid evaluate`.

    Each occurrence of a word that translation and reference share is correct. F1 of words is reported by their
    frequency in the text of --frequencies, which is best the training text.

    **Examples**

        translucid compare runs/first runs/second --test test.tsv --frequencies train.tsv

        translucid compare theirs.txt runs/es --test 'test.{en,es}' --samples 10

        translucid compare runs/base runs/deep --names Base Deep --test test.tsv --format latex

        translucid compare runs/many runs/more --test fr.tsv:en-fr de.tsv:en-de fr-de.tsv:fr-de --format markdown

        translucid compare beam1.txt beam5.txt --test test.tsv --json > compared.json
    """
    from translucid.evaluation.comparing import Comparison
    from translucid.evaluation.system_table import System

    refuse_twice(data.test, data.reference, data.frequencies)
    files = pair_up(data.test)
    given = _systems(systems, scoring.names)
    # Only the table has rows for several seeds, and for other formats.
    as_table = len(given) != 2 or any(system.has_seeds for system in given) or scoring.table != "text"
    _refuse_without_effect(as_table, data, scoring)
    data_options = _data_of(given).between(*languages)
    by_direction = _by_direction(data_options, files)
    log = Console(stderr=True)
    seen: dict[str, SeenReport] = {}
    if len(by_direction) > 1:
        comparison: Comparison | SystemTable | DirectionTable = _compare_directions(
            given, by_direction, data, scoring, translation, log, seen
        )
    else:
        ((direction, pairs),) = by_direction.items()
        if not pairs:
            raise UserError("holds no sentence pairs", file=files[0], fix="Check the file.")
        # This reports errors in references and options before runs translate, which may take minutes.
        references = _references(pairs, data, scoring, data_options.between(*direction).languages[1])
        compare_systems = _prepared(pairs, references, data, scoring, data_options, as_table=as_table)
        chosen: Languages = direction if data_options.tokenizer.languages else languages
        outputs = [System(system.name, system.outputs(pairs, translation, chosen, log)) for system in given]
        with log.status("comparing"):
            comparison = compare_systems(outputs)
        seen = _seen_reports(given, outputs, pairs, references, chosen, scoring)
    as_text = not scoring.as_json and scoring.table == "text"
    console = Console() if as_text else log
    if scoring.as_json:
        print_json({**comparison.to_json(), "seen": {name: report.to_json() for name, report in seen.items()}})
    elif isinstance(comparison, Comparison) or as_text:
        print_scores(comparison)
    elif scoring.table == "markdown":
        print(comparison.markdown(), end="")
    else:
        print(comparison.latex(), end="")
    for name, report in seen.items():
        console.print(f"{name}: {report}", soft_wrap=True)


class References(NamedTuple):
    """The references of a test set, and how they are compared."""

    sets: ReferenceSets
    tokenize: str
    """sacreBLEU's tokenizer."""


def _references(pairs: Sequence[Pair], data: TestSet, scoring: Scoring, language: str | None) -> References:
    """Read the references."""
    from translucid.evaluation.metrics import bleu_tokenizer, without_blank

    sets = without_blank([*references_of(pairs), *(list(read_lines(file)) for file in data.reference or [])])
    return References(sets, scoring.tokenize or bleu_tokenizer(language, sets))


def _seen_reports(
    systems: Sequence[Given],
    outputs: Sequence[System],
    pairs: Sequence[Pair],
    references: References,
    direction: Languages,
    scoring: Scoring,
) -> dict[str, SeenReport]:
    """Return how much of a test set was in the training text of each system, by name.

    The others, which are scored, are the pairs of which no system has seen a side.
    """
    from translucid.data.seen_sentences import SeenSentences
    from translucid.evaluation.report import SeenReport

    further = []
    for reference_set in references.sets[1:]:
        further.append([text or "" for text in reference_set])
    seen = []
    others = [True] * len(pairs)
    for system in systems:
        index = SeenSentences.of_runs(system.folders) if system.folders[0].is_dir() else None
        seen.append(index.look_up(pairs, direction, references=further) if index else None)
        if found := seen[-1]:
            others = [other and sides.none for other, sides in zip(others, found.sides, strict=True)]
    reports = {}
    for found, (name, texts) in zip(seen, outputs, strict=True):
        runs = []
        for output in texts:
            run = SeenReport.of(
                found,
                output,
                references.sets,
                others=others,
                tokenize=references.tokenize,
                lowercase=scoring.lowercase,
            )
            runs.append(run)
        scores = [run.others_score for run in runs if run.others_score is not None]
        reports[name] = replace(runs[0], others_score=fmean(scores) if scores else None)
    return reports


class Given(NamedTuple):
    """A system as it was given."""

    name: str
    """The name in messages and tables."""
    folders: Sequence[Path]
    """Its run, its runs with several seeds, or its file of translations."""
    has_seeds: bool = False
    """Whether it is a folder of `train --seeds`."""

    def outputs(
        self, pairs: Sequence[Pair], translation: Translation, languages: Languages, log: Console
    ) -> list[list[str]]:
        """Return the translations of each run."""
        outputs = []
        for folder in self.folders:
            outputs.append(_output(folder, pairs, translation, languages, log))
        return outputs

    def zero_shot(self, direction: Languages) -> bool:
        """Whether the system has not learned a direction; unknown for a file."""
        if not self.folders[0].is_dir():
            return False
        return configuration_of(self.folders[0], "text").data.is_zero_shot(direction)


def _systems(systems: Sequence[Path], names: Sequence[str] | None) -> list[Given]:
    """Return the systems with their names."""
    from translucid.interop.run_resolution import resolve_run, seeds_of

    if names and len(names) != len(systems):
        what = f"--names has {len(names)} names for {len(systems)} systems"
        raise UserError(what, fix="Give one for each, in the same order.")
    given = []
    for system, name in zip(systems, names or map(str, systems), strict=True):
        seeds = seeds_of(system)
        given.append(Given(name, seeds or [resolve_run(system)], has_seeds=bool(seeds)))
    if len(given) == 1 and not given[0].has_seeds:
        raise UserError("is the only system", file=systems[0], fix="Name two or more runs or files of translations.")
    return given


def _by_direction(options: DataOptions, files: Sequence[str]) -> dict[Languages, list[Pair]]:
    """Return the pairs of the test files, by direction if the systems are multilingual."""
    from translucid.runs.corpus_files import corpora_of, pairs_of

    corpora = corpora_of(options, files) if options.tokenizer.languages else []
    directions = {corpus.direction for corpus in corpora}
    if len(directions) < 2:
        direction = directions.pop() if directions else options.languages
        return {direction: list(pairs_of(options, *files))}
    by_direction: dict[Languages, list[Pair]] = {}
    for corpus in corpora:
        if None in corpus.direction:
            fix = f"Write {corpus.name}:en-fr, for instance."
            raise UserError("has no languages, unlike other test files", file=corpus.name, fix=fix)
        by_direction.setdefault(corpus.direction, []).extend(corpus.pairs())
    return by_direction


def _compare_directions(
    systems: Sequence[Given],
    by_direction: Mapping[Languages, list[Pair]],
    data: TestSet,
    scoring: Scoring,
    translation: Translation,
    log: Console,
    seen: dict[str, SeenReport],
) -> DirectionTable:
    """Compare multilingual systems in each direction of the test files.

    A file of translations has those of all directions, in the order of the test files. `seen` gets what was in the
    training text, by direction and system.
    """
    from translucid.data.readers.corpus import label
    from translucid.evaluation.system_table import DirectionTable, System, system_table

    for flag, is_given in {"--reference": data.reference, "--frequencies": data.frequencies}.items():
        if is_given:
            fix = "Give --source-language and --target-language."
            raise UserError(f"{flag} is for a single direction, and the test set has several", fix=fix)
    total = sum(map(len, by_direction.values()))
    tables: dict[str, SystemTable] = {}
    zero_shot: dict[str, list[str]] = {}
    first = 0
    for direction, pairs in by_direction.items():
        name = label(direction)  # type: ignore[arg-type]
        log.print(f"{name}:")
        outputs = []
        for system in systems:
            if system.folders[0].is_dir():
                outputs.append(System(system.name, system.outputs(pairs, translation, direction, log)))
            else:
                lines = _lines_of(system.folders[0], total)
                outputs.append(System(system.name, [lines[first : first + len(pairs)]]))
        first += len(pairs)
        references = _references(pairs, data, scoring, direction[1])
        tables[name] = system_table(
            outputs,
            references.sets,
            significance=scoring.significance,
            tokenize=references.tokenize,
            lowercase=scoring.lowercase,
        )
        for system_name, report in _seen_reports(systems, outputs, pairs, references, direction, scoring).items():
            seen[f"{name} {system_name}"] = report
        zero_shot[name] = [system.name for system in systems if system.zero_shot(direction)]
    return DirectionTable(tables, zero_shot)


def _refuse_without_effect(as_table: bool, data: TestSet, scoring: Scoring) -> None:
    """Check that no option is given that a table ignores."""
    if scoring.as_json and scoring.table != "text":
        raise UserError("--json and --format do not go together", fix="Leave one of them out.")
    if not as_table:
        return
    for_two_systems = {"--frequencies": data.frequencies, "--samples": scoring.samples != Scoring().samples}
    for flag, is_given in for_two_systems.items():
        if is_given:
            raise UserError(f"{flag} is for two systems without --format", fix="Leave it out.")


def _data_of(systems: Sequence[Given]) -> DataOptions:
    """Return how runs read pairs, or the default if all systems are files."""
    from translucid.runs.data_options import DataOptions

    first_options: DataOptions | None = None
    for system in systems:
        for folder in system.folders:
            if not folder.is_dir():
                continue
            options = configuration_of(folder, "text").data
            if first_options and first_options.reverse != options.reverse:
                fix = "Give runs of the same direction."
                raise UserError("translates in the opposite direction of the first run", file=system.name, fix=fix)
            first_options = first_options or options
    return first_options or DataOptions()


def _prepared(
    pairs: list[Pair],
    references: References,
    data: TestSet,
    scoring: Scoring,
    data_options: DataOptions,
    *,
    as_table: bool,
) -> Callable[[Sequence[System]], Comparison | SystemTable]:
    """Load the tokenizer; return a function that compares named translations.

    The function returns all about two systems, or a table of several.
    """
    from translucid.evaluation.breakdown import frequencies, split_words
    from translucid.evaluation.comparing import compare
    from translucid.evaluation.system_table import system_table

    sets, tokenize = references
    words = split_words(tokenize=tokenize, lowercase=scoring.lowercase)

    def compare_systems(systems: Sequence[System]) -> Comparison | SystemTable:
        if as_table:
            return system_table(
                systems, sets, significance=scoring.significance, tokenize=tokenize, lowercase=scoring.lowercase
            )
        texts: Iterable[str] = filter(None, chain.from_iterable(sets))
        if data.frequencies:
            texts = _texts(data.frequencies, data_options.reverse)
        return compare(
            sources_of(pairs),
            [(system.name, system.outputs[0]) for system in systems],
            sets,
            frequencies(texts, words),
            words,
            significance=scoring.significance,
            samples=scoring.samples,
            tokenize=tokenize,
            lowercase=scoring.lowercase,
        )

    return compare_systems


def _output(
    system: Path, pairs: Sequence[Pair], translation: Translation, languages: Languages, log: Console
) -> list[str]:
    """Return the translations of a run, or read those of another system."""
    from translucid.api.evaluation.scoring import translated

    if not system.is_dir():
        return _lines_of(system, len(pairs))
    translator = translator_of(system, languages, translation.device, translation.engine)
    translator = translator.with_formality(translation.formality)
    options = translator.configuration.decoding_with({"beam": translation.beam})
    return translated(translator, pairs, options, split=translation.lines == "sentences", console=log)


def _lines_of(file: Path, sentences: int) -> list[str]:
    """Return the translations of a file."""
    lines = list(read_lines(file))
    if len(lines) != sentences:
        what = f"has {len(lines):,} lines, the test set {sentences:,} sentences"
        raise UserError(what, file=file, fix="Give one translation a line, or a run folder.")
    return lines


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
