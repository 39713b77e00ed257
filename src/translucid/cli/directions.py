"""`translucid evaluate` for a multilingual model and test sets of several directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bitext.pair import Pair
from translucid.cli.printing import print_json, print_samples, print_scores
from translucid.data.readers.corpus_names import CorpusName, Direction
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.cli.evaluate import Report, Scoring, Translation
    from translucid.runs.configuration import Configuration

ONE_DIRECTION = ("--reference", "--alignments", "--keep-best", "--terms", "--by-length")
"""The options that are for a single direction."""


def evaluate_directions(
    run: Path,
    configuration: Configuration,
    flags: Mapping[str, object],
    test: Sequence[str],
    scoring: Scoring,
    report: Report,
    translation: Translation,
) -> None:
    """Evaluate a multilingual model in the directions of a test set.

    Args:
        run: the run folder.
        configuration: its configuration.
        flags: the options of the command that were given.
        test: the test files, whose names have languages.
        scoring: how to score.
        report: what to print and to write.
        translation: how to translate.

    Raises:
        UserError: an option is for a single direction, or a file does not name its languages.
    """
    from translucid.api.scoring import score_directions
    from translucid.api.translator import Translator
    from translucid.runs.corpus_files import corpora_of
    from translucid.runs.run_folder import RunFolder

    for name in ONE_DIRECTION:
        if name in flags:
            fix = "Give --source-language and --target-language."
            raise UserError(f"{name} is for a single direction, and the test set has several", fix=fix)
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
        split=translation.split_sentences,
        perplexity=scoring.perplexity,
        tokenize=scoring.tokenize,
        lowercase=scoring.lowercase,
        console=log,
    )
    report.save(texts)
    if report.as_json:
        print_json({**scores.to_json(), "beam": options.beam})
        return
    print_scores(scores)
    print_samples(report.samples, list(chain.from_iterable(pairs_by_direction.values())), texts)
