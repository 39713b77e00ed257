"""The learning rate by pencil."""

import pytest

from translucid.runs.training_options import TrainingOptions
from translucid.training.schedule import learning_rate


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
