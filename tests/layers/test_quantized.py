"""Matrices rounded to 8 bits equal those of CTranslate2, and gradients pass through the rounding unchanged."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from bitext.pair import Pair
from translucid.data.batching import Batch
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.engines.ctranslate2.conventions import layer_names
from translucid.engines.ctranslate2.convert import export_ctranslate2
from translucid.interop.ctranslate2 import Variables, joined_arrays, read_model_file
from translucid.layers.quantized import matrices, quantized, quantized_weights
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions
from translucid.training.objective import batch_loss

PAIRS = [Pair("I like soccer and the sea", "me gusta el fútbol y el mar")] * 9
OPTIONS = TransformerOptions(width=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=2, dropout=0.0)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=45), seed=1)


@pytest.fixture
def model(tokenizer):
    torch.manual_seed(1)
    model = build_model(OPTIONS, tokenizer.source_size, tokenizer.target_size)
    with torch.no_grad():
        model.encoder[0].feed_forward.inner.weight[3] = 0
    return model


def batch(tokenizer):
    source = torch.tensor([[*tokenizer.encode_source([PAIRS[0].source])[0], 3]])
    target = torch.tensor([[*tokenizer.encode_target([PAIRS[0].target])[0], 3]])
    start = torch.tensor([[2]])
    return Batch(source, torch.cat([start, target[:, :-1]], 1), target)


def oracle(weight):
    """Compute the equation in float64; the random weights of the tests have no ties in float32."""
    weight = weight.detach().double().numpy()
    largest = np.abs(weight).max(1, keepdims=True)
    scale = 127 / np.where(largest == 0, 127, largest)
    return np.rint(weight * scale) / scale


def test_rounding_is_that_of_the_equation():
    weight = torch.randn(7, 30)
    weight[2] = 0
    assert quantized(weight).numpy() == pytest.approx(oracle(weight), abs=1e-6)
    assert len(quantized(weight)[0].unique()) <= 255 and not quantized(weight)[2].any()
    # By hand: the largest value has 127 steps, so a step is 2.
    assert quantized(torch.tensor([[254.0, 5.1, -4.9, 0.9]])).tolist() == [[254.0, 6.0, -4.0, 0.0]]
    assert torch.allclose(quantized(quantized(weight)), quantized(weight), rtol=1e-6)
    assert quantized(torch.full((1, 3), 1e-40)).isfinite().all()


def test_the_weights_in_use_are_those_of_the_int8_model_of_ctranslate2(model, tokenizer, tmp_path):
    """Every matrix is rounded, and nothing else is."""
    export_ctranslate2(model.eval(), tokenizer, tmp_path / "int8", "int8")
    variables = Variables(read_model_file(tmp_path / "int8" / "model.bin").variables, tmp_path)
    expected = joined_arrays(variables, layer_names({"encoder": 1, "decoder": 2}, final_norm=False), OPTIONS.width)
    expected["source_embedding.tokens.weight"] = variables.array("encoder/embeddings_0/weight", 2)
    expected["target_embedding.tokens.weight"] = variables.array("decoder/embeddings/weight", 2)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with quantized_weights(model):
        for name, array in expected.items():
            assert np.array_equal(model.state_dict()[name].numpy(), array), name
    after = model.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    changed = {name for name in expected if not np.array_equal(expected[name], before[name].numpy())}
    assert changed == {name for name in before if name.endswith("weight") and before[name].dim() == 2}


def test_an_int8_export_has_no_waste(model, tokenizer, tmp_path):
    """The shared embedding is saved once, positions in half precision, the vocabulary without breaks and escapes."""
    export_ctranslate2(model.eval(), tokenizer, tmp_path / "int8", "int8")
    folder = tmp_path / "int8"
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert {*sizes} == {"model.bin", "config.json", "shared_vocabulary.json", "tokenizer.model"}
    rows = sum(len(weight) for weight in matrices(model))
    weights = sum(weight.numel() for weight in matrices(model))
    other_weights = sum(parameter.numel() for parameter in model.parameters()) - weights
    positions = 1024 * OPTIONS.width
    names = 10_000  # the names of the variables
    assert sizes["model.bin"] < weights + 4 * rows + 4 * other_weights + 2 * positions + names
    vocabulary = (folder / "shared_vocabulary.json").read_text(encoding="utf-8")
    assert "\\u2581" not in vocabulary and "\n" not in vocabulary and "▁m" in vocabulary


def test_the_gradient_is_that_of_the_rounded_weights(model, tokenizer):
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for weight in matrices(rounded):
            weight.copy_(quantized(weight))
    expected = batch_loss(rounded, batch(tokenizer)).smoothed
    expected.backward()
    with quantized_weights(model):
        loss = batch_loss(model, batch(tokenizer)).smoothed
        loss.backward()
    assert loss.item() == expected.item() != batch_loss(model, batch(tokenizer)).smoothed.item()
    for weight, reference in zip(model.parameters(), rounded.parameters(), strict=True):
        assert torch.equal(weight.grad, reference.grad)


def test_weights_are_restored_after_an_error(model):
    before = [weight.clone() for weight in matrices(model)]
    with pytest.raises(ZeroDivisionError), quantized_weights(model):
        raise ZeroDivisionError
    assert all(map(torch.equal, matrices(model), before))


def test_a_matrix_that_modules_share_is_named_once():
    embedding, output, lstm = nn.Embedding(5, 4), nn.Linear(4, 5), nn.LSTM(4, 4)
    output.weight = embedding.weight
    assert [id(weight) for weight in matrices(nn.ModuleList([embedding, output, lstm]))] == [id(embedding.weight)]
