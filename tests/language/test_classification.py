"""Scores of classifiers, against scikit-learn and by hand."""

import numpy as np
import pytest

from translucid.language.text_classifier import calibration_error, classification_scores, macro_f1

NAMES = ["cat", "dog", "eel"]


def test_accuracy_f1_and_confusion_are_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.ones(3), 200)
    truth = rng.integers(0, 3, 200)
    scores = classification_scores(probabilities, truth, NAMES)
    predictions = probabilities.argmax(1)
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(truth, predictions))
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(truth, predictions, average="macro"))
    assert scores.confusion == metrics.confusion_matrix(truth, predictions).tolist()
    assert scores.cross_entropy == pytest.approx(metrics.log_loss(truth, probabilities))
    report = metrics.classification_report(truth, predictions, target_names=NAMES, output_dict=True)
    for name in NAMES:
        label = scores.labels[name]
        assert (label.precision, label.recall, label.f1, label.texts) == pytest.approx(tuple(report[name].values()))


def test_a_label_that_is_never_found_has_no_f1():
    assert macro_f1(np.array([[3, 0], [2, 0]])) == pytest.approx((2 * 0.6 * 1 / 1.6) / 2)


def test_calibration_by_hand():
    """Two texts at 0.95, one of them right; two at 0.6, both right: (2 * 0.45 + 2 * 0.4) / 4."""
    sure, right = np.array([0.95, 0.95, 0.61, 0.61]), np.array([True, False, True, True])
    assert calibration_error(sure, right) == pytest.approx((2 * 0.45 + 2 * 0.39) / 4)
    assert calibration_error(np.ones(3), np.ones(3, bool)) == 0


def test_the_json_values_contain_all_figures():
    record = classification_scores(np.eye(3), np.arange(3), NAMES).to_json()
    assert record["labels"]["eel"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "texts": 1}
