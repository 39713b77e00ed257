"""Training with quantised weights: what is computed, validated and saved."""

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.layers import quantised
from translucid.layers.quantised import matrices
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.training.objective import batch_loss
from translucid.training.validation import TextValidator

OPTION = "training.quantised_weights=true"


def on_the_grid(model):
    """Whether each row of each matrix has at most 255 values, integers times a step."""
    return all(torch.allclose(quantised.quantised(weight), weight, atol=1e-7) for weight in matrices(model))


def test_losses_and_validations_use_rounded_weights_and_the_others_are_saved(tmp_path, train, monkeypatch):
    used = []

    def noted(name, function):
        def calling(model, *args, **more):
            used.append((name, on_the_grid(model)))
            return function(model, *args, **more)

        return calling

    monkeypatch.setattr("translucid.training.weights.batch_loss", noted("update", batch_loss))
    measure = TextValidator.measure
    monkeypatch.setattr(
        TextValidator, "measure", lambda self, model, *a: noted("validation", lambda m: measure(self, m, *a))(model)
    )
    train(tmp_path / "quantised", OPTION, "training.max_steps=8")
    assert {*used} == {("update", True), ("validation", True)}
    folder = RunFolder(tmp_path / "quantised")
    saved = folder.load_model(folder.configuration(), folder.tokenizer())
    assert not on_the_grid(saved)
    used.clear()
    train(tmp_path / "plain", "training.max_steps=8")
    assert {*used} == {("update", False), ("validation", False)}


def test_a_resumed_training_is_the_uninterrupted_one(tmp_path, train):
    settings = [OPTION, "training.freeze=[encoder]", "training.averaging=0", "training.cooldown=0"]
    train(tmp_path / "whole", *settings, "training.max_steps=14")
    train(tmp_path / "parts", *settings, "training.max_steps=7")
    train(tmp_path / "parts", *settings, "training.max_steps=14", resume=True)
    state = [RunFolder(tmp_path / name).load_state()[0] for name in ("whole", "parts")]
    assert state[0].keys() == state[1].keys()
    assert all(torch.equal(state[0][name], state[1][name]) for name in state[0] if not name.startswith("process"))


@pytest.mark.parametrize("other", ["training.sharded=true", "training.adapter_rank=2"])
def test_options_that_hold_parts_of_matrices_are_refused(other):
    more = ["training.begin_from=a"] if "adapter" in other else []
    message = f"quantised_weights rounds whole matrices, and {other.partition('=')[0]} has parts of them"
    with pytest.raises(UserError, match=message):
        resolve(assignments=[OPTION, other, *more])
