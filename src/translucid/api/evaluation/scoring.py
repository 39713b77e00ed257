"""The scores of a translator on a test set, and its best alignment options."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bitext.pair import Pair
from translucid.api.pivot_translator import AnyTranslator, PivotTranslator
from translucid.api.translator import Translator
from translucid.data.document_context import document_sources
from translucid.data.readers.corpus import Direction, label, references_of, sources_of, targets_of
from translucid.data.seen_sentences import SeenSentences
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.evaluation.metrics import bleu_tokenizer, without_blank
from translucid.evaluation.quality_checks import off_target_rate
from translucid.evaluation.report import DirectionScore, DirectionScores, Evaluation, SeenReport, evaluate
from translucid.ground.console import Console, progress_bar
from translucid.models.kinds import extensions, resolved
from translucid.runs.run_folder import RunFolder
from translucid.terminology.matching import TermList
from translucid.terminology.term_score import TermScore


class Scored(NamedTuple):
    """The translations of a test set, and their scores."""

    evaluation: Evaluation
    texts: list[str]
    """The translations of the sources."""


def score(
    translator: AnyTranslator,
    pairs: Sequence[Pair],
    options: DecodingOptions | None = None,
    *,
    references: Sequence[Sequence[str]] = (),
    split: bool = True,
    perplexity: bool = True,
    lengths: bool = False,
    tokenize: str | None = None,
    lowercase: bool = False,
    console: Console,
) -> Scored:
    """Translate a test set and score the translations.

    Args:
        translator: the translator.
        pairs: sources, each with its references.
        options: how to search; the run's own settings by default.
        references: further sets of references, each for all sources.
        split: whether to split sources into sentences, as `Translator.stream` does.
        perplexity: whether to compute the perplexity of the first references by forced decoding too; there is none of
            a translation through a pivot language.
        lengths: whether to compute scores by source length as well.
        tokenize: sacreBLEU's tokenizer; that of the run's target language by default.
        lowercase: whether case is ignored.
        console: shows the progress.
    """
    sources = sources_of(pairs)
    started = time.perf_counter()
    texts = translated(translator, pairs, options, split=split, console=console)
    seconds = time.perf_counter() - started
    # Forced decoding of the references is no part of the speed of translation.
    forced, too_long = None, 0
    if perplexity and isinstance(translator, Translator):
        with progress_bar(console, "reading the references", len(pairs)) as advance:
            forced, too_long = translator.inspector.forced_scores(pairs, advance)
    all_references = without_blank([*references_of(pairs), *references])
    language = translator.configuration.data.languages[1]
    tokenize = tokenize or bleu_tokenizer(language, all_references)
    seen = None
    if index := index_of(translator):
        seen = index.look_up(pairs, translator.languages, references=all_references[1:])
    evaluation = evaluate(
        sources,
        texts,
        all_references,
        seconds=seconds,
        engine=str(translator.stages.engine if isinstance(translator, Translator) else translator.engine),
        lines="sentences" if split else "whole",
        forced=forced,
        too_long=too_long,
        lengths=lengths,
        tokenize=tokenize,
        language=language,
        lowercase=lowercase,
    )
    report = SeenReport.of(seen, texts, all_references, tokenize=tokenize, lowercase=lowercase)
    return Scored(replace(evaluation, seen=report), texts)


def index_of(translator: AnyTranslator) -> SeenSentences | None:
    """Return the seen-sentence index of a translator's runs; None if there is none.

    Raises:
        UserError: a file of it is damaged.
    """
    if isinstance(translator, PivotTranslator):
        steps = [translator.first, translator.second]
    else:
        assert isinstance(translator, Translator)
        steps = [translator]
    folders = []
    for step in steps:
        folders += [folder.path for folder, _ in step.loaded.ensemble.runs]
    return SeenSentences.of_runs(dict.fromkeys(folders))


def translated(
    translator: AnyTranslator,
    pairs: Sequence[Pair],
    options: DecodingOptions | None = None,
    *,
    split: bool = True,
    console: Console,
) -> list[str]:
    """Return the translations of the sources of a test set; arguments as for `score`."""
    sources = document_sources(pairs, translator.context)
    with progress_bar(console, "translating", len(pairs)) as advance:
        translations = translator.stream(sources, options, split=split, on_done=advance)
        return [translation.text for translation in translations]


def score_directions(
    translator: Translator,
    by_direction: Mapping[Direction, Sequence[Pair]],
    options: DecodingOptions | None = None,
    *,
    split: bool = True,
    perplexity: bool = True,
    tokenize: str | None = None,
    lowercase: bool = False,
    console: Console,
) -> tuple[DirectionScores, list[str]]:
    """Translate test sets of several directions with a multilingual model, and score the translations.

    Args:
        translator: a translator of one of the directions.
        by_direction: the pairs of each direction.
        options: how to search; the run's own settings by default.
        split: whether to split sources into sentences.
        perplexity: whether to compute the perplexity of the references.
        tokenize: sacreBLEU's tokenizer; that of each target language by default.
        lowercase: whether case is ignored.
        console: shows the progress.

    Returns:
        The scores, and the translations of all directions in order.
    """
    data = translator.configuration.data
    languages = sorted({*data.all_languages, *chain.from_iterable(by_direction)})
    scores: list[DirectionScore] = []
    all_texts: list[str] = []
    for direction, pairs in by_direction.items():
        console.print(f"{label(direction)}:")
        scored, texts = score(
            translator.between(*direction),
            pairs,
            options,
            split=split,
            perplexity=perplexity,
            tokenize=tokenize,
            lowercase=lowercase,
            console=console,
        )
        rate, reference_rate = (
            off_target_rate(sentences, direction[1], languages) for sentences in (texts, targets_of(pairs))
        )
        zero_shot = data.is_zero_shot(direction)
        scores.append(DirectionScore(label(direction), scored, rate, reference_rate, zero_shot))
        all_texts += texts
    return DirectionScores(scores, languages), all_texts


def score_terms(
    translator: Translator,
    constrained: Translator,
    terms: TermList,
    pairs: Sequence[Pair],
    options: DecodingOptions | None = None,
    *,
    references: Sequence[Sequence[str]] = (),
    split: bool = True,
    console: Console,
) -> tuple[TermScore, TermScore]:
    """Return the scores of terminology use without and with terminology constraints.

    Args:
        translator: the translator without terms.
        constrained: the translator with terms.
        terms: the terms to count.
        pairs: sources, each with its references.
        options: how to search; the run's own settings by default.
        references: further sets of references, each for all sources.
        split: whether to split sources into sentences.
        console: shows the progress.
    """
    sources = sources_of(pairs)
    all_references = without_blank([*references_of(pairs), *references])
    language = translator.configuration.data.languages[1]

    def term_score(translator: Translator) -> TermScore:
        started = time.perf_counter()
        texts = translated(translator, pairs, options, split=split, console=console)
        return TermScore.of(terms, sources, texts, all_references, time.perf_counter() - started, language)

    return term_score(translator), term_score(constrained)


def save_alignment_options(
    translator: Translator, ranked: Mapping[AlignmentOptions, object], pairs: Sequence[Pair]
) -> None:
    """Save the first of some alignment options, which is the best, in the configuration of a translator's run.

    Args:
        translator: the translator.
        ranked: the options, the best first.
        pairs: sentence pairs on which extensions choose further settings (`Extension.settings`).
    """
    changes: dict[str, Any] = {"alignment": next(iter(ranked))}
    for extension in extensions():
        for group, function in extension.settings.items():
            changes[group] = resolved(function)(translator, ranked, pairs)
    folder = RunFolder(Path(translator.run))
    # Read from the run again: the configuration of the command may be restricted to two languages.
    folder.save_configuration(folder.configuration().model_copy(update=changes))
