"""Positions, dropout, embeddings, residual connections, feed-forward."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from translucid.layers.dropout import Dropout
from translucid.layers.embedding import Embedding, token_embeddings
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions, sinusoidal_positions
from translucid.layers.residual import Residual


@pytest.mark.parametrize("width", [1, 6, 7, 64])
def test_sinusoids_are_the_papers(width):
    table = sinusoidal_positions(50, width)
    for p in (0, 1, 17, 49):
        for i in range(width):
            angle = p / 10000 ** ((i - i % 2) / width)
            assert table[p, i] == pytest.approx(math.cos(angle) if i % 2 else math.sin(angle), abs=1e-6)


def test_a_shift_is_the_same_linear_map_at_every_position():
    width, shift = 8, 5
    table = sinusoidal_positions(200, width).double().numpy()
    turn = np.zeros((width, width))
    for i in range(0, width, 2):
        angle = shift / 10000 ** (i / width)
        turn[i : i + 2, i : i + 2] = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    np.testing.assert_allclose(table[shift:], table[:-shift] @ turn.T, atol=1e-5)


def test_the_table_grows_and_starts_anywhere():
    positions = SinusoidalPositions(6)
    torch.testing.assert_close(positions(3, 1000), sinusoidal_positions(1003, 6)[1000:])
    torch.testing.assert_close(positions(2), sinusoidal_positions(2, 6))
    assert not list(positions.state_dict())


def test_learned_positions_end_with_a_clear_error():
    positions = LearnedPositions(4, 6)
    assert positions(2, 2).shape == (2, 6)
    with pytest.raises(ValueError, match="position 5 asked of a model that has learned 4"):
        positions(2, 3)
    assert NoPositions()(3) == 0


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_dropout_drops_its_share_and_keeps_the_mean(p):
    dropped = Dropout(p)(torch.ones(1000, 100))
    assert (dropped == 0).float().mean() == pytest.approx(p, abs=0.005)
    assert dropped.mean() == pytest.approx(1, abs=0.01)
    assert len(dropped.unique()) == 2


@pytest.mark.parametrize("p", [1e-6, 1e-4, 0.0015, 0.004, 0.01, 0.1, 0.999, 0.9999])
def test_a_dropout_of_any_size_is_within_two_percent(p):
    ones = torch.ones(1_000_000)
    share = sum((Dropout(p)(ones) == 0).double().mean().item() for _ in range(5)) / 5
    assert share == pytest.approx(p, rel=0.02, abs=5 * math.sqrt(p * (1 - p) / 5e6))
    assert Dropout(p)(ones).mean() == pytest.approx(1, abs=5 * math.sqrt(p / (1 - p) / 1e6) + 1e-6)


def test_dropout_follows_the_seed_and_the_mode():
    x, dropout = torch.ones(31), Dropout(0.5)
    torch.manual_seed(5)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)
    assert dropout.eval()(x) is x
    assert Dropout(0)(x) is x
    for wrong in (-0.1, 1):
        with pytest.raises(ValueError, match="dropout"):
            Dropout(wrong)


def test_the_gradient_passes_where_the_value_did():
    x = torch.ones(50, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_embeddings_are_scaled_and_positions_added():
    tokens = token_embeddings(10, 10, 16, shared=True)[0]
    embedding = Embedding(tokens, SinusoidalPositions(16), 0.0)
    ids = torch.tensor([[1, 2, 3]])
    expected = 4 * tokens.weight[ids] + sinusoidal_positions(5, 16)[2:]
    torch.testing.assert_close(embedding(ids, first=2), expected)
    assert (4 * token_embeddings(5000, 5000, 16, shared=True)[0].weight.detach()).var() == pytest.approx(1, abs=0.05)


def test_dropout_is_on_the_sum_of_embedding_and_position():
    embedding = Embedding(token_embeddings(10, 10, 64, shared=True)[0], SinusoidalPositions(64), 0.5)
    assert (embedding(torch.tensor([[1, 2, 3]])) == 0).any()


def test_residuals():
    x = torch.randn(2, 3, 4)
    post, pre = Residual(4, 0.0, "post"), Residual(4, 0.0, "pre")
    norm = nn.functional.layer_norm
    torch.testing.assert_close(post(x, torch.sin), norm(x + x.sin(), (4,)))
    torch.testing.assert_close(pre(x, torch.sin), x + norm(x, (4,)).sin())


def test_feed_forward():
    layer = FeedForward(2, 3)
    with torch.no_grad():
        layer.inner.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [-1, 0]]))
        layer.outer.weight.copy_(torch.tensor([[1.0, 10, 100], [0, 0, 1]]))
        layer.outer.bias.copy_(torch.tensor([0.0, 5]))
    torch.testing.assert_close(layer(torch.tensor([2.0, -3.0])), torch.tensor([2.0, 5.0]))
