"""What tells whether a translation can be trusted, fitted to translations of a run and saved in its folder.

A confidence estimator is fitted to the translations of sentence pairs. Sentences that differ too much from the
validation sentences, by the scores of these, cause a warning.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.data.document_context import document_sources
from translucid.engines.run_files import load_validation_scores, save_confidence, save_validation_scores
from translucid.engines.stages import Part
from translucid.evaluation.confidence import KINDS, Estimator, Kind, Measurements, estimator
from translucid.evaluation.metrics import sentence_chrf
from translucid.evaluation.out_of_domain import SentenceMeasures, ValidationScores, WordSet, measure
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora, pairs_of, read_corpora
from translucid.runs.run_folder import RunFolder

FEWEST = 20
"""The least number of good translations, and of bad ones."""
THRESHOLD = 40.0
"""The least chrF of a good translation."""
SENTENCES = 2000
"""The largest number of pairs that are translated."""
PART = 64
"""The number of translations whose features are computed together."""


class Fitted(NamedTuple):
    """The result of fitting a confidence estimator."""

    estimator: Estimator
    costs: dict[Kind, float]
    """For each kind of features, the time of a translation with confidence relative to that of one without."""


def fit_confidence(
    run: Path,
    *,
    console: Console,
    valid: Sequence[str] = (),
    kind: Kind | None = None,
    threshold: float = THRESHOLD,
    passes: int = 0,
    sentences: int = SENTENCES,
    source: str | None = None,
    target: str | None = None,
) -> Fitted:
    """Translate pairs with a run, and fit an estimator that distinguishes good translations from bad ones.

    Args:
        run: the run folder.
        console: shows the progress.
        valid: files of pairs; the run's own validation pairs by default.
        kind: the kind of features; by default, the cheapest that is as good as the best.
        threshold: the least chrF of a good translation against the reference, 0 to 100.
        passes: the number of passes with dropout, which are tried too; 0 for none.
        sentences: the largest number of pairs.
        source: the code of the source language, for a multilingual model; as the run says by default.
        target: the code of the target language.

    Raises:
        UserError: the run is damaged or has no such features, or there are too few pairs, good or bad.
    """
    t = Translator.load(run, "cpu", source=source, target=target)
    kinds = _kinds(t, run, kind, passes)
    pairs = pairs_to_fit(RunFolder(run), t, valid)[:sentences]
    started = time.perf_counter()
    # Unlike in use, sources are not split: the reference is that of the whole source.
    with progress_bar(console, "translating", len(pairs)) as advance:
        translations = list(t.stream(document_sources(pairs, t.context), split=False, on_done=advance))
    seconds = time.perf_counter() - started
    parts, texts, references = [], [], []
    for translation, pair in zip(translations, pairs, strict=True):
        # The figures of a sentence that was split could not be compared with one chrF.
        if len(translation.parts) == 1:
            parts += translation.parts
            texts.append(translation.text)
            references.append(pair.target)
    chrf = np.array(sentence_chrf(texts, references), np.float64)
    bad = int((chrf < threshold).sum())
    if min(bad, len(chrf) - bad) < FEWEST:
        what = f"of {len(chrf):,} translations {bad:,} have a chrF under {threshold:g}: too few to tell good from bad"
        raise UserError(what, fix="Give more pairs with `valid`, or another `threshold`.")
    measurements, costs = _measure(t, parts, kinds, passes, seconds, console)
    fitted = estimator(measurements, chrf, threshold, kinds, passes=passes)
    save_confidence(RunFolder(run), t.tokenizer, t.configuration.data.chosen_languages, fitted)
    return Fitted(fitted, costs)


def _kinds(t: Translator, run: Path, kind: Kind | None, passes: int) -> list[Kind]:
    """Return the kinds of features to try, the cheapest first."""
    if kind == "attention" and not t.inspector.has_cross_attention:
        raise UserError("the model has no attention", file=run, fix='Choose `kind="tokens"`.')
    if (kind == "dropout" and not passes) or (passes and kind not in (None, "dropout")):
        raise UserError('`kind="dropout"` and `passes` go together', fix="Give both, or the latter alone.")
    if passes and not t.configuration.model.dropout:
        raise UserError("the model has no dropout", file=run, fix="Leave out `passes`.")
    if kind:
        return [kind]
    kinds = list(KINDS)
    if not t.inspector.has_cross_attention:
        kinds.remove("attention")
    if not passes:
        kinds.remove("dropout")
    return kinds


def pairs_to_fit(folder: RunFolder, t: Translator, files: Sequence[str]) -> list[Pair]:
    """Return the pairs to fit to, from files or from the run's own validation, without blank texts."""
    data = t.configuration.data
    names = [*files] or data.validation_files
    if names:
        pairs = list(pairs_of(data, *names))
    else:
        pairs = folder.held_out() or []
    usable = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    if not usable:
        raise UserError("there are no pairs to fit to", fix="Give some with `valid` that the run was not trained on.")
    return usable


def _measure(
    t: Translator, parts: Sequence[Part], kinds: Sequence[Kind], passes: int, seconds: float, console: Console
) -> tuple[list[Measurements], dict[Kind, float]]:
    """Return the figures of translations; each kind is computed separately, so that its cost is known."""
    costs: dict[Kind, float] = {}
    measurements: list[Measurements] = []
    for kind in kinds:
        started = time.perf_counter()
        kind_measurements: list[Measurements] = []
        with progress_bar(console, f"computing features: {kind}", len(parts)) as advance:
            for start in range(0, len(parts), PART):
                batch = parts[start : start + PART]
                kind_measurements += t.quality.observed(batch, [kind], passes)
                advance(len(batch))
        costs[kind] = 1 + (time.perf_counter() - started) / seconds
        if measurements:
            kind_measurements = [
                earlier.merged_with(later) for earlier, later in zip(measurements, kind_measurements, strict=True)
            ]
        measurements = kind_measurements
    return measurements, costs


VALIDATION_SENTENCES = 500
"""The largest number of validation sentences that are translated."""
FEWEST_SENTENCES = 20
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
    configuration = folder.configuration("text").between(source, target)
    data = configuration.data
    files = {"train": [*train] or data.train, "valid": [*valid] or data.validation_files}
    options = data.model_copy(update={**files, "weights": None})
    corpora = read_corpora(options, configuration.training.seed, folder.held_out(), needs_training_text=False)
    pairs = [pair for pair in corpora.valid if pair.source.strip()][:VALIDATION_SENTENCES]
    if len(pairs) < FEWEST_SENTENCES:
        return None
    words = _training_words(configuration, corpora) if corpora.train else None
    translator = Translator.open(folder, configuration, device)
    tokenizer = translator.tokenizer
    measurements: list[SentenceMeasures] = []
    sources = document_sources(pairs, translator.context)
    with progress_bar(console, "translating validation sentences", len(pairs)) as advance:
        # Without splitting: a validation source has one target, even if it has several sentences.
        for translation in translator.stream(sources, split=False, on_done=advance):
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
