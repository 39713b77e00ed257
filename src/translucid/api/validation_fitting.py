"""What a run's own validation sentences measure: later sentences that differ too much are warned of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from translucid.api.translator import Translator
from translucid.engines.validation_file import load_validation_scores, save_validation_scores
from translucid.evaluation.familiarity import Measured, ValidationScores, WordSet, measured
from translucid.ground.console import Console, counting
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora, read_corpora
from translucid.runs.run_folder import RunFolder

SENTENCES = 500
"""Validation sentences that are translated, at most."""
FEWEST = 20
"""Sentences from which on their mean and deviation say something."""


def fit_validation_scores(
    run: Path,
    *,
    console: Console,
    train: Sequence[str] = (),
    valid: Sequence[str] = (),
    device: str = "auto",
    source: str | None = None,
    target: str | None = None,
) -> ValidationScores | None:
    """Translate validation sentences as the run does, and keep what they measure in its folder.

    Args:
        run: its folder.
        console: where progress is shown.
        train: files of training pairs; the run's own if not given. An imported run has none of its own: if none are
            given either, pieces stand for the words that it has learned.
        valid: files of pairs; those that the run was validated with if not given.
        device: where to translate.
        source: code of the source language, for a model that has many; as the run says if not given.
        target: code of the target language.

    Returns:
        What was kept; None if there are too few sentences.

    Raises:
        UserError: the run is damaged, or its files are not there.
    """
    folder = RunFolder(run)
    configuration = folder.configuration().between(source, target)
    configuration.refuse_other_reader("text", run)
    data = configuration.data
    files = {"train": [*train] or data.train, "valid": [*valid] or data.valid}
    chosen = data.model_copy(update={**files, "weights": None})
    corpora = read_corpora(chosen, configuration.training.seed, folder.held_out(), needs_training_text=False)
    sentences = [pair.source for pair in corpora.valid if pair.source.strip()][:SENTENCES]
    if len(sentences) < FEWEST:
        return None
    words = _training_words(configuration, corpora) if corpora.train else None
    translator = Translator.open(folder, configuration, device)
    tokenizer = translator.tokenizer
    every: list[Measured] = []
    with counting(console, "translating validation sentences", len(sentences)) as advance:
        for found in translator.stream(sentences, split=False, on_done=advance):
            for piece, best in found.parts:
                ids, tokens = piece.ids[:-1], best.tokens
                every.append(measured(tokenizer, words, piece.text, ids, tokens, best.log_probability))
    scores = ValidationScores.of(every, words)
    save_validation_scores(folder, tokenizer, data.languages if data.tokenizer.languages else None, scores)
    return scores


def _training_words(configuration: Configuration, corpora: Corpora) -> WordSet | None:
    """Return the source words that a model has learned; None if those of the run that it began with are not known."""
    base = None
    if configuration.training.begin_from:
        begun = RunFolder(Path(configuration.training.begin_from))
        scores = (
            load_validation_scores(begun, begun.tokenizer(), configuration.data.languages) if begun.exists else None
        )
        base = scores.known() if scores else None
        if base is None:
            return None
    return WordSet.of((pair.source for pair in corpora.kept(configuration.data.filter)), base)
