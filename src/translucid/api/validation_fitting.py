"""The scores of a run on its validation sentences: sentences that differ too much from them cause a warning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from translucid.api.translator import Translator
from translucid.data.readers.corpus import sources_of
from translucid.engines.run_files import load_validation_scores, save_validation_scores
from translucid.evaluation.familiarity import SentenceMeasures, ValidationScores, WordSet, measure
from translucid.ground.console import Console, progress_bar
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora, read_corpora
from translucid.runs.run_folder import RunFolder

SENTENCES = 500
"""The largest number of validation sentences that are translated."""
FEWEST = 20
"""The least number of sentences whose mean and deviation are reliable."""


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
    """Translate validation sentences with a run, and save their scores in its folder.

    Args:
        run: the run folder.
        console: shows the progress.
        train: files of training pairs; the run's own by default. Without any, as for an imported run, the pieces of the
            vocabulary replace the words of the training text.
        valid: files of validation pairs; the run's own by default.
        device: the device of the model.
        source: the code of the source language, for a multilingual model; as the run says by default.
        target: the code of the target language.

    Returns:
        The scores; None if there are too few sentences.

    Raises:
        UserError: the run is damaged, or files do not exist.
    """
    folder = RunFolder(run)
    configuration = folder.configuration().between(source, target)
    configuration.refuse_other_input("text", run)
    data = configuration.data
    files = {"train": [*train] or data.train, "valid": [*valid] or data.validation_files}
    options = data.model_copy(update={**files, "weights": None})
    corpora = read_corpora(options, configuration.training.seed, folder.held_out(), needs_training_text=False)
    pairs = [pair for pair in corpora.valid if pair.source.strip()][:SENTENCES]
    if len(pairs) < FEWEST:
        return None
    words = _training_words(configuration, corpora) if corpora.train else None
    translator = Translator.open(folder, configuration, device)
    tokenizer = translator.tokenizer
    measurements: list[SentenceMeasures] = []
    before = translator.sources_before(pairs)
    with progress_bar(console, "translating validation sentences", len(pairs)) as advance:
        # Without splitting: a validation source has one target, even if it has several sentences.
        for translation in translator.stream(sources_of(pairs), split=False, on_done=advance, before=before):
            for piece, best in translation.parts:
                ids, tokens = piece.ids[:-1], best.tokens
                measurements.append(measure(tokenizer, words, piece.text, ids, tokens, best.log_probability))
    scores = ValidationScores.of(measurements, words)
    save_validation_scores(folder, tokenizer, data.chosen_languages, scores)
    return scores


def _training_words(configuration: Configuration, corpora: Corpora) -> WordSet | None:
    """Return the source words that a model has learned; None if the words of its initial run are not known."""
    base = None
    if configuration.training.begin_from:
        initial = RunFolder(Path(configuration.training.begin_from))
        if initial.exists:
            scores = load_validation_scores(initial, initial.tokenizer(), configuration.data.languages)
            base = scores.training_words() if scores else None
        if base is None:
            return None
    return WordSet.of((pair.source for pair in corpora.filtered(configuration.data.filter)), base)
