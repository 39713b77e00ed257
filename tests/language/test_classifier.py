"""The text classifier against its equations in NumPy, in batches, with padding and on prefixes."""

import numpy as np
import pytest
import torch

from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.language.classifier import pooled
from translucid.language.options import BiLSTMLanguageOptions, ClassifierOptions, LSTMLanguageOptions
from translucid.models.build import build_model

LANGUAGE = LSTMLanguageOptions(width=6, hidden=8, layers=2)
BOTH_WAYS = BiLSTMLanguageOptions(width=6, hidden=8, layers=2)


def build_classifier(language=LANGUAGE, **changes):
    options = ClassifierOptions(language=language, labels=["bad", "good", "so-so"], hidden=5, **changes)
    return build_model(options, 20, 20).eval()


def pad_rows(*rows):
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[SPECIAL.pad] * (longest - len(row))] for row in rows])


def standardize(x, eps):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


def scaled(x, norm):
    return x * norm.weight.numpy() + norm.bias.numpy()


@torch.no_grad()
def test_the_model_equals_its_equations_in_numpy():
    model = build_classifier().double()
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.1)
    ids = pad_rows([2, 7, 9, 4, 3])
    reading, _ = model.language.read_on(ids, model.language.begin(1, ids.device))
    h = reading.layers[-1].double().numpy()[0]
    first, second = model.first, model.second
    features = np.concatenate([standardize(part, first[0].eps) for part in (h[-1], h.max(0), h.mean(0))])
    z = scaled(features, first[0]) @ first[2].weight.numpy().T + first[2].bias.numpy()
    logits = (
        scaled(standardize(np.maximum(z, 0), second[0].eps), second[0]) @ second[2].weight.numpy().T
        + second[2].bias.numpy()
    )
    np.testing.assert_allclose(model(ids).numpy()[0], logits, atol=1e-6)


@torch.no_grad()
def test_from_both_ends_it_is_given_the_mix_of_elmo():
    model = build_classifier(BOTH_WAYS)
    model.mix.s.copy_(torch.tensor([0.3, -1.0, 0.8]))
    model.mix.gamma.fill_(1.7)
    ids = pad_rows([2, 7, 9, 4, 3])
    layers = [h[0].numpy() for h in model.language.read_both_directions(model.language.embedding(ids), ids > 0)]
    layers = [(h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5) for h in layers]
    weights = np.exp(np.float32([0.3, -1.0, 0.8]))
    weights /= weights.sum()
    mixed = np.float32(1.7) * sum(weight * h for weight, h in zip(weights, layers, strict=True))
    features = torch.from_numpy(np.concatenate([mixed[-1], mixed.max(0), mixed.mean(0)])[None])
    torch.testing.assert_close(model(ids), model.second(model.first(features).relu()), atol=1e-5, rtol=1e-4)
    with pytest.raises(UserError, match="from both ends"):
        model.prefix_probabilities(ids)


@torch.no_grad()
@pytest.mark.parametrize("language", [LANGUAGE, BOTH_WAYS], ids=["one direction", "both"])
def test_neither_padding_nor_other_texts_matter(language):
    model = build_classifier(language)
    rows = [[2, 7, 9, 4, 12, 13, 3], [2, 5, 3], [2, 8, 8, 8, 3]]
    batched_logits = model(pad_rows(*rows))
    for row, logits in zip(rows, batched_logits, strict=True):
        torch.testing.assert_close(model(pad_rows(row))[0], logits, atol=1e-5, rtol=1e-5)


def test_pooling_ignores_padding():
    h = torch.randn(2, 4, 3)
    mask = torch.tensor([[True, True, False, False], [True] * 4])
    result = pooled(h, mask)
    states = h[0, :2]
    torch.testing.assert_close(result[0], torch.cat([states[-1], states.amax(0), states.mean(0)]))
    h[0, 2:] = 99
    torch.testing.assert_close(pooled(h, mask), result)


@torch.no_grad()
def test_prefix_probabilities_are_those_of_each_prefix():
    model = build_classifier()
    ids = pad_rows([2, 7, 9, 4, 3])
    probabilities = model.prefix_probabilities(ids)
    for count in range(1, 6):
        torch.testing.assert_close(
            probabilities[0, count - 1], model(ids[:, :count])[0].softmax(-1), atol=1e-5, rtol=1e-4
        )


@pytest.mark.parametrize("language", [LANGUAGE, BOTH_WAYS], ids=["one direction", "both"])
@pytest.mark.parametrize("tied", [True, False])
def test_every_weight_is_in_one_layer(tied, language):
    options = ClassifierOptions(language=language.model_copy(update={"tie_output": tied}), labels=["a", "b"])
    model = build_model(options, 20, 20)
    groups = model.layer_groups()
    assert len(groups) == 4
    assert sorted(id(p) for group in groups for p in group) == sorted(map(id, model.parameters()))
    assert groups[0][0] is model.language.embedding.tokens.weight
    assert model.second[2].weight in set(groups[-1])
