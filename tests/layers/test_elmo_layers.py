"""Building blocks of ELMo: character encoders, projected LSTMs and the mix of layers."""

import math

import numpy as np
import pytest
import torch

from translucid.kernels.lstm import reference_lstm
from translucid.language.lstm import Mix, ProjectedLSTM
from translucid.layers.characters import BEGIN, END, LONGEST, SPECIALS, Characters, Highway, spelled

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
PIECES = [*SPECIAL, "▁a", "né", "abc", "▁abcdef"]


def test_a_mix_is_that_of_the_equation():
    h = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]])
    mix = Mix(3)
    torch.testing.assert_close(mix(h.unbind()), h.mean(0))
    with torch.no_grad():
        mix.s.copy_(torch.tensor([0.0, math.log(2), math.log(5)]))
        mix.gamma.fill_(3.0)
    # softmax(s) = (1, 2, 5) / 8
    expected = [3 * (1 + 2 * 3 + 5 * 0.5) / 8, 3 * (2 - 2 + 5 * 4) / 8]
    torch.testing.assert_close(mix(h.unbind()), torch.tensor(expected))


def test_a_mix_of_layers_made_alike_first():
    h = torch.tensor([[1.0, 3.0], [10.0, -10.0]])
    torch.testing.assert_close(Mix(2, normalize=True)(h.unbind()), torch.zeros(2), atol=1e-3, rtol=0)
    assert Mix(2)(h.unbind()).tolist() == [5.5, -3.5]


def test_a_mix_learns_the_right_layer():
    layers = torch.randn(3, 40, 5, generator=torch.Generator().manual_seed(1))
    mix = Mix(3)
    optimizer = torch.optim.Adam(mix.parameters(), 0.1)
    for _ in range(200):
        optimizer.zero_grad()
        (mix(layers.unbind()) - 2 * layers[1]).square().mean().backward()
        optimizer.step()
    assert mix.s.softmax(0)[1] > 0.95
    assert mix.gamma.item() == pytest.approx(2, abs=0.1)


def test_words_are_spelled_in_bytes_between_two_marks():
    table = spelled(PIECES)
    assert table.shape == (8, 9)
    assert table[:4, :4].tolist() == [[BEGIN, SPECIALS + i, END, 0] for i in range(4)]
    assert table[4, :5].tolist() == [BEGIN, 1 + ord(" "), 1 + ord("a"), END, 0]
    assert table[5, :6].tolist() == [BEGIN, 1 + ord("n"), 1 + 0xC3, 1 + 0xA9, END, 0]
    assert len({tuple(row) for row in table.tolist()}) == len(PIECES)
    long = spelled([*SPECIAL, "x" * 80])
    assert long.shape == (5, LONGEST)
    assert long[4, -2:].tolist() == [1 + ord("x"), END]
    assert spelled(SPECIAL, 7).shape == (4, 7)


def by_hand(layer, row):
    """Compute the vector of one word with loops."""
    weights = {name: weight.detach().double().numpy() for name, weight in layer.named_parameters()}
    c = weights["characters.weight"][row]  # [longest, C]
    features = []
    for number in range(len(layer.filters)):
        w, b = weights[f"filters.{number}.weight"], weights[f"filters.{number}.bias"]
        for f in range(len(w)):
            activations = []
            for t in range(len(c) - number):  # the filter at each position
                activations.append(b[f] + sum(w[f, :, i] @ c[t + i] for i in range(number + 1)))
            features.append(max(0.0, *activations))
    y = np.array(features)
    for number in range(2):
        change = weights[f"highways.{number}.change.weight"] @ y + weights[f"highways.{number}.change.bias"]
        gate = weights[f"highways.{number}.gate.weight"] @ y + weights[f"highways.{number}.gate.bias"]
        g = 1 / (1 + np.exp(-gate))
        y = g * np.maximum(change, 0) + (1 - g) * y
    return weights["projection.weight"] @ y + weights["projection.bias"]


@torch.no_grad()
def test_characters_are_those_of_the_equation():
    layer = Characters(PIECES, [3, 4, 2], 6, character_width=5)
    ids = torch.tensor([[7, 5, 4], [5, 2, 6]])
    x = layer(ids)
    assert x.shape == (2, 3, 6)
    for position in np.ndindex(2, 3):
        expected = by_hand(layer, layer.table[ids[position]].tolist())
        assert x[position].tolist() == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_word_is_the_same_in_any_company_and_has_gradients():
    layer = Characters(PIECES, [3, 4], 6)
    torch.testing.assert_close(layer(torch.tensor([4])), layer(torch.tensor([7, 4, 4, 5]))[1:2], rtol=0, atol=1e-6)
    layer(torch.tensor([[4, 5], [5, 5]])).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in layer.parameters())
    assert not layer.characters.weight.grad[0].any(), "padding is no character"


def test_a_new_highway_mostly_passes_its_input():
    y = torch.rand(50, 8)
    relative_change = (Highway(8)(y) - y).abs().mean() / y.abs().mean()
    assert 0 < relative_change < 0.5


@torch.no_grad()
def test_a_projected_lstm_is_that_of_the_equation():
    lstm = ProjectedLSTM(4, 7, 3, 0.5).double().eval()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    cells = [torch.randn(2, 7, dtype=torch.float64) for _ in range(6)]
    outputs, next_cells = lstm(x, cells)
    h = x
    for number in range(3):
        layer = lstm.layers[number]
        states, last = reference_lstm(h, (cells[2 * number], cells[2 * number + 1]), layer.w, layer.u, layer.b)
        out = states @ lstm.projections[number].weight.t()
        h = out if number == 0 else h + out
        torch.testing.assert_close(outputs[number], h)
        torch.testing.assert_close(next_cells[2 * number : 2 * number + 2], [*last])


def test_a_projected_lstm_drops_while_training_only():
    lstm, x = ProjectedLSTM(4, 7, 2, 0.5), torch.randn(2, 5, 4)
    cells = [torch.zeros(2, 7)] * 4
    assert not torch.equal(lstm(x, cells)[0][0], lstm(x, cells)[0][0])
    assert torch.equal(lstm.eval()(x, cells)[0][0], lstm(x, cells)[0][0])
