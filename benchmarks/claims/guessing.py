"""Pseudo-labels for unlabeled texts, predicted from a few labeled ones.

Latent semantic analysis (Deerwester et al. 1990) finds, without any label, the few directions in which texts differ
most in their words:

    x_ij = (1 + ln count_ij) idf_j,    X ~ U S V^T,    z_i = V^T x_i / |V^T x_i|

A logistic regression on z learns the labels. Its most confident predictions are training data for another model
(self-training, Yarowsky 1995; pseudo-labels, Lee 2013).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from bitext.pair import Pair
from translucid.ground.errors import UserError

WORDS = 200_000
"""The maximum number of counted words and word pairs."""
PATTERN = r"\w+|[^\w\s]"
"""Words, and single punctuation marks."""
FOLDS = 10


class Guess(NamedTuple):
    """A predicted label with its probability."""

    label: str
    probability: float


class LabelGuesser:
    """Predicts labels, and abstains where it is not confident."""

    def __init__(
        self, space: Pipeline, judge: LogisticRegression, thresholds: NDArray[np.floating], accuracy: Accuracy
    ) -> None:
        """`thresholds`: the least probability [labels] of a confident prediction; see `learn`."""
        self.space, self.judge, self.thresholds, self.accuracy = space, judge, thresholds, accuracy

    @classmethod
    def learn(
        cls, labeled: Sequence[Pair], texts: Sequence[str], *, share: float = 0.4, dimensions: int = 50, seed: int = 1
    ) -> LabelGuesser:
        """Learn from texts with labels, and texts without.

        Args:
            labeled: at least two texts of each label.
            texts: texts without labels, on which the directions are found.
            share: the share of the predictions of each label that count as confident.
            dimensions: the number of directions.
            seed: seed of the decomposition, which starts at random, and of the folds of the cross-validation.

        Raises:
            UserError: there are too few texts, or a label stands at one text only.
        """
        counts = Counter(text.target for text in labeled)
        rarest = min(counts, key=counts.__getitem__, default="")
        if len(counts) < 2 or counts[rarest] < 2:
            what = f"the label {rarest!r} stands at one text only" if len(counts) > 1 else "there are no two labels"
            raise UserError(what, fix="Give at least two texts of each label.")
        space = _space(texts, dimensions, seed)
        z, y = space.transform([text.source for text in labeled]), np.array([text.target for text in labeled])
        judge = LogisticRegression(C=10.0, max_iter=1000)
        folds = StratifiedKFold(min(FOLDS, counts[rarest]), shuffle=True, random_state=seed)
        cross_validated = cross_val_predict(judge, z, y, cv=folds, method="predict_proba")
        judge.fit(z, y)
        probabilities = judge.predict_proba(space.transform(texts))
        predicted, confidence = probabilities.argmax(1), probabilities.max(1)
        thresholds = np.zeros(probabilities.shape[1])
        for column in range(len(thresholds)) if share < 1 else ():
            # A label that is never predicted has no confident predictions.
            has_predictions = column in predicted
            thresholds[column] = np.quantile(confidence[predicted == column], 1 - share) if has_predictions else 1.0
        return cls(space, judge, thresholds, Accuracy.of(cross_validated, judge.classes_ == y[:, None], thresholds))

    @property
    def labels(self) -> list[str]:
        """All labels, in order."""
        return [str(label) for label in self.judge.classes_]

    def guess(self, texts: Sequence[str]) -> list[Guess | None]:
        """Return the label of each text, or None where the prediction is not confident."""
        probabilities = self.judge.predict_proba(self.space.transform(texts))
        best = zip(probabilities.argmax(1).tolist(), probabilities.max(1).tolist(), strict=True)
        guesses: list[Guess | None] = []
        for column, probability in best:
            confident = probability >= self.thresholds[column]
            guesses.append(Guess(self.labels[column], probability) if confident else None)
        return guesses


class Accuracy(NamedTuple):
    """Cross-validated accuracy: each labeled text is predicted from the other folds."""

    all: float
    """The accuracy on all labeled texts."""
    confident: float
    """The accuracy on the confident predictions."""
    confident_count: int
    """The number of confident predictions."""

    @classmethod
    def of(
        cls, probabilities: NDArray[np.floating], truth: NDArray[np.bool_], thresholds: NDArray[np.floating]
    ) -> Accuracy:
        """Return the accuracy of probabilities [texts, labels]; `truth` [texts, labels] is True at the label."""
        best = probabilities.argmax(1)
        right = truth[np.arange(len(best)), best]
        confident = probabilities.max(1) >= thresholds[best]
        accuracy_of_confident = float(right[confident].mean()) if confident.any() else 0.0
        return cls(float(right.mean()), accuracy_of_confident, int(confident.sum()))


def _space(texts: Sequence[str], dimensions: int, seed: int) -> Pipeline:
    """Return the pipeline that maps texts to their coordinates z [texts, dimensions]."""
    rare = min(10, max(1, len(texts) // 100))
    words = TfidfVectorizer(
        token_pattern=PATTERN, ngram_range=(1, 2), sublinear_tf=True, min_df=rare, max_df=0.5, max_features=WORDS
    )
    too_few = UserError("too few texts to find out how they differ", fix="Give some hundred texts without labels.")
    try:
        counted = words.fit(texts).transform(texts[:1])
    except ValueError as error:  # no known word
        raise too_few from error
    if min(len(texts), counted.shape[1]) <= dimensions:
        raise too_few
    return make_pipeline(words, TruncatedSVD(dimensions, random_state=seed), Normalizer()).fit(texts)
