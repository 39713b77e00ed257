"""Training with quantized weights: updates, validation and saved weights."""

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.layers import quantized
from translucid.layers.quantized import matrices
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.training.objective import batch_loss
from translucid.training.validation import TextValidator

OPTION = "training.quantized_weights=true"


def is_quantized(model):
    """Return whether each row of each matrix has at most 255 values, integers times a step."""
    return all(torch.allclose(quantized.quantized(weight), weight, atol=1e-7) for weight in matrices(model))


def test_losses_and_validations_use_rounded_weights_and_the_others_are_saved(tmp_path, train, monkeypatch):
    calls = []

    def recording(name, function):
        def recorded(model, *args, **options):
            calls.append((name, is_quantized(model)))
            return function(model, *args, **options)

        return recorded

    monkeypatch.setattr("translucid.training.weights.batch_loss", recording("update", batch_loss))
    measure = TextValidator.measure
    monkeypatch.setattr(
        TextValidator, "measure", lambda self, model, *a: recording("validation", lambda m: measure(self, m, *a))(model)
    )
    train(tmp_path / "quantized", OPTION, "training.max_steps=8")
    assert {*calls} == {("update", True), ("validation", True)}
    folder = RunFolder(tmp_path / "quantized")
    saved = folder.load_model(folder.configuration(), folder.tokenizer())
    assert not is_quantized(saved)
    calls.clear()
    train(tmp_path / "plain", "training.max_steps=8")
    assert {*calls} == {("update", False), ("validation", False)}


def test_a_resumed_training_is_the_uninterrupted_one(tmp_path, train):
    settings = [OPTION, "training.freeze=[encoder]", "training.averaging=0", "training.cooldown=0"]
    train(tmp_path / "whole", *settings, "training.max_steps=14")
    train(tmp_path / "parts", *settings, "training.max_steps=7")
    train(tmp_path / "parts", *settings, "training.max_steps=14", resume=True)
    state = [RunFolder(tmp_path / name).load_state()[0] for name in ("whole", "parts")]
    assert state[0].keys() == state[1].keys()
    assert all(torch.equal(state[0][name], state[1][name]) for name in state[0] if not name.startswith("process"))


@pytest.mark.parametrize("conflicting", ["training.sharded=true", "training.adapter_rank=2"])
def test_options_that_hold_parts_of_matrices_are_refused(conflicting):
    begin_from = ["training.begin_from=a"] if "adapter" in conflicting else []
    message = f"quantized_weights rounds whole matrices, and {conflicting.partition('=')[0]} has parts of them"
    with pytest.raises(UserError, match=message):
        resolve(assignments=[OPTION, conflicting, *begin_from])
