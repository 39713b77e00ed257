"""A translator on a test set: what it makes of it and how good that is, and where its alignments are best read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from translucid.api.translator import Translator
from translucid.data.readers.corpus import Pair
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.evaluation.metrics import without_blank
from translucid.evaluation.report import Evaluation, evaluate
from translucid.ground.console import Console, counting
from translucid.runs.run_folder import RunFolder
from translucid.terminology.matching import TermList
from translucid.terminology.term_score import TermScore


class Scored(NamedTuple):
    """What came of a test set."""

    evaluation: Evaluation
    texts: list[str]
    """The translations."""


def score(
    translator: Translator,
    pairs: Sequence[Pair],
    options: DecodingOptions | None = None,
    *,
    references: Sequence[Sequence[str]] = (),
    split: bool = False,
    perplexity: bool = True,
    lengths: bool = False,
    tokenize: str | None = None,
    lowercase: bool = False,
    console: Console,
) -> Scored:
    """Translate a test set and score the translations.

    Args:
        translator: any.
        pairs: sources, each with its first reference.
        options: how to search; the run's own settings if not given.
        references: more of them, each for all sources.
        split: split each source into sentences, as `Translator.stream` does.
        perplexity: whether the translator is made to write the first references too.
        lengths: scores by source length as well.
        tokenize: sacreBLEU's tokenizer; that of the run's target language if not given.
        lowercase: whether case is ignored.
        console: where progress is shown.
    """
    sources = [pair.source for pair in pairs]
    started = time.perf_counter()
    texts = translated(translator, sources, options, split=split, console=console)
    seconds = time.perf_counter() - started
    forced, too_long = None, 0
    if perplexity:
        with counting(console, "reading the references", len(pairs)) as advance:
            forced, too_long = translator.forced_scores(pairs, advance)
    evaluation = evaluate(
        sources,
        texts,
        without_blank([[pair.target for pair in pairs], *references]),
        seconds=seconds,
        engine=str(translator.engine),
        forced=forced,
        too_long=too_long,
        lengths=lengths,
        tokenize=tokenize,
        language=translator.configuration.data.languages[1],
        lowercase=lowercase,
    )
    return Scored(evaluation, texts)


def translated(
    translator: Translator,
    sources: Sequence[str],
    options: DecodingOptions | None = None,
    *,
    split: bool = False,
    console: Console,
) -> list[str]:
    """Return what a translator makes of the sources of a test set; arguments as for `score`."""
    with counting(console, "translating", len(sources)) as advance:
        return [found.text for found in translator.stream(sources, options, split=split, on_done=advance)]


def score_terms(
    translator: Translator,
    constrained: Translator,
    terms: TermList,
    pairs: Sequence[Pair],
    options: DecodingOptions | None = None,
    *,
    references: Sequence[Sequence[str]] = (),
    split: bool = False,
    console: Console,
) -> tuple[TermScore, TermScore]:
    """Return how many terms are used without and with terminology constraints.

    Args:
        translator: without terminology.
        constrained: what `with_terms` made of it.
        terms: to count.
        pairs: as for `score`, and so are the others.
        options: how to search.
        references: more of them.
        split: split each source into sentences.
        console: where progress is shown.
    """
    sources, wanted = [pair.source for pair in pairs], without_blank([[pair.target for pair in pairs], *references])
    language = translator.configuration.data.languages[1]
    found = []
    for one in (translator, constrained):
        started = time.perf_counter()
        texts = translated(one, sources, options, split=split, console=console)
        found.append(TermScore.of(terms, sources, texts, wanted, time.perf_counter() - started, language))
    return found[0], found[1]


def save_alignment_options(run: Path, ways: Mapping[AlignmentOptions, object]) -> None:
    """Write into a run's configuration that alignments are read in the first of some ways, which is the best."""
    folder = RunFolder(run)
    # Read from the run again: the configuration of the command may be narrowed to two languages.
    folder.save_configuration(folder.configuration().model_copy(update={"alignment": next(iter(ways))}))
