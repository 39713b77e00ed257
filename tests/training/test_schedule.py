"""The learning-rate schedule against values computed by hand."""

import pytest

from translucid.runs.training_options import TrainingOptions
from translucid.training.schedule import learning_rate, short_warmup


@pytest.mark.parametrize(
    ("step", "progress", "rate"),
    [
        (1, 0.0, 0.01),
        (50, 0.1, 0.5),
        (100, 0.2, 1.0),
        (400, 0.5, 0.5),
        (400, 0.8, 0.5),
        (400, 0.9, 0.25),
        (10_000, 1.0, 0.0),
    ],
)
def test_warm_up_square_root_and_cool_down(step, progress, rate):
    options = TrainingOptions(learning_rate=1.0, warmup=100, cooldown=0.2)
    assert learning_rate(options, step, progress) == pytest.approx(rate)


def test_without_cool_down_it_never_ends():
    options = TrainingOptions(learning_rate=1.0, warmup=100, cooldown=0)
    assert learning_rate(options, 400, 1.0) == pytest.approx(0.5)


@pytest.mark.parametrize(("progress", "rate"), [(0, 1 / 32), (0.05, 33 / 64), (0.1, 1.0), (0.55, 33 / 64), (1, 1 / 32)])
def test_a_slanted_triangle(progress, rate):
    options = TrainingOptions(learning_rate=1.0, warmup=100, cooldown=0.2, schedule="slanted")
    assert learning_rate(options, 12345, progress) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("step", "progress", "message"),
    [
        (10, 0.05, ""),  # too early to tell
        (50, 0.1, "after about 500 updates, within the warm-up of 1,000"),
        (90, 1.0, "after about 90 updates, within the warm-up of 1,000"),
        (100, 0.1, ""),  # 1,000 updates in all
        (1000, 0.1, ""),
    ],
)
def test_a_training_that_ends_within_its_warm_up_is_warned_of(step, progress, message):
    warning = short_warmup(TrainingOptions(warmup=1000), step, progress)
    assert message in warning and bool(message) == bool(warning)
    assert ("training.warmup=50" in warning) == (message.startswith("after about 500"))
    assert ("training.batch_tokens" in warning) == (message.startswith("after about 90"))
    assert not short_warmup(TrainingOptions(warmup=1000, schedule="slanted"), step, progress)
