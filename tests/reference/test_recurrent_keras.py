"""Our recurrent layers, scores and whole decoders against Keras 3's LSTM, GRU, Bidirectional and attention layers."""

import numpy as np
import pytest
import torch

from translucid.attention import Concat, attend
from translucid.layers.recurrent import Recurrence
from translucid.models.model_options import RecurrentOptions
from translucid.models.recurrent import RecurrentModel

D = 6
X = torch.randn(3, 5, D, generator=torch.Generator().manual_seed(1))
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(5) < LENGTHS[:, None]


def numpy(tensor):
    return tensor.detach().numpy()


def keras_weights(rnn, layer=0, suffix=""):
    """Return PyTorch's weights of one layer and direction in Keras's order and shapes."""
    kernel, recurrent, bias, recurrent_bias = (
        numpy(getattr(rnn, f"{name}_l{layer}{suffix}")) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    if isinstance(rnn, torch.nn.LSTM):
        return [kernel.T, recurrent.T, bias + recurrent_bias]

    def gates(x):  # PyTorch: reset, update, new; Keras: update, reset, new
        reset, update, new = np.split(x, 3)
        return np.concatenate([update, reset, new])

    return [gates(kernel).T, gates(recurrent).T, np.stack([gates(bias), gates(recurrent_bias)])]


def keras_layer(cell, width):
    import keras  # it takes two seconds

    return (keras.layers.LSTM if cell == "lstm" else keras.layers.GRU)(width, return_sequences=True, return_state=True)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_one_direction_over_padded_sentences(cell):
    ours = Recurrence(cell, D, D, 1)
    reference = keras_layer(cell, D)
    reference.build(X.shape)
    reference.set_weights(keras_weights(ours.rnn))
    expected, *last = reference(numpy(X), mask=numpy(MASK))
    outputs, cells = ours.read(X, LENGTHS)
    np.testing.assert_allclose(numpy(outputs)[numpy(MASK)], numpy(expected)[numpy(MASK)], atol=1e-5)
    for part, state in zip(cells, last, strict=True):
        np.testing.assert_allclose(numpy(part[0]), numpy(state), atol=1e-5)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_both_directions_over_padded_sentences(cell):
    import keras  # it takes two seconds

    ours = Recurrence(cell, D, D, 1, bidirectional=True)
    reference = keras.layers.Bidirectional(keras_layer(cell, D // 2))
    reference.build(X.shape)
    reference.set_weights(keras_weights(ours.rnn) + keras_weights(ours.rnn, suffix="_reverse"))
    expected, *last = reference(numpy(X), mask=numpy(MASK))
    outputs, cells = ours.read(X, LENGTHS)
    np.testing.assert_allclose(numpy(outputs)[numpy(MASK)], numpy(expected)[numpy(MASK)], atol=1e-5)
    count = len(cells)
    for i, part in enumerate(cells):  # Keras: all of the forward direction, then all of the backward one
        concatenated = np.concatenate([numpy(last[i]), numpy(last[count + i])], -1)
        np.testing.assert_allclose(numpy(part[0]), concatenated, atol=1e-5)


def test_layers_go_on_from_given_states_in_one_call_and_step_by_step():
    for cell, parts in (("lstm", 2), ("gru", 1)):
        ours = Recurrence(cell, D, D, 2)
        cells = tuple(torch.randn(2, 3, D) for _ in range(parts))
        stack = [keras_layer(cell, D) for _ in range(2)]
        expected = numpy(X)
        for i, layer in enumerate(stack):
            layer.build(X.shape)
            layer.set_weights(keras_weights(ours.rnn, i))
            expected, *_ = layer(expected, initial_state=[numpy(part[i]) for part in cells])
        outputs, after = ours(X, cells)
        np.testing.assert_allclose(numpy(outputs), numpy(expected), atol=1e-5)
        steps = []
        for x in X.unbind(1):
            output, cells = ours.step(x, cells)
            steps.append(output)
        torch.testing.assert_close(torch.stack(steps, 1), outputs)
        for part, expected_part in zip(cells, after, strict=True):
            torch.testing.assert_close(part, expected_part)


def test_additive_attention():
    """Keras has no projections before the tanh, so it is given projected queries and keys."""
    import keras  # it takes two seconds

    score = Concat(D)
    query, memory = torch.randn(3, 4, D), X
    layer = keras.layers.AdditiveAttention()
    projected, key = score.query(query), score.key(memory)
    layer.build([projected.shape, memory.shape, key.shape])
    layer.set_weights([numpy(score.v)])
    expected, weights = layer(
        [numpy(projected), numpy(memory), numpy(key)], mask=[None, numpy(MASK)], return_attention_scores=True
    )
    context, ours = attend(query, score.keys(memory), memory, MASK[:, None], score)
    np.testing.assert_allclose(numpy(context), numpy(expected), atol=1e-5)
    np.testing.assert_allclose(numpy(ours), numpy(weights), atol=1e-5)


@pytest.mark.parametrize("attention", ["none", "luong-dot", "luong-scaled-dot"])
def test_a_whole_translator_of_keras_layers(attention):
    """Embeddings, bidirectional encoder, bridge, decoder, attention, prediction."""
    import keras  # it takes two seconds

    model = RecurrentModel(11, 11, RecurrentOptions(width=D, attention=attention)).eval()
    if attention == "luong-scaled-dot":
        model.decoder.score.scale.data.fill_(0.7)
    source, targets = torch.tensor([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0]]), torch.tensor([[2, 5, 6], [2, 8, 9]])
    mask = numpy(source != 0)

    def embedded(ids):
        return numpy(model.source_embedding.tokens(ids)) * np.sqrt(D)

    encoder = keras.layers.Bidirectional(keras_layer("lstm", D // 2))
    encoder.build((2, 5, D))
    rnn = model.encoder.recurrence.rnn
    encoder.set_weights(keras_weights(rnn) + keras_weights(rnn, suffix="_reverse"))
    states, *last = encoder(embedded(source), mask=mask)
    hidden, cell = (np.concatenate([numpy(last[i]), numpy(last[i + 2])], -1) for i in range(2))
    bridges = [(numpy(bridge.weight), numpy(bridge.bias)) for bridge in model.encoder.bridges]
    first = [np.tanh(hidden @ bridges[0][0].T + bridges[0][1]), cell @ bridges[1][0].T + bridges[1][1]]
    decoder = keras_layer("lstm", D)
    decoder.build((2, 3, D))
    decoder.set_weights(keras_weights(model.decoder.recurrence.rnn))
    features = numpy(decoder(embedded(targets), initial_state=first)[0])
    if attention != "none":
        look = keras.layers.Attention(use_scale=attention == "luong-scaled-dot")
        look.build([(2, 3, D), (2, 5, D)])
        if attention == "luong-scaled-dot":
            look.set_weights([np.array(0.7, "float32")])
        context = numpy(look([features, numpy(states)], mask=[None, mask]))
        features = np.tanh(np.concatenate([context, features], -1) @ numpy(model.decoder.combine.weight).T)
    logits = features @ numpy(model.output.weight).T + numpy(model.output.bias)
    np.testing.assert_allclose(numpy(model(source, targets)), logits, atol=1e-5)
