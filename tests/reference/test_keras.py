"""Our attention against Keras 3's layers, with the same weights."""

import numpy as np
import pytest
import torch

from translucid.attention import Dot, MultiHeadAttention, attend, causal_mask
from translucid.attention.points import recording
from translucid.models.attention_only import AttentionOnly
from translucid.models.model_options import AttentionOnlyOptions

DRAWN = torch.Generator().manual_seed(1)
QUERY, MEMORY = torch.randn(2, 4, 12, generator=DRAWN), torch.randn(2, 5, 12, generator=DRAWN)
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]).bool()


def numpy(tensor):
    return tensor.detach().numpy()


@pytest.mark.parametrize("use_scale", [False, True])
def test_dot_product_attention(use_scale):
    """Keras does not divide by the root of the width: its scale is 1, or one that is learned."""
    import keras  # it takes two seconds

    layer = keras.layers.Attention(use_scale=use_scale)
    inputs = [numpy(QUERY), numpy(MEMORY)]
    layer.build([x.shape for x in inputs])
    if use_scale:
        layer.set_weights([np.array(0.3, "float32")])
    expected, weights = layer(inputs, mask=[None, numpy(MASK)], return_attention_scores=True)
    context, ours = attend(QUERY, MEMORY, mask=MASK[:, None], score=Dot(scaled=use_scale, initial_scale=0.3))
    np.testing.assert_allclose(numpy(context), numpy(expected), atol=1e-5)
    np.testing.assert_allclose(numpy(ours), numpy(weights), atol=1e-5)


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_multi_head_attention(kind):
    import keras  # it takes two seconds

    ours = MultiHeadAttention(12, 3)
    for parameter in ours.parameters():
        parameter.data.normal_()
    reference = keras.layers.MultiHeadAttention(3, 4)
    memory = MEMORY if kind == "cross" else QUERY
    reference.build(QUERY.shape, memory.shape)
    key, value = (part.detach() for part in ours.key_value.weight.chunk(2))
    key_bias, value_bias = ours.key_value.bias.chunk(2)

    def heads(weight, bias):  # Keras: [width, heads, d] and [heads, d]
        return [numpy(weight).T.reshape(12, 3, 4), numpy(bias).reshape(3, 4)]

    weights = heads(ours.query.weight, ours.query.bias) + heads(key, key_bias) + heads(value, value_bias)
    reference.set_weights([*weights, numpy(ours.output.weight).T.reshape(3, 4, 12), numpy(ours.output.bias)])
    mask = None if kind != "cross" else MASK[:, None, None]
    expected, scores = reference(
        numpy(QUERY),
        numpy(memory),
        attention_mask=numpy(MASK[:, None].expand(2, 4, 5)) if kind == "cross" else None,
        use_causal_mask=kind == "causal",
        return_attention_scores=True,
    )
    fused = ours(QUERY, memory, mask, causal=kind == "causal")
    with recording(ours, ["attention.weights"]) as record:
        exact = ours(QUERY, memory, mask, causal=kind == "causal")
    attention_weights = record["attention.weights"]
    np.testing.assert_allclose(numpy(fused), numpy(expected), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(numpy(exact), numpy(expected), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(numpy(attention_weights), numpy(scores), atol=1e-5)
    if kind == "causal":
        assert torch.equal(attention_weights[0, 0] > 0, causal_mask(4))


def test_attention_only_is_a_stack_of_keras_attention_layers():
    import keras  # it takes two seconds

    model = AttentionOnly(11, 11, AttentionOnlyOptions(width=12, encoder_layers=2, decoder_layers=2)).eval()
    scales = iter(np.linspace(0.1, 0.6, 6, dtype="float32"))
    for look in (*model.encoder, *model.decoder_self, *model.decoder_cross):
        look.score.scale.data.fill_(float(next(scales)))
    source, targets = torch.tensor([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0]]), torch.tensor([[2, 5, 6], [2, 8, 9]])
    mask = numpy(source != 0)

    def layer(look, inputs, mask=None, causal=False):
        reference = keras.layers.Attention(use_scale=True)
        reference.build([x.shape for x in inputs])
        reference.set_weights([numpy(look.score.scale)])
        return numpy(reference(inputs, mask=[None, mask], use_causal_mask=causal))

    z = numpy(model.source_embedding(source))
    for look in model.encoder:
        z = layer(look, [z, z], mask)
    x = numpy(model.target_embedding(targets))
    for look_back, look_across in zip(model.decoder_self, model.decoder_cross, strict=True):
        x = layer(look_back, [x, x], causal=True)
        x = layer(look_across, [x, z], mask)
    logits = x @ numpy(model.output.weight).T + numpy(model.output.bias)
    np.testing.assert_allclose(numpy(model(source, targets)), logits, atol=1e-5)
