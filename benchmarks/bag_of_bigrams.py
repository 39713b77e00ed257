"""Baselines for text classification: logistic regression and NB-SVM on bags of bigrams.

    python -m benchmarks.bag_of_bigrams TRAIN.jsonl TEST.jsonl [--labels 100 500 2000] [--seeds 3]

NB-SVM follows Wang and Manning 2012: a linear model of binary word and bigram features, each scaled by its log-count
ratio between the labels. With more than two labels, one model per label separates it from the rest.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.claims.guessing import PATTERN
from translucid.data.readers.texts import read_texts

MIX = 0.25
"""The share of the weights in their interpolation with their mean."""


def drawn(labels: NDArray[np.str_], count: int | None, seed: int) -> NDArray[np.int64]:
    """Return the indices of `count` random texts, balanced over the labels, or of all texts if None."""
    indices = np.arange(len(labels))
    if count is None:
        return indices
    random, names = np.random.default_rng(seed), np.unique(labels)
    share = -(-count // len(names))
    return np.concatenate([random.permutation(indices[labels == name])[:share] for name in names])[:count]


def nb_svm(x: csr_matrix, y: NDArray[np.str_], test: csr_matrix) -> NDArray[np.str_]:
    """Return the labels of test [n, features], learned from x [texts, features], 0 or 1, and y [texts]."""
    names, scores = np.unique(y), []
    for name in names:
        inside = y == name
        p, q = (1 + np.asarray(x[rows].sum(0)).ravel() for rows in (inside, ~inside))
        ratio = diags(np.log((p / p.sum()) / (q / q.sum())))
        model = LinearSVC(C=0.1).fit(x @ ratio, inside)
        weights = model.coef_[0]
        mixed = (1 - MIX) * np.abs(weights).mean() + MIX * weights
        scores.append(test @ ratio @ mixed + model.intercept_[0])
    return names[np.argmax(scores, 0)]


def accuracies(
    train: Sequence[str], y: NDArray[np.str_], test: Sequence[str], truth: NDArray[np.str_]
) -> dict[str, float]:
    """Return the accuracy of both baselines on test texts."""
    bag = CountVectorizer(ngram_range=(1, 2), token_pattern=PATTERN, binary=True, min_df=2 if len(train) > 2000 else 1)
    x = bag.fit_transform(train).astype(np.float64)
    test_features = bag.transform(test).astype(np.float64)
    logistic = LogisticRegression(C=0.1 if len(train) > 2000 else 1.0, max_iter=200).fit(x, y).predict(test_features)
    return {
        "logistic": float((logistic == truth).mean()),
        "nb-svm": float((nb_svm(x, y, test_features) == truth).mean()),
    }


def main() -> None:
    """Print one line of JSON for each size and seed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument(
        "--labels", type=int, nargs="*", default=[], help="numbers of training texts; all texts come last"
    )
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    (texts, y), (test, truth) = (
        map(np.array, zip(*read_texts(file), strict=True)) for file in (arguments.train, arguments.test)
    )
    for count in [*arguments.labels, None]:
        for seed in range(1, (arguments.seeds if count else 1) + 1):
            rows = drawn(y, count, seed)
            scores = accuracies(texts[rows], y[rows], test, truth)
            print(json.dumps({"labels": len(rows), "seed": seed, **scores}), flush=True)


if __name__ == "__main__":
    main()
