"""Positions, embeddings, residual connections, feed-forward."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from translucid.kernels.dropout import Dropout
from translucid.layers.embedding import Embedding, token_embeddings
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions, sinusoidal_positions
from translucid.layers.recurrent import Recurrence
from translucid.layers.residual import Residual


@pytest.mark.parametrize("width", [1, 6, 7, 64])
def test_sinusoids_are_the_papers(width):
    table = sinusoidal_positions(50, width)
    for p in (0, 1, 17, 49):
        for i in range(width):
            angle = p / 10000 ** ((i - i % 2) / width)
            assert table[p, i] == pytest.approx(math.cos(angle) if i % 2 else math.sin(angle), abs=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal-halves", "sinusoidal-tensor2tensor"])
def test_sinusoids_of_others_have_sines_first(kind):
    table, width = sinusoidal_positions(40, 12, first=2, kind=kind), 12
    for p in (0, 1, 39):
        for i in range(6):
            exponent = 2 * i / width if kind == "sinusoidal-halves" else i / (width / 2 - 1)
            angle = (p + 2) / 10000**exponent
            assert table[p, i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[p, 6 + i] == pytest.approx(math.cos(angle), abs=1e-6)


def test_positions_may_begin_later():
    positions = SinusoidalPositions(6, "sinusoidal-tensor2tensor", offset=2)
    torch.testing.assert_close(
        positions(300, 5), sinusoidal_positions(300, 6, first=7, kind="sinusoidal-tensor2tensor")
    )


def test_a_zero_start_token_has_only_its_position():
    tokens = token_embeddings(10, 10, 16, shared=True)[0]
    embedding = Embedding(tokens, SinusoidalPositions(16), 0.0, scaled=False, zero_token=2)
    embedded = embedding(torch.tensor([[2, 5]]))
    torch.testing.assert_close(embedded[0, 0], sinusoidal_positions(1, 16)[0])
    torch.testing.assert_close(embedded[0, 1], tokens.weight[5] + sinusoidal_positions(2, 16)[1])


@pytest.mark.parametrize(("name", "function"), [("relu", nn.ReLU()), ("swish", nn.SiLU()), ("gelu", nn.GELU())])
def test_feed_forward_has_its_nonlinearity(name, function):
    layer, x = FeedForward(8, 12, name), torch.randn(2, 3, 8)
    torch.testing.assert_close(layer(x), layer.outer(function(layer.inner(x))))


def test_a_shift_is_the_same_linear_map_at_every_position():
    width, shift = 8, 5
    table = sinusoidal_positions(200, width).double().numpy()
    rotation = np.zeros((width, width))
    for i in range(0, width, 2):
        angle = shift / 10000 ** (i / width)
        rotation[i : i + 2, i : i + 2] = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    np.testing.assert_allclose(table[shift:], table[:-shift] @ rotation.T, atol=1e-5)


def test_the_table_grows_and_starts_anywhere():
    positions = SinusoidalPositions(6)
    torch.testing.assert_close(positions(3, 1000), sinusoidal_positions(1003, 6)[1000:])
    torch.testing.assert_close(positions(2), sinusoidal_positions(2, 6))
    assert not list(positions.state_dict())


def test_learned_positions_end_with_a_clear_error():
    positions = LearnedPositions(4, 6)
    assert torch.equal(positions(2), positions.table[:2]) and torch.equal(positions(2, 2), positions.table[2:])
    with pytest.raises(ValueError, match="position 5 asked of a model that has learned 4"):
        positions(2, 3)
    assert NoPositions()(3) == 0


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


def test_forget_gates_of_an_lstm_start_open():
    """The bias of its forget gates is 1; all other biases, also those of a GRU, keep PyTorch's small values."""
    for cell, forget_gate in (("lstm", 1), ("gru", None)):
        for name, bias in Recurrence(cell, 3, 16, 2, bidirectional=True).rnn.named_parameters():
            if name.startswith("bias"):
                gates = bias.detach().chunk(4 if cell == "lstm" else 3)
                ones = [i for i, gate in enumerate(gates) if bool((gate == 1).all())]
                assert ones == ([forget_gate] if forget_gate and "ih" in name else [])
                assert all(gate.abs().max() < 0.4 for i, gate in enumerate(gates) if i not in ones)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_sentences_of_any_lengths_in_any_order_are_read_as_each_alone(cell):
    recurrence, x, lengths = Recurrence(cell, 3, 8, 2, bidirectional=True), torch.randn(4, 6, 3), [2, 6, 1, 4]
    outputs, last = recurrence.read(x, torch.tensor(lengths))
    for i, length in enumerate(lengths):
        single, single_last = recurrence.read(x[i : i + 1, :length], torch.tensor([length]))
        torch.testing.assert_close(outputs[i, :length], single[0])
        assert not outputs[i, length:].any()
        for state, single_state in zip(last, single_last, strict=True):
            torch.testing.assert_close(state[:, i], single_state[:, 0])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_layers_drop_between_them_while_training(cell):
    x, lengths = torch.randn(4, 6, 3), torch.tensor([6, 5, 4, 1])
    state_parts = {"lstm": 2, "gru": 1}[cell]
    for layers, drops in ((1, False), (2, True)):
        recurrence = Recurrence(cell, 3, 8, layers, dropout=0.5)
        zeros = tuple(torch.zeros(layers, 4, 8) for _ in range(state_parts))
        calls = [
            lambda r=recurrence: r.read(x, lengths)[0],
            lambda r=recurrence, z=zeros: r(x, z)[0],
            lambda r=recurrence, z=zeros: r.step(x[:, 0], z)[0],
        ]
        for call in calls:
            assert torch.equal(recurrence.train() and call(), call()) is not drops
            assert torch.equal(recurrence.eval() and call(), call())


