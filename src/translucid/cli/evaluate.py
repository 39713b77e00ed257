"""`translucid evaluate`.

**Examples**

    translucid evaluate runs/demo --test runs/demo/phrasebook/test.tsv --by-length

    translucid evaluate runs/es --test test.tsv --beam 5 --json > scores.json

    translucid evaluate runs/many --test test-fra.tsv:en-fr test-deu.tsv:en-de spa-fra.tsv:es-fr

    translucid evaluate runs/de --test 'test.{en,de}' --reference test.2.de --tokenize none

    translucid evaluate runs/es --test test.tsv --terms terms.tsv --terms-mode inflect
    translucid evaluate runs/es --test test.tsv --memory train.memory

    translucid evaluate runs/many --pivot en --source-language es --target-language fr --test spa-fra.tsv

    translucid evaluate runs/demo --test gold.jsonl --gold gold.jsonl

    translucid evaluate runs/eyes --test test.tsv --images photographs.tar --beam 5

    translucid evaluate runs/mood --test labeled.jsonl --ensemble runs/mood-backwards --samples 5

    translucid evaluate runs/english articles.txt
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from typer import Argument, Option

from bitext.readers.lines import refuse_twice
from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.combinations import refuse_together, refuse_unsuitable
from translucid.cli.printing import print_json, print_samples, print_scores, with_examples
from translucid.cli.run_kinds import refuse_without_context, steps_of, view_of
from translucid.data.readers.corpus import CorpusName, Direction, read_lines, read_pairs
from translucid.data.readers.test_sets import is_test_set
from translucid.ground.atomic import write_output
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from bitext.pair import Pair
    from translucid.api.pivot_translator import FirstStep
    from translucid.api.translator import Translator
    from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore
    from translucid.runs.configuration import Configuration
    from translucid.terminology.term_score import TermScore


class TestSet(NamedTuple):
    """Test set."""

    test: Annotated[list[str] | None, option.files("Sentence pairs, or texts, to test on.")] = None
    reference: option.Reference = None
    gold: Annotated[
        Path | None,
        Option(help="Links between words: report alignment error rates. For captions: boxes from `data scenes`."),
    ] = None
    images: Annotated[list[Path] | None, option.files("For captions: folders and .tar files of images.")] = None


class Translation(NamedTuple):
    """Translation."""

    beam: option.Beam = None
    lines: Annotated[
        Literal["sentences", "whole", "separate"],
        Option(
            "--lines",
            help="Translate sentence by sentence, or whole lines. separate: each line's sentences without document "
            "context.",
        ),
    ] = "sentences"
    device: option.Device = "auto"
    engine: option.Engine = "auto"
    ensemble: option.Ensemble = None
    pivot: option.Pivot = None
    memory: Annotated[
        Path | None, Option(metavar="FILE", help="Retrieve from this memory (`translate --memory FILE --knn`).")
    ] = None
    formality: option.Formality = None


class Scoring(NamedTuple):
    """Scores."""

    by_length: Annotated[bool, Option("--by-length", help="Report scores by source length, too.")] = False
    tokenize: option.Tokenize = None
    lowercase: option.Lowercase = False
    perplexity: Annotated[bool, Option(help="Report perplexity and accuracy of the references, too.")] = True


class Report(NamedTuple):
    """Output."""

    as_json: option.Json = False
    samples: Annotated[int, Option(help="Show this many translations beside their references.", min=0)] = 0
    hypotheses: Annotated[
        Path | None, Option(callback=option.to_write(), help="Write the translations to this file.")
    ] = None
    overwrite: option.Overwrite = False

    def save(self, lines: list[str]) -> None:
        """Write the hypotheses, if requested."""
        if self.hypotheses:
            write_output(self.hypotheses, "".join(f"{line}\n" for line in lines).encode())


class EvaluationRequest(NamedTuple):
    """The model, the files of the test set, and how they are evaluated."""

    run: Path
    configuration: Configuration
    test: list[str]
    data: TestSet
    translation: Translation
    scoring: Scoring
    report: Report


@with_examples(__doc__)
def evaluate(
    run: option.Run,
    files: Annotated[list[str] | None, Argument(metavar="[FILES]", help="The test set, as with --test.")] = None,
    *,
    data: TestSet,
    scoring: Scoring,
    report: Report,
    translation: Translation,
    terms: option.Terms,
    languages: option.Languages,
) -> None:
    """Translate a test set and score it: BLEU, chrF, chrF++ and TER with sacreBLEU's signatures, perplexity.

    Lines are translated sentence by sentence, as by `translate`, unless --lines whole is given. The perplexity is per
    token of the model's own vocabulary, including end tokens: it compares models that share a tokenizer. With --terms,
    the use of the terms is counted, with and without terminology constraints. With --memory, the perplexity is that of
    the model without retrieval.

    With --pivot, the test set goes from the source of the first step to the target of the second one, and there is no
    perplexity.

    Captions are scored as papers do, against all references that --test has for an image: BLEU-1 to 4 and CIDEr-D;
    with --gold also by whether the model looks at the objects that it names.

    A text classifier is scored by accuracy, F1, a confusion matrix and calibration; --samples shows errors, the most
    confident ones first.

    A multilingual model is scored in each direction of the test files, whose names end with their languages; a model
    that was trained in both directions is tested in both. The off-target rate is the share of translations in another
    language of the model, by language identification, beside that of the references.

    A language model is scored by perplexity per word and bits per character, which compare models of any vocabulary.
    """
    # The test set may be given without --test, as in `evaluate RUN FILES`.
    test = [*(files or []), *(data.test or [])]
    if not test:
        raise UserError("there is nothing to test on", fix="Give sentence pairs with --test FILES.")
    refuse_twice(test, data.reference)
    flags = option.changed_flags(data, scoring, report, translation, terms)
    if translation.lines == "separate":
        flags["--lines separate"] = True
    refuse_together(flags)
    first_step, configuration = steps_of(run, translation.pivot, languages)
    refuse_unsuitable("evaluate", flags, configuration.model.reads, *(["--pivot"] if first_step else []))
    asked = EvaluationRequest(run, configuration, test, data, translation, scoring, report)
    if view := view_of(configuration.model.reads, "evaluate"):
        view(asked)
        return
    refuse_without_context(configuration, run, {"--lines separate": translation.lines == "separate"})
    _evaluate_translations(asked, first_step, terms, languages)


def _evaluate_translations(
    asked: EvaluationRequest, first_step: FirstStep | None, terms: option.Terms, languages: option.Languages
) -> None:
    from translucid.api.evaluation.scoring import score, score_terms
    from translucid.api.pivot_translator import AnyTranslator, PivotTranslator
    from translucid.api.translator import Translator
    from translucid.evaluation.alignment_error import read_gold
    from translucid.runs.run_folder import RunFolder

    run, configuration, test, data, translation, scoring, report = asked
    files = pair_up(test)
    if not any(languages):
        configuration = configuration.model_copy(update={"data": configuration.data.of_files(files)})
    configuration, has_several = _with_direction(configuration, first_step, files)
    if has_several:
        flags = option.changed_flags(data, scoring, report, translation, terms)
        _evaluate_directions(asked._replace(configuration=configuration, test=files), flags)
        return
    pairs = _pairs(configuration, first_step, files)
    if not pairs:
        raise UserError("holds no sentence pairs", file=test[0], fix="Check the file.")
    references = [list(read_lines(file)) for file in data.reference or []]
    if data.gold:
        from translucid.api.fitting.alignment_fitting import refuse_reversed, scored_readings  # loads PyTorch

        refuse_reversed(run, configuration)
    # Files are read before the model, so that errors in them are reported at once.
    links = read_gold(data.gold, pairs) if data.gold else []
    device, engine, ensemble = translation.device, translation.engine, translation.ensemble or ()
    translator = Translator.open(RunFolder(run), configuration, device, engine, others=ensemble)
    translator = translator.with_formality(translation.formality)
    if translation.lines == "separate":
        translator = replace(translator, pipeline=replace(translator.pipeline, context=None))
    if translation.memory:
        translator = translator.with_knn(translation.memory)
        _say_what_is_in_the_memory(translator, pairs)
    constrained = None
    if terms.terms:
        constrained = translator.with_terms(terms.terms, inflect=terms.inflect, mode=terms.mode, domain=terms.domain)
    if links and not translator.inspector.has_cross_attention:
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Omit --gold.")
    options = configuration.decoding_with({"beam": translation.beam})
    scored_translator: AnyTranslator = translator
    if first_step:
        scored_translator = PivotTranslator(first_step.open(translator, device, engine), translator)
    split, log = translation.lines != "whole", Console(stderr=True)
    scored, texts = score(
        scored_translator,
        pairs,
        options,
        references=references,
        split=split,
        perplexity=scoring.perplexity,
        lengths=scoring.by_length,
        tokenize=scoring.tokenize,
        lowercase=scoring.lowercase,
        console=log,
    )
    aligned = {}
    if links:
        aligned = scored_readings(translator, pairs, links)
    usage = None
    if constrained and constrained.terms:
        usage = score_terms(
            translator,
            constrained,
            constrained.terms,
            pairs,
            options,
            references=references,
            split=split,
            console=log,
        )
    report.save(texts)
    if report.as_json:
        log.print(str(scored.seen), soft_wrap=True)
        print_json({**scored.to_json(), "beam": options.beam, **_details_json(aligned, usage)})
        return
    print_scores(scored)
    _print_details(translator, aligned, usage)
    print_samples(report.samples, pairs, texts)


def _with_direction(
    configuration: Configuration, first_step: FirstStep | None, test: list[str]
) -> tuple[Configuration, bool]:
    """Return the configuration for the direction of a test set, and whether the test set has several directions."""
    from translucid.runs.corpus_files import corpora_of

    if first_step or not configuration.data.tokenizer.languages:
        return configuration, False
    directions = {corpus.direction for corpus in corpora_of(configuration.data, test)}
    if len(directions) == 1:
        configuration = configuration.between(*directions.pop())
    return configuration, len(directions) > 1


def _pairs(configuration: Configuration, first_step: FirstStep | None, files: list[str]) -> list[Pair]:
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.directions import languages_of

    if first_step is None:
        return list(pairs_of(configuration.data, *files))
    # Both runs may have been trained on reversed files; without languages in their names, these are not reversed.
    languages = first_step.configuration.data.languages[0], configuration.data.languages[1]
    are_reversed = set()
    for file in files:
        is_reversed = languages_of(file, filter(None, languages)) == languages[::-1]
        if is_reversed and is_test_set(file):
            fix = f"Give a test set of this direction, with {languages[0]}-{languages[1]} in its name."
            raise UserError(f"has no pairs from {languages[0]} to {languages[1]}", file=file, fix=fix)
        are_reversed.add(is_reversed)
    if len(are_reversed) > 1:
        raise UserError("the test files go in opposite directions", fix="Evaluate one direction at a time.")
    pairs = read_pairs(*files, languages=languages, documents=True)
    return [pair.swapped for pair in pairs] if are_reversed == {True} else list(pairs)


def _say_what_is_in_the_memory(translator: Translator, pairs: list[Pair]) -> None:
    """Print how many of the sources a memory has: their scores say nothing about other texts."""
    memory = translator.retrieval_engine.memory
    known = sum(memory.exact(pair.source) is not None for pair in pairs)
    message = f"{known:,} of {len(pairs):,} sources are in the memory"
    Console(stderr=True).print(message, style="yellow" if known else None)


def _details_json(
    aligned: dict[AlignmentOptions, AlignmentScore], usage: tuple[TermScore, TermScore] | None
) -> dict[str, object]:
    """Return the scores of alignments and terms, if requested."""
    record: dict[str, object] = {}
    if aligned:
        record["alignment"] = [{**options.model_dump(), **error.to_json()} for options, error in aligned.items()]
    if usage:
        unconstrained, constrained = usage
        record["terms"] = {"unconstrained": unconstrained.to_json(), "constrained": constrained.to_json()}
    return record


def _print_details(
    translator: Translator,
    aligned: dict[AlignmentOptions, AlignmentScore],
    usage: tuple[TermScore, TermScore] | None,
) -> None:
    from translucid.terminology.term_score import terms_table

    console = Console()
    if usage:
        console.print()
        console.print(terms_table(*usage))
    if aligned:
        from translucid.inspection.rendering.terminal import alignment_table  # loads PyTorch

        has_layer = any(options.learned for options in aligned)
        console.print()
        console.print(alignment_table(aligned, translator.configuration.alignment.of(has_layer)))


_ONE_DIRECTION = ("--reference", "--gold", "--terms", "--by-length", "--memory", "--formality")
"""The options that are for a single direction."""


def _evaluate_directions(asked: EvaluationRequest, flags: Mapping[str, object]) -> None:
    """Evaluate a multilingual model in the directions of a test set, with the given options as `flags`."""
    from translucid.api.evaluation.scoring import score_directions
    from translucid.api.translator import Translator
    from translucid.runs.corpus_files import corpora_of
    from translucid.runs.run_folder import RunFolder

    for name in _ONE_DIRECTION:
        if name in flags:
            fix = "Give --source-language and --target-language."
            raise UserError(f"{name} is for a single direction, and the test set has several", fix=fix)
    run, configuration, test, _, translation, scoring, report = asked
    pairs_by_direction: dict[Direction, list[Pair]] = {}
    for corpus in corpora_of(configuration.data, test):
        source, target = corpus.direction
        if not source or not target or CorpusName.parse(corpus.name).languages is None:
            fix = f"Write {corpus.name}:en-fr, for instance."
            raise UserError("has no languages, unlike other test files", file=corpus.name, fix=fix)
        pairs_by_direction.setdefault((source, target), []).extend(corpus.pairs())
    log, device, engine = Console(stderr=True), translation.device, translation.engine
    first_configuration = configuration.between(*next(iter(pairs_by_direction)))
    translator = Translator.open(RunFolder(run), first_configuration, device, engine, others=translation.ensemble or ())
    options = configuration.decoding_with({"beam": translation.beam})
    scores, texts = score_directions(
        translator,
        pairs_by_direction,
        options,
        split=translation.lines != "whole",
        perplexity=scoring.perplexity,
        tokenize=scoring.tokenize,
        lowercase=scoring.lowercase,
        console=log,
    )
    report.save(texts)
    if report.as_json:
        for score in scores.scores:
            log.print(f"{score.name}: {score.evaluation.seen}", soft_wrap=True)
        print_json({**scores.to_json(), "beam": options.beam})
        return
    print_scores(scores)
    print_samples(report.samples, list(chain.from_iterable(pairs_by_direction.values())), texts)
