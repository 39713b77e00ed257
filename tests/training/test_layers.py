"""Layer-wise learning rates and gradual unfreezing."""

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.models.language_options import ClassifierOptions, LSTMLanguageOptions
from translucid.models.model_options import RecurrentOptions
from translucid.runs.training_options import TrainingOptions
from translucid.training.optimizer import Optimizer


def model_of():
    language = LSTMLanguageOptions(width=4, hidden=6, layers=2)
    return build_model(ClassifierOptions(language=language, labels=["a", "b"], hidden=3), 12, 12)


def optimizer_of(model, **options):
    return Optimizer(TrainingOptions(**options), model, list(model.parameters()), bfloat16=False)


@pytest.mark.parametrize("optimizer", ["adam", "nadam", "muon"])
def test_each_layer_moves_less_than_the_one_above_it(optimizer):
    """Adam's first step equals the learning rate of each weight."""
    model = model_of()
    before = [[p.detach().clone() for p in group] for group in model.layer_groups()]
    moving = optimizer_of(model, layer_decay=2.6, optimizer=optimizer)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    moving.step(0.1)
    largest_changes = [
        max((p - b).abs().max().item() for p, b in zip(group, old, strict=True) if p.ndim == 1 or optimizer != "muon")
        if any(p.ndim == 1 or optimizer != "muon" for p in group)
        else None
        for group, old in zip(model.layer_groups(), before, strict=True)
    ]
    for layer, change in enumerate(largest_changes):
        if change is not None and optimizer != "nadam":
            assert change == pytest.approx(0.1 * 2.6 ** (layer - 3), rel=1e-3)
    changes = [change for change in largest_changes if change is not None]
    assert changes == sorted(changes)


def test_gradual_unfreezing_starts_at_the_top():
    model = model_of()
    layers = optimizer_of(model, unfreeze=True).layers
    for epoch, moving in enumerate([1, 2, 3, 4, 4]):
        layers.begin(epoch)
        free = [all(p.requires_grad for p in group) for group in model.layer_groups()]
        assert free == [False] * (4 - moving) + [True] * moving


def test_nothing_is_frozen_by_default():
    model = model_of()
    layers = optimizer_of(model).layers
    layers.begin(0)
    assert all(p.requires_grad for p in model.parameters())


def test_a_model_without_named_layers_is_refused():
    with pytest.raises(UserError, match=r"training\.layer_decay and training\.unfreeze are for"):
        optimizer_of(build_model(RecurrentOptions(width=4), 12, 12), layer_decay=2.0)
