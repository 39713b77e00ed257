"""Layer-wise learning rates and gradual unfreezing."""

from copy import deepcopy
from types import SimpleNamespace

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.language.options import ClassifierOptions, LSTMLanguageOptions
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions
from translucid.runs.configuration import resolve
from translucid.runs.training_options import TrainingOptions
from translucid.training.optimizer import Optimizer
from translucid.training.steps import training_steps


def model_of():
    language = LSTMLanguageOptions(width=4, hidden=6, layers=2)
    return build_model(ClassifierOptions(language=language, labels=["a", "b"], hidden=3), 12, 12)


def optimizer_of(model, **options):
    return Optimizer(TrainingOptions(**options), model, list(model.parameters()), bfloat16=False)


@pytest.mark.parametrize("optimizer", ["adam", "nadam", "muon"])
def test_each_layer_moves_less_than_the_one_above_it(optimizer):
    """Adam's first step equals the learning rate of each weight."""
    model = model_of()
    before = deepcopy(model).layer_groups()
    moving = optimizer_of(model, layer_decay=2.6, optimizer=optimizer)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    moving.step(0.1)
    largest_changes = []
    for layer, (group, old) in enumerate(zip(model.layer_groups(), before, strict=True)):
        differences = [parameter - initial for parameter, initial in zip(group, old, strict=True)]
        if optimizer == "muon":  # it moves most matrices by another rule, and vectors as Adam does
            differences = [difference for difference in differences if difference.ndim == 1]
        if not differences:
            continue
        change = max(difference.abs().max().item() for difference in differences)
        if optimizer != "nadam":
            assert change == pytest.approx(0.1 * 2.6 ** (layer - 3), rel=1e-3)
        largest_changes.append(change)
    assert largest_changes == sorted(largest_changes)


def is_free(group):
    return all(parameter.requires_grad for parameter in group)


def test_gradual_unfreezing_starts_at_the_top():
    model = model_of()
    (unfreezing,) = training_steps(resolve(assignments=["training.unfreeze=true"]))
    unfreezing.begin(SimpleNamespace(model=model, parameters=list(model.parameters())))
    for epoch, moving in enumerate([1, 2, 3, 4, 4]):
        unfreezing.begin_epoch(epoch)
        free = list(map(is_free, model.layer_groups()))
        assert free == [False] * (4 - moving) + [True] * moving


def test_a_training_has_no_extras_by_default():
    assert not training_steps(resolve())


def test_a_model_without_named_layers_is_refused():
    model = build_model(RecurrentOptions(width=4), 12, 12)
    (unfreezing,) = training_steps(resolve(assignments=["training.unfreeze=true"]))
    message = r"training\.layer_decay and training\.unfreeze are for"
    with pytest.raises(UserError, match=message):
        unfreezing.begin(SimpleNamespace(model=model, parameters=list(model.parameters())))
    with pytest.raises(UserError, match=message):
        optimizer_of(model, layer_decay=2.0)
