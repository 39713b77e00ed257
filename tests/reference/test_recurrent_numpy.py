"""Bahdanau's and Luong's decoders, word by word in float64 NumPy from the equations of their papers."""

import numpy as np
import pytest
import torch

from translucid.attention.points import recording_weights
from translucid.models.model_options import RecurrentOptions
from translucid.models.recurrent import RecurrentModel

D, V = 6, 11
SOURCE = torch.tensor([[4, 5, 6, 7, 8, 9, 10, 3], [8, 9, 3, 0, 0, 0, 0, 0]])
TARGETS = torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def weights_of(model):
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def lstm(w, layer, x, state):
    h, c = state
    read = w[f"weight_ih_l{layer}"] @ x + w[f"bias_ih_l{layer}"]
    i, f, g, o = np.split(read + w[f"weight_hh_l{layer}"] @ h + w[f"bias_hh_l{layer}"], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(w, layer, x, state):
    (h,) = state
    (xr, xz, xn), (hr, hz, hn) = (
        np.split(w[f"weight_{name}_l{layer}"] @ part + w[f"bias_{name}_l{layer}"], 3)
        for name, part in (("ih", x), ("hh", h))
    )
    reset, update = sigmoid(xr + hr), sigmoid(xz + hz)
    return ((1 - update) * np.tanh(xn + reset * hn) + update * h,)


def stack(f, w, x, states):
    """Return the states of all layers after x: each reads the h of the one below it, the first x itself."""
    after = []
    for layer, state in enumerate(states):
        after.append(f(w, layer, x, state))
        x = after[-1][0]
    return after


def model_of(**options):
    torch.manual_seed(3)
    model = RecurrentModel(V, V, RecurrentOptions(width=D, **options)).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


def expected(model, sentence):
    """Return the logits and the attention weights of one sentence, and how many weights the window cut off."""
    o, w = model.options, weights_of(model)
    cell = {name.removeprefix("decoder.recurrence.rnn."): x for name, x in w.items() if "decoder.recurrence" in name}
    f = lstm if o.cell == "lstm" else gru
    memory = model.encode(SOURCE)  # the encoder is tested against Keras
    y = memory.states[sentence, memory.mask[sentence]].detach().numpy()
    parts = [part[:, sentence].detach().numpy() for part in memory.first]  # h and, for an LSTM, c: [layers, D] each
    if o.first_state == "last":  # the last output of the forward direction, the first one of the backward direction
        np.testing.assert_allclose(parts[0][-1], [*y[-1, : D // 2], *y[0, D // 2 :]])
    if o.first_state == "mean":
        bridged = [w[f"encoder.bridges.{i}.weight"] @ y.mean(0) + w[f"encoder.bridges.{i}.bias"] for i in range(2)]
        np.testing.assert_allclose(parts, np.repeat([[np.tanh(bridged[0])], [bridged[1]]], o.layers, 1))
    states = [*zip(*parts, strict=True)]
    feed, logits, maps, cut = np.zeros(D), [], [], 0
    for token in TARGETS[sentence].tolist():
        word = w["source_embedding.tokens.weight"][token] * np.sqrt(D)
        if o.attention == "bahdanau":
            e = np.array(
                [
                    w["decoder.score.v"]
                    @ np.tanh(
                        w["decoder.score.query.weight"] @ states[-1][0]
                        + w["decoder.score.query.bias"]
                        + w["decoder.score.key.weight"] @ y_j
                    )
                    for y_j in y
                ]
            )
            alpha = softmax(e)
            context = alpha @ y
            states = stack(f, cell, np.concatenate([word, context]), states)
            combined = np.concatenate([states[-1][0], word, context])
            t = w["decoder.readout.weight"] @ combined + w["decoder.readout.bias"]
            feature = t.reshape(-1, 2).max(1)
        else:
            states = stack(f, cell, np.concatenate([word, feed]) if o.input_feeding else word, states)
            h = states[-1][0]
            if o.attention == "luong-dot":
                e = y @ h
            elif o.attention == "luong-general":
                e = np.array([h @ w["decoder.score.weight.weight"] @ y_j for y_j in y])
            else:
                e = np.array(
                    [
                        w["decoder.score.v"]
                        @ np.tanh(
                            w["decoder.score.query.weight"] @ h
                            + w["decoder.score.query.bias"]
                            + w["decoder.score.key.weight"] @ y_j
                        )
                        for y_j in y
                    ]
                )
            if o.window:
                hidden = np.tanh(w["decoder.window.hidden.weight"] @ h)
                center = len(y) * sigmoid(w["decoder.window.v.weight"][0] @ hidden)
                positions = np.arange(len(y))
                inside = np.abs(positions - center) <= o.window
                cut += (~inside).sum()
                alpha = np.zeros(len(y))
                alpha[inside] = softmax(e[inside])
                alpha = alpha * np.exp(-((positions - center) ** 2) / (2 * (o.window / 2) ** 2))
            else:
                alpha = softmax(e)
            bias = w["decoder.combine.bias"] if o.combine_bias else 0.0
            feature = feed = np.tanh(w["decoder.combine.weight"] @ np.concatenate([alpha @ y, h]) + bias)
        logits.append(w["source_embedding.tokens.weight"] @ feature + w["output.bias"])
        maps.append(alpha)
    return np.array(logits), np.array(maps), cut


@pytest.mark.parametrize(
    "options",
    [
        {"attention": "bahdanau", "cell": "gru"},
        {"attention": "bahdanau", "cell": "lstm"},
        {"attention": "bahdanau", "cell": "gru", "layers": 2},
        {"attention": "bahdanau", "cell": "lstm", "layers": 3},
        {"attention": "luong-dot"},
        {"attention": "luong-general", "cell": "gru"},
        {"attention": "luong-concat"},
        {"attention": "luong-general", "window": 2},
        {"attention": "luong-general", "input_feeding": True},
        {"attention": "luong-general", "layers": 2, "first_state": "mean", "combine_bias": True},
        {"attention": "luong-dot", "first_state": "last", "input_feeding": True, "layers": 2},
        {"attention": "luong-concat", "input_feeding": True, "window": 1, "cell": "gru"},
    ],
    ids=str,
)
def test_every_word_by_the_equations(options):
    model = model_of(**options)
    with recording_weights(model) as maps:
        logits = model.decode(model.encode(SOURCE), TARGETS)
    cut = 0
    for sentence, length in enumerate((8, 3)):
        expected_logits, weights, initial_weights = expected(model, sentence)
        cut += initial_weights
        np.testing.assert_allclose(logits[sentence].detach(), expected_logits, atol=1e-10)
        np.testing.assert_allclose(maps["decoder.0.cross"][sentence, 0, :, :length].detach(), weights, atol=1e-10)
        assert not maps["decoder.0.cross"][sentence, 0, :, length:].any()
    assert bool(cut) == bool(options.get("window")), "the window cuts nothing off: this tests nothing"


@pytest.mark.parametrize(
    "options",
    [
        {"attention": "none"},
        {"attention": "bahdanau", "cell": "gru", "layers": 2},
        {"attention": "luong-scaled-dot"},
        {"attention": "luong-concat"},
        {"attention": "luong-general", "window": 2, "input_feeding": True},
    ],
    ids=str,
)
def test_gradients_by_finite_differences(options):
    """A small step along a random direction changes the loss by the gradient's share in that direction."""
    model = model_of(**options)
    parameters = list(model.parameters())

    def loss():
        return model(SOURCE, TARGETS).log_softmax(-1).gather(-1, TARGETS[..., None]).sum()

    gradients = torch.autograd.grad(loss(), parameters)
    generator = torch.Generator().manual_seed(1)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        before, step = parameter.data.clone(), 1e-6
        with torch.no_grad():
            parameter.data = before + step * direction
            above = loss()
            parameter.data = before - step * direction
            below = loss()
            parameter.data = before
        estimate = (above - below) / (2 * step)
        torch.testing.assert_close(estimate, (gradient * direction).sum(), rtol=1e-5, atol=1e-6)
