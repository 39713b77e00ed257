"""Our attention against Keras 3's layers, with the same weights."""

import keras
import numpy as np
import pytest
import torch

from translucid.attention import Dot, MultiHeadAttention, attend, causal_mask

QUERY, MEMORY = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]).bool()


def numpy(tensor):
    return tensor.detach().numpy()


@pytest.mark.parametrize("use_scale", [False, True])
def test_dot_product_attention(use_scale):
    """Keras does not divide by the root of the width: its scale is 1, or one that is learned."""
    layer = keras.layers.Attention(use_scale=use_scale)
    inputs = [numpy(QUERY), numpy(MEMORY)]
    layer.build([x.shape for x in inputs])
    if use_scale:
        layer.set_weights([np.array(0.3, "float32")])
    expected, weights = layer(inputs, mask=[None, numpy(MASK)], return_attention_scores=True)
    context, ours = attend(QUERY, MEMORY, mask=MASK[:, None], score=Dot(scaled=use_scale, first=0.3))
    np.testing.assert_allclose(numpy(context), numpy(expected), atol=1e-5)
    np.testing.assert_allclose(numpy(ours), numpy(weights), atol=1e-5)


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_multi_head_attention(kind):
    ours = MultiHeadAttention(12, 3)
    for parameter in ours.parameters():
        parameter.data.normal_()
    theirs = keras.layers.MultiHeadAttention(3, 4)
    memory = MEMORY if kind == "cross" else QUERY
    theirs.build(QUERY.shape, memory.shape)
    key, value = (part.detach() for part in ours.key_value.weight.chunk(2))
    key_bias, value_bias = ours.key_value.bias.chunk(2)

    def heads(weight, bias):  # Keras: [width, heads, d] and [heads, d]
        return [numpy(weight).T.reshape(12, 3, 4), numpy(bias).reshape(3, 4)]

    weights = heads(ours.query.weight, ours.query.bias) + heads(key, key_bias) + heads(value, value_bias)
    theirs.set_weights([*weights, numpy(ours.output.weight).T.reshape(3, 4, 12), numpy(ours.output.bias)])
    mask = None if kind != "cross" else MASK[:, None, None]
    expected, scores = theirs(
        numpy(QUERY),
        numpy(memory),
        attention_mask=numpy(MASK[:, None].expand(2, 4, 5)) if kind == "cross" else None,
        use_causal_mask=kind == "causal",
        return_attention_scores=True,
    )
    fused, nothing = ours(QUERY, memory, mask, causal=kind == "causal")
    exact, seen = ours(QUERY, memory, mask, causal=kind == "causal", weights=True)
    assert nothing is None
    np.testing.assert_allclose(numpy(fused), numpy(expected), atol=1e-5)
    np.testing.assert_allclose(numpy(exact), numpy(expected), atol=1e-5)
    np.testing.assert_allclose(numpy(seen), numpy(scores), atol=1e-5)
    if kind == "causal":
        assert torch.equal(seen[0, 0] > 0, causal_mask(4))
