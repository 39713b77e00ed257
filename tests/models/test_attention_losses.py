"""Attention losses of captioners against sums computed by hand and finite differences."""

from math import exp, log

import pytest
import torch

from tests.devices.shrunk import build_case
from translucid.attention.points import recording_weights
from translucid.captions.model import DRAWN, CaptioningLSTM, doubly_stochastic, entropy, reinforced, undetected
from translucid.captions.options import CaptionerOptions, ImageEncoderOptions
from translucid.ground.special import SPECIAL
from translucid.models.recurrent import CROSS

ALPHA = torch.tensor([[[0.5, 0.5], [0.8, 0.2], [0.1, 0.9]]])
"""One caption of two words and padding, two cells."""
REAL = torch.tensor([[True, True, False]])


def test_the_doubly_stochastic_loss_by_hand():
    assert doubly_stochastic(ALPHA, REAL) == pytest.approx((1 - 1.3) ** 2 + (1 - 0.7) ** 2)
    assert doubly_stochastic(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), REAL[:, :2]) == 0
    assert doubly_stochastic(torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]), REAL[:, :2]) == 2


def test_undecided_draws_have_more_entropy():
    expected = log(2) - 0.8 * log(0.8) - 0.2 * log(0.2)
    assert entropy(ALPHA, REAL) == pytest.approx(expected)
    assert entropy(torch.tensor([[[1.0, 0.0]]]), REAL[:, :1]) == pytest.approx(0, abs=1e-6)


def test_the_cost_of_a_draw_is_its_log_probability_times_the_luck():
    sample = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    cost = reinforced(ALPHA, sample, REAL, torch.tensor([2.0]))
    assert cost == pytest.approx(-2 * (log(0.5) + log(0.2)))
    assert reinforced(ALPHA, ALPHA, REAL, torch.tensor([2.0])) == 0  # a caption trained with soft attention


def test_draws_follow_the_gradient_of_the_expected_reward():
    """The mean of the estimator over all draws is the derivative of E[reward], for any baseline."""
    reward = torch.tensor([-1.0, -3.0, -0.5])

    def expected(scores):
        return (scores.softmax(-1) * reward).sum()

    scores = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64)
    exact_gradient = [
        (expected(scores + step) - expected(scores - step)) / 2e-4 for step in 1e-4 * torch.eye(3, dtype=torch.float64)
    ]
    for baseline in (0.0, -1.7):
        leaf = scores.clone().requires_grad_()
        alpha = leaf.softmax(-1)
        for cell, probability in enumerate(alpha.detach()):
            sample = torch.eye(3, dtype=torch.float64)[cell].view(1, 1, 3)
            advantage = reward[cell : cell + 1] - baseline
            (probability * reinforced(alpha.view(1, 1, 3), sample, REAL[:, :1], advantage)).backward(retain_graph=True)
        torch.testing.assert_close(-leaf.grad, torch.stack(exact_gradient), atol=1e-6, rtol=1e-5)


def test_words_that_tell_an_image_from_others_are_looked_for_in_its_cells():
    first, common, second = 10, 11, 12  # two images; `common` is in both captions, so it is ignored
    words = torch.tensor([[first, common, SPECIAL.end], [common, second, SPECIAL.pad]])
    scores = torch.zeros(2, 2, 13)
    scores[0, 1, first], scores[1, 0, second] = 3.0, 1.0
    # Each image has 26 scores, which are 0 except for s: p = (1 + e^s) / (25 + e^s).
    expected = -sum(log((1 + exp(s)) / (25 + exp(s))) for s in (3.0, 1.0)) / 2
    assert undetected(scores, words, SPECIAL) == pytest.approx(expected, rel=1e-5)


def test_the_baseline_follows_the_rewards_and_luck_is_measured_from_it():
    options = CaptionerOptions(
        attention="hard",
        width=6,
        image_encoder=ImageEncoderOptions(size=32, stride=16, channels=4),
        doubly_stochastic=0,
        entropy=0,
    )
    model = CaptioningLSTM(11, options)
    memory = model.encode(torch.zeros(2, 32, 32, 3, dtype=torch.uint8))
    labels = torch.tensor([[5, 6], [7, SPECIAL.pad]])
    alpha = torch.tensor([[[0.5, 0.5, 0, 0], [0.8, 0.2, 0, 0]], [[0.1, 0.9, 0, 0], [0.1, 0.9, 0, 0]]])
    samples = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0]], [[0, 1, 0, 0], [1, 0, 0, 0]]])
    maps = {CROSS: alpha[:, None], DRAWN: samples[:, None]}
    baseline = -4.0  # the mean of the first rewards, -3 and -5; after that it moves by a tenth of the difference
    for log_probs in ([[-1.0, -2.0], [-5.0, 0.0]], [[-1.0, -1.0], [-3.0, 0.0]]):
        rewards = [sum(row) for row in log_probs]
        baseline += 0.1 * (sum(rewards) / 2 - baseline)
        cost = model.auxiliary_loss(memory, labels, maps, lambda values=log_probs: torch.tensor(values))
        assert model.baseline.item() == pytest.approx(baseline)
        first, second = (reward - baseline for reward in rewards)
        assert cost.item() == pytest.approx(-first * (log(0.5) + log(0.2)) - second * log(0.9))


def test_words_that_no_cell_shows_add_to_the_loss():
    """The detection loss, a mean over images, is multiplied by the number of tokens; the others sum over tokens."""
    case = build_case("captioner that reads first")  # with a detector
    model, labels = case.model, case.batch.labels
    memory = model.encode(case.batch.source)
    with recording_weights(model) as maps:
        model.features(memory, case.batch.targets_in)
    loss = model.auxiliary_loss(memory, labels, maps, lambda: torch.zeros_like(labels))
    real = labels != model.pad
    missed = undetected(model.detector(memory.states), labels.view(len(memory.states), -1), SPECIAL)
    stochastic = model.options.doubly_stochastic * doubly_stochastic(maps[CROSS][:, 0], real)
    assert loss.item() == pytest.approx((stochastic + model.options.detector * real.sum() * missed).item(), rel=1e-5)
    assert missed > 0