def test_residuals():
    x = torch.randn(2, 3, 4)
    post, pre = Residual(4, 0.0, "post"), Residual(4, 0.0, "pre")
    norm = nn.functional.layer_norm
    torch.testing.assert_close(post(x, torch.sin), norm(x + x.sin(), (4,)))
    torch.testing.assert_close(pre(x, torch.sin), x + norm(x, (4,)).sin())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_residuals_drop_only_the_output_of_the_sublayer(norm):
    x = torch.linspace(5, 6, 24).view(2, 3, 4)
    residual, drop, normal = Residual(4, 0.5, norm), Dropout(0.5), nn.LayerNorm(4)
    torch.manual_seed(2)
    output = residual(x, torch.cos)
    torch.manual_seed(2)
    expected = x + drop(normal(x).cos()) if norm == "pre" else normal(x + drop(x.cos()))
    torch.testing.assert_close(output, expected)
    if norm == "pre":
        assert {0.0, 2.0} == set(((output - x) / normal(x).cos()).round(decimals=3).flatten().tolist())


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_dropout_between_layers_in_a_single_step(cell):
    """Dropout changes neither the input of the first layer, nor the output of the last, nor the cells."""
    stacked, lower, upper = (Recurrence(cell, 4, 4, layers, dropout=0.5) for layers in (2, 1, 1))
    for layer, recurrence in enumerate((lower, upper)):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(recurrence.rnn, f"{name}_l0").data = getattr(stacked.rnn, f"{name}_l{layer}").data
    x = torch.randn(3, 4)
    state_parts = {"lstm": 2, "gru": 1}[cell]
    cells = tuple(torch.randn(2, 3, 4) for _ in range(state_parts))
    torch.manual_seed(2)
    output, next_cells = stacked.step(x, cells)
    lower_output, lower_cells = lower.step(x, tuple(part[:1] for part in cells))
    torch.manual_seed(2)
    dropped = nn.functional.dropout(lower_output, 0.5)
    assert (dropped == 0).any() and (dropped != 0).any()
    expected, upper_cells = upper.step(dropped, tuple(part[1:] for part in cells))
    torch.testing.assert_close(output, expected)
    for part, *parts in zip(next_cells, lower_cells, upper_cells, strict=True):
        torch.testing.assert_close(part, torch.cat(parts))


def test_feed_forward():
    layer = FeedForward(2, 3)
    with torch.no_grad():
        layer.inner.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [-1, 0]]))
        layer.outer.weight.copy_(torch.tensor([[1.0, 10, 100], [0, 0, 1]]))
        layer.outer.bias.copy_(torch.tensor([0.0, 5]))
    torch.testing.assert_close(layer(torch.tensor([2.0, -3.0])), torch.tensor([2.0, 5.0]))
