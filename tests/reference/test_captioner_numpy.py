"""The decoder of Xu et al. 2015, word by word in float64 NumPy from the equations of the paper."""

import numpy as np
import pytest
import torch

from tests.reference.test_recurrent_numpy import lstm, sigmoid, softmax, weights_of
from translucid.attention.points import recording_weights
from translucid.captions.model import CaptioningLSTM, CaptioningTransformer
from translucid.captions.options import CaptionerOptions, CaptioningTransformerOptions, ImageEncoderOptions

D, V = 6, 11
IMAGE_ENCODER = ImageEncoderOptions(size=32, stride=16, channels=4)
GRID = torch.randn(2, 4, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
"""Image features of two images with four cells, as from an image encoder."""
RNN = "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"
TARGETS = torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])


def model_of(**options):
    torch.manual_seed(3)
    model = CaptioningLSTM(V, CaptionerOptions(width=D, image_encoder=IMAGE_ENCODER, **options)).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


def annotations(w, grid, positions):
    """Return the annotation vectors of one image."""
    normal = (grid - grid.mean(-1, keepdims=True)) / np.sqrt(grid.var(-1, keepdims=True) + 1e-5)
    normal = normal * w["source_embedding.norm.weight"] + w["source_embedding.norm.bias"]
    return normal @ w["source_embedding.project.weight"].T + w["source_embedding.project.bias"] + positions


def step(w, a, embedded, state, *, gate, hard, order):
    cells = {name: w[f"decoder.recurrence.rnn.{name}"] for name in RNN}
    if order == "read-first":
        state = lstm(cells, 0, embedded, state)
    h, c = state
    hidden = np.tanh(
        a @ w["decoder.score.key.weight"].T + w["decoder.score.query.weight"] @ h + w["decoder.score.query.bias"]
    )
    alpha = softmax(hidden @ w["decoder.score.v"])
    z = a[alpha.argmax()] if hard else alpha @ a
    if gate:
        z = z * sigmoid(w["decoder.gate.weight"] @ h + w["decoder.gate.bias"])
    if order == "look-first":
        h, c = lstm(cells, 0, np.concatenate([embedded, z]), state)
    deep = (
        embedded
        + w["decoder.hidden_projection.weight"] @ h
        + w["decoder.hidden_projection.bias"]
        + w["decoder.context_projection.weight"] @ z
    )
    return alpha, w["output.weight"] @ deep + w["output.bias"], (h, c)


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("attention", ["soft", "hard"])
@pytest.mark.parametrize("order", ["look-first", "read-first"])
def test_each_word_is_that_of_the_paper(order, attention, gate):
    model = model_of(attention=attention, gate=gate, order=order)
    w = weights_of(model)
    with recording_weights(model) as maps:
        logits = model.decode(model.encode(GRID), TARGETS).detach().numpy()
    for image in range(2):
        a = annotations(w, GRID[image].numpy(), model.source_embedding.positions.numpy())
        mean = a.mean(0)
        state = tuple(np.tanh(w[f"bridges.{i}.weight"] @ mean + w[f"bridges.{i}.bias"]) for i in range(2))
        for t, word in enumerate(TARGETS[image].tolist()):
            embedded = w["target_embedding.tokens.weight"][word] * np.sqrt(D)
            alpha, expected, state = step(w, a, embedded, state, gate=gate, hard=attention == "hard", order=order)
            np.testing.assert_allclose(maps["decoder.0.cross"][image, 0, t].detach().numpy(), alpha, atol=1e-12)
            np.testing.assert_allclose(logits[image, t], expected, atol=1e-11)


@pytest.mark.parametrize("kind", ["soft", "transformer"])
@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned"])
def test_without_positions_the_order_of_the_cells_does_not_matter(kind, positions):
    torch.manual_seed(4)
    if kind == "soft":
        model = model_of(positions=positions)
    else:
        options = CaptioningTransformerOptions(
            width=D, heads=2, feed_forward=8, encoder_layers=1, positions=positions, image_encoder=IMAGE_ENCODER
        )
        model = CaptioningTransformer(V, options).double().eval()
    order = torch.tensor([2, 0, 3, 1])
    with recording_weights(model) as straight:
        logits = model.decode(model.encode(GRID), TARGETS)
    with recording_weights(model) as turned:
        permuted = model.decode(model.encode(GRID[:, order]), TARGETS)
    same = torch.allclose(logits, permuted, atol=1e-9)
    assert same == (positions == "none")
    if same:
        torch.testing.assert_close(turned["decoder.0.cross"], straight["decoder.0.cross"][..., order])


def test_pixels_and_what_the_network_makes_of_them_are_one():
    model = model_of().float()
    pixels = torch.randint(256, (2, 32, 32, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    grid = model.source_embedding.compute_grids(pixels)
    assert grid.shape == (2, 4, 32)
    torch.testing.assert_close(model(pixels, TARGETS), model(grid, TARGETS))
