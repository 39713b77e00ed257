"""Low-rank differences against the equation and against a model with the merged matrices."""

import copy

import numpy as np
import pytest
import torch

from translucid.layers.low_rank import LowRank, adapt, differences, merged
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions, TransformerOptions

SMALL = TransformerOptions(width=8, heads=2, feed_forward=12, encoder_layers=1, decoder_layers=2, dropout=0.0)
APART = {"share_embeddings": False, "tie_output": False}


@pytest.fixture
def model():
    torch.manual_seed(1)
    return build_model(SMALL, 20, 20).eval()


def randomize_differences(model):
    """Give the differences random values and return the model."""
    for up, _ in differences(model).values():
        up.normal_()
    return model


def test_outputs_equal_the_equation():
    weight = torch.randn(5, 3)
    low = LowRank(weight, 2, 0.7)
    low.up.data.normal_()
    w, a, b = (tensor.detach().double().numpy() for tensor in (weight, low.down, low.up))
    assert a.shape == (2, 3) and b.shape == (5, 2)
    np.testing.assert_allclose(low(weight).detach().numpy(), w + 0.7 * b @ a, rtol=1e-5, atol=1e-6)


def test_new_differences_change_nothing(model):
    source, target = torch.randint(4, 20, (2, 5)), torch.randint(4, 20, (2, 4))
    before, weights = model(source, target), {name: weight.clone() for name, weight in merged(model).items()}
    assert adapt(model, 2, 2.0, ["attention", "feed-forward"]) == 5 + 2 * 8
    assert torch.equal(model(source, target), before)
    assert merged(model).keys() == weights.keys()
    assert all(torch.equal(merged(model)[name], weights[name]) for name in weights)


@pytest.mark.parametrize(("parts", "count"), [(["attention"], 5 * 3), (["feed-forward"], 3 * 2)])
def test_only_requested_parts_get_differences(model, parts, count):
    assert adapt(model, 2, 2.0, parts) == count == len(differences(model))
    trainable = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert len(trainable) == 2 * count
    assert all("attention" in name for name in trainable) is (parts == ["attention"])
    assert all(name.endswith((".up", ".down")) for name in trainable)


def test_an_ssru_belongs_to_the_attention():
    model = build_model(SMALL.model_copy(update={"decoder": "ssru"}), 20, 20)
    assert adapt(model, 2, 2.0, ["attention"]) == 3 + 2 * (1 + 3)
    assert "decoder.1.ssru.projection.weight" in differences(model)


def test_frozen_parts_get_no_differences(model):
    model.encoder.requires_grad_(False)
    adapt(model, 2, 2.0, ["attention", "feed-forward"])
    assert all(name.startswith("decoder.") for name in differences(model))
    assert adapt(build_model(RecurrentOptions(width=8), 20, 20), 2, 2.0, ["attention", "feed-forward"]) == 0


@pytest.mark.parametrize(
    ("options", "count"),
    [({}, 1), ({"tie_output": False}, 2), ({"share_embeddings": False}, 2), (APART, 3)],
)
def test_a_matrix_that_embeds_and_is_the_output_gets_one(options, count):
    model = build_model(SMALL.model_copy(update=options), 20, 20)
    assert adapt(model, 2, 2.0, ["embeddings"]) == count == len(differences(model))
    randomize_differences(model)
    tied = options.get("tie_output", True)
    assert torch.equal(model.output.weight, model.target_embedding.tokens.weight) is tied


@pytest.mark.parametrize("options", [{}, APART])
@pytest.mark.parametrize("parts", [["attention", "feed-forward"], ["attention", "embeddings"]])
def test_merged_weights_give_the_same_outputs(options, parts):
    model = build_model(SMALL.model_copy(update=options), 20, 20).eval()
    plain, source, target = copy.deepcopy(model), torch.randint(4, 20, (2, 5)), torch.randint(4, 20, (2, 4))
    adapt(model, 2, 1.5, parts)
    randomize_differences(model)
    assert not torch.allclose(model(source, target), plain(source, target))
    base = {name: weight.clone() for name, weight in merged(plain).items()}
    for name, weight in merged(model).items():
        plain.get_parameter(name).data.copy_(weight)
        if name in differences(model):
            up, down = differences(model)[name]
            torch.testing.assert_close(weight, base[name] + 1.5 * up @ down)
    assert torch.equal(model(source, target), plain(source, target))


def test_only_the_differences_have_gradients(model):
    adapt(model, 2, 1.5, ["attention", "feed-forward"])
    randomize_differences(model)
    model(torch.randint(4, 20, (2, 5)), torch.randint(4, 20, (2, 4))).sum().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) is name.endswith((".up", ".down")), name
