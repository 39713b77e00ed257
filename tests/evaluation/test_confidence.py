"""Confidence estimation: each feature by hand, and calibrated probabilities on data with known truth."""

import json
import math

import numpy as np
import pytest

from translucid.evaluation import confidence as estimating
from translucid.evaluation.confidence import (
    FEATURES,
    FOLDS,
    KINDS,
    Detached,
    Measurements,
    bins,
    calibration_error,
    cheapest,
    cross_entropy,
    detached,
    estimator,
    feature_matrix,
    fit,
    folds_of,
    lift,
    logistic,
    platt,
    sigmoid,
)

HALF, QUARTER = math.log(0.5), math.log(0.25)
MEASUREMENTS = Measurements(
    source="I like it",
    target="Me gusta",
    tokens=4,
    log_probability=2 * HALF + QUARTER,
    token_log_probs=np.array([0.0, HALF, QUARTER, HALF]),
    attention=np.array(
        [
            [0.1, 0.7, 0.1, 0.1, 0.0],
            [0.5, 0.0, 0.05, 0.45, 0.0],
            [0.0, 0.0, 0.0, 0.0, 1.0],
            [0.2, 0.2, 0.2, 0.2, 0.2],
        ]
    ),
    opening=1,
    dropout_log_probs=np.array([-4.0, -8.0, -6.0]),
)
"""Four target tokens, ending with the end token; the first and the last of five source tokens are no words."""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", -math.log(2)),  # (2 log 1/2 + log 1/4) / 4
        ("length", math.log(4)),
        ("length_ratio", math.log(4 / 3)),
        ("letters_ratio", math.log(8 / 9)),
        ("pieces_a_word", math.log(4 / 2)),
        ("mean_probability", (1 + 0.5 + 0.25 + 0.5) / 4),
        ("lowest", QUARTER),
        ("spread", math.sqrt(0.5) * math.log(2)),  # of 0, -1, -2 and -1 times log 2
        ("unsure", 1 / 4),
        (
            "entropy",  # the end token's row does not count
            -(0.7 * math.log(0.7) + 0.3 * math.log(0.1) + 0.5 * HALF + 0.05 * math.log(0.05) + 0.45 * math.log(0.45))
            / 3,
        ),
        ("coverage", 2 / 3),  # 0.7, 0.15 and 0.55 of three words
        ("elsewhere", (0.1 + 0.5 + 1) / 3),
        ("dropout_mean", -6 / 4),
        ("dropout_spread", math.sqrt(8 / 3) / 4),
    ],
)
def test_each_feature_by_hand(name, value):
    assert feature_matrix([MEASUREMENTS], [name]).tolist() == [[pytest.approx(value, abs=1e-9)]]


def test_every_feature_belongs_to_a_kind_and_is_tested():
    assert set().union(*KINDS.values()) == set(FEATURES)
    cases = test_each_feature_by_hand.pytestmark[0].args[1]
    assert [name for name, _ in cases] == list(FEATURES)


def test_features_of_next_to_nothing_are_numbers():
    empty = Measurements("", "", 1, -0.1, np.array([-0.1]), np.array([[1.0]]), 0, np.array([-0.1]))
    assert np.isfinite(feature_matrix([empty], list(FEATURES))).all()
    assert feature_matrix([], ["mean", "lowest"]).shape == (0, 2)


def test_repeated_observations_are_merged():
    without_dropout = Measurements(
        "I like it", "Me gusta", 4, MEASUREMENTS.log_probability, attention=MEASUREMENTS.attention, opening=1
    )
    without_attention = Measurements(
        "I like it",
        "Me gusta",
        4,
        MEASUREMENTS.log_probability,
        MEASUREMENTS.token_log_probs,
        None,
        1,
        MEASUREMENTS.dropout_log_probs,
    )
    for merged in (without_dropout.merged_with(without_attention), without_attention.merged_with(without_dropout)):
        merged_features, expected = (feature_matrix([item], list(FEATURES)) for item in (merged, MEASUREMENTS))
        assert merged_features.tolist() == expected.tolist()


def test_logistic_regression_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 4))
    truth = (rng.random(300) < sigmoid(x @ [1.0, -2.0, 0.0, 0.5] + 1)).astype(float)
    from sklearn.linear_model import LogisticRegression  # it takes seconds to import

    reference = LogisticRegression(C=1 / 3, tol=1e-10, max_iter=1000).fit(x, truth)
    assert logistic(x, truth, 3.0) == pytest.approx([*reference.coef_[0], reference.intercept_[0]], abs=1e-5)


def test_separable_data_get_finite_weights():
    x = np.array([-3.0, -2, -1, 1, 2, 3])[:, None]
    assert np.isfinite(logistic(x, (x[:, 0] > 0).astype(float), 1.0)).all()
    slope, offset = platt(x[:, 0], x[:, 0] > 0)
    assert 0.5 < sigmoid(np.array(slope * 3 + offset)) < 1
    assert platt(-x[:, 0], x[:, 0] > 0)[0] == pytest.approx(-slope)
    # At the optimum, the sum equals that of Platt's targets: 4/5 for each of 3 good ones, 1/4 for each of 2 bad ones.
    slope, offset = platt(x[1:, 0], x[1:, 0] > 0)
    assert sigmoid(slope * x[1:, 0] + offset).sum() == pytest.approx(3 * 4 / 5 + 2 * 1 / 4)


def test_cross_entropy_and_sigmoid_by_hand():
    z = np.array([0.0, 2.0, -800.0, 800.0])
    assert sigmoid(z) == pytest.approx([0.5, 1 / (1 + math.exp(-2)), 0, 1])
    assert cross_entropy(z, np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx([math.log(2), 2.126928, 0, 800])


def test_platt_finds_the_slope_by_which_scores_are_too_sure():
    rng = np.random.default_rng(1)
    z = rng.normal(1, 2, 20_000)
    good = rng.random(len(z)) < sigmoid(z)
    slope, offset = platt(3 * z - 5, good)
    assert (slope, offset) == (pytest.approx(1 / 3, rel=0.05), pytest.approx(5 / 3, rel=0.05))
    assert (
        calibration_error(sigmoid(3 * z - 5), good)
        > 0.1
        > 0.02
        > calibration_error(sigmoid(slope * (3 * z - 5) + offset), good)
    )


def translations_with_truth(count, seed=1):
    """Return translations, their probabilities of being good, which grow with the model's, and chrF scores."""
    rng = np.random.default_rng(seed)
    measurements, probabilities = [], []
    for number in range(count):
        tokens = int(rng.integers(3, 15))
        log_probs = np.log(rng.beta(*rng.uniform(1, 4, 2), tokens))
        words = " ".join(["word"] * rng.integers(1, tokens))
        measurements.append(Measurements(f"{number} {words}", words, tokens, float(log_probs.sum()), log_probs))
        probabilities.append(float(sigmoid(np.array(2 + 2 * log_probs.mean()))))
    probabilities = np.array(probabilities)
    return measurements, probabilities, np.where(rng.random(count) < probabilities, 90.0, 10.0)


@pytest.fixture(scope="module")
def fitted():
    measurements, _, chrf = translations_with_truth(4000)
    return estimator(measurements, chrf, 40.0, ["search", "tokens"])


def test_probabilities_are_those_that_the_truth_was_drawn_with(fitted):
    measurements, expected, chrf = translations_with_truth(4000, seed=2)
    confidence = fitted(measurements)
    assert np.abs(confidence - expected).mean() < 0.03
    assert calibration_error(confidence, chrf >= 40) < 0.03
    assert [interval.mean_confidence for interval in bins(confidence, chrf >= 40)] == pytest.approx(
        [interval.share_good for interval in bins(confidence, chrf >= 40)], abs=0.08
    )


def test_figures_are_of_translations_that_were_not_fitted(fitted):
    figures = next(entry for entry in fitted.figures if entry.kind == fitted.kind)
    samples = [translations_with_truth(4000, seed)[::2] for seed in (3, 4, 5)]
    lifts = [lift(fitted(measurements), chrf < 40) for measurements, chrf in samples]
    assert figures.lift == pytest.approx(np.mean(lifts), rel=0.1)
    # Fitted noise looks informative on the training data, but not in cross-validation.
    rng = np.random.default_rng(1)
    x, good = rng.normal(size=(60, 9)), rng.random(60) < 0.5
    noise = fit("tokens", x, good, folds_of(range(60)))
    *weights, offset = logistic((x - x.mean(0)) / x.std(0), good.astype(float), 1.0)
    fitted_loss = cross_entropy((x - x.mean(0)) / x.std(0) @ weights + offset, good.astype(float)).mean()
    assert fitted_loss < math.log(2) - 0.05 < noise.losses.mean()


def test_a_negated_feature_is_detected(fitted, monkeypatch):
    """An estimator fitted to a feature scores worse with its negative."""
    measurements, _, chrf = translations_with_truth(2000, seed=2)
    bad = chrf < 40
    confidence = fitted(measurements)
    monkeypatch.setattr(
        estimating, "FEATURES", {**FEATURES, "mean": lambda translation: -FEATURES["mean"](translation)}
    )
    negated = fitted(measurements)
    assert lift(confidence, bad) > 1.5 > lift(negated, bad)
    assert calibration_error(negated, ~bad) > 3 * calibration_error(confidence, ~bad)


def test_the_cheapest_is_taken_that_does_nearly_as_well():
    measurements, _, chrf = translations_with_truth(1000)
    good, folds = chrf >= 40, folds_of([translation.source for translation in measurements])
    search, tokens = (
        fit(kind, feature_matrix(measurements, KINDS[kind]), good, folds) for kind in ("search", "tokens")
    )
    assert cheapest([search, tokens]) is search
    uninformative = fit("search", np.ones((1000, 5)), good, folds)
    assert cheapest([uninformative, tokens]) is tokens


def test_the_same_source_is_never_on_both_sides():
    folds = folds_of(["a", "b", "a", "c", "d", "e", "f", "b"])
    assert folds.tolist() == [0, 1, 0, 2, 3, 4, 0, 1]
    assert FOLDS == 5


def test_the_worst_fifth_by_hand():
    confidence = np.array([0.1, 0.9, 0.2, 0.8, 0.7, 0.6, 0.5, 0.95, 0.85, 0.4])
    bad = confidence < 0.15
    bad[1] = True
    # The worst two of ten include one of the two bad ones.
    assert lift(confidence, bad) == pytest.approx(0.5 / 0.2)
    assert lift(-confidence, bad) == pytest.approx(2.5 if confidence[1] >= 0.9 else 0)


def test_bins_by_hand():
    confidence, good = np.array([0.9, 0.1, 0.8, 0.3]), np.array([True, False, True, True])
    first, second = bins(confidence, good, 2)
    assert (first.mean_confidence, first.share_good, first.count) == (pytest.approx(0.2), 0.5, 2)
    assert (second.mean_confidence, second.share_good, second.count) == (pytest.approx(0.85), 1, 2)
    assert len(bins(confidence, good, 10)) == 4


def attention_measurements(length, sharp, seed=1):
    """Return a translation whose attention is a softmax of noise; a higher `sharp` gives lower entropy."""
    scores = np.exp(sharp * np.random.default_rng(seed).normal(size=(6, length)))
    return Measurements("a b", "c d", 6, -1.0, attention=scores / scores.sum(1, keepdims=True))


def test_unusually_spread_attention_is_reported():
    outlier_check = detached([attention_measurements(int(5 + i % 20), 2.0, seed=i) for i in range(400)])
    assert outlier_check.slope > 0
    assert not outlier_check.about(attention_measurements(12, 2.0, seed=1000)) and not outlier_check.about(
        attention_measurements(40, 2.0, seed=1000)
    )
    (doubt,) = outlier_check.about(attention_measurements(12, 0.1))
    assert doubt.startswith("detached attention: ")
    assert detached([Measurements("a", "b", 1, -1.0)]) is None
    uniform = Measurements("a", "b", 1, -1.0, attention=np.full((2, 4), 0.25))
    assert Detached(offset=0, slope=1, limit=-0.01).about(uniform) and not Detached(
        offset=0, slope=1, limit=0.01
    ).about(uniform)


def test_an_estimator_by_hand():
    weights = dict.fromkeys(KINDS["search"], estimating.Weight(mean=0, deviation=1, weight=0))
    weights["length"] = estimating.Weight(mean=math.log(2), deviation=0.5, weight=3)
    fields = {"threshold": 40, "pairs": 2, "bad": 1, "kind": "search"}
    estimator = estimating.Estimator(**fields, weights=weights, offset=-1, slope=2, shift=0.5)
    # The log length of four tokens is log 2 above the mean: 2 log 2 standard deviations.
    expected = 1 / (1 + math.exp(-(2 * (3 * 2 * math.log(2) - 1) + 0.5)))
    assert estimator([MEASUREMENTS]).tolist() == [pytest.approx(expected)]


def test_the_file_of_an_older_run_loads(fitted):
    content = fitted.model_dump(mode="json")
    (current, *_) = content["reliability"]
    assert set(current) == {"mean_confidence", "share_good", "count"}
    for interval in content["reliability"]:
        interval["said"], interval["seen"] = interval.pop("mean_confidence"), interval.pop("share_good")
    assert estimating.Estimator.model_validate_json(json.dumps(content)) == fitted


def test_an_estimator_survives_its_file(fitted):
    loaded = estimating.Estimator.model_validate_json(fitted.model_dump_json())
    measurements, _, _ = translations_with_truth(20, seed=3)
    assert loaded(measurements).tolist() == fitted(measurements).tolist()
    assert loaded.is_complete() and not loaded.model_copy(update={"kind": "attention"}).is_complete()
