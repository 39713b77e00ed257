"""The attention equation, in plain and fused form, against float64 NumPy and values computed by hand."""

import math

import numpy as np
import pytest
import torch

from translucid.attention import (
    Concat,
    Dot,
    MultiHeadAttention,
    attend,
    attend_fused,
    causal_mask,
    masked_softmax,
    padding_mask,
    target_mask,
)


def numpy_attention(query, key, value, mask):
    """Return softmax(Q K^T / sqrt(d)) V in float64, and its weights; a fully masked row is zero."""
    query, key, value = (x.double().numpy() for x in (query, key, value))
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    mask = np.broadcast_to(mask.numpy(), scores.shape)
    powers = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    sums = powers.sum(-1, keepdims=True)
    weights = np.divide(powers, sums, out=np.zeros_like(powers), where=sums > 0)
    return weights @ value, weights


def test_initial_weights_follow_glorot():
    """Uniform up to sqrt(6 / (inputs + outputs)); for queries, keys and values up to that divided by sqrt 2."""
    heads = MultiHeadAttention(64, 4)
    limit = math.sqrt(6 / 128)
    for matrix in (heads.query.weight, *heads.key_value.weight.chunk(2)):
        assert 0.98 * limit / math.sqrt(2) < matrix.abs().max() <= limit / math.sqrt(2)
    assert 0.98 * limit < heads.output.weight.abs().max() <= limit
    score = Concat(64, 16)
    for matrix in (score.query.weight, score.key.weight):
        assert 0.98 * math.sqrt(6 / 80) < matrix.abs().max() <= math.sqrt(6 / 80)
    for linear in (heads.query, heads.key_value, heads.output, score.query):
        assert not linear.bias.any()


def random_tensors(*shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def test_weights_and_context_by_hand():
    query = torch.tensor([[0.0, 0.0], [2 * math.sqrt(2) * math.log(3), 0.0]])
    key = torch.tensor([[0.5, 9.0], [0.0, -9.0]])
    value = torch.tensor([[4.0], [8.0]])
    context, weights = attend(query, key, value)
    torch.testing.assert_close(weights, torch.tensor([[0.5, 0.5], [0.75, 0.25]]))
    torch.testing.assert_close(context, torch.tensor([[6.0], [5.0]]))


SHAPES = [
    ((3, 5), (4, 5), (4, 5)),  # no batch, odd width
    ((2, 3, 7), (2, 4, 7), (2, 4, 2)),  # values of another width
    ((2, 3, 6, 8), (2, 3, 5, 8), (2, 3, 5, 8)),
    ((2, 2, 3, 1, 4), (2, 2, 3, 6, 4), (2, 2, 3, 6, 3)),  # an extra batch dimension, one query
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_both_paths_against_numpy(shapes):
    query, key, value = random_tensors(*shapes)
    mask = torch.rand(*query.shape[:-1], key.shape[-2]) < 0.6
    mask[..., 0, :] = False  # a fully masked row
    expected, expected_weights = numpy_attention(query, key, value, mask)
    context, weights = attend(query, key, value, mask)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)
    np.testing.assert_allclose(context, expected, atol=1e-5)
    np.testing.assert_allclose(attend_fused(query, key, value, mask), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_near(dtype):
    query, key, value = random_tensors((2, 4, 6, 8), (2, 4, 5, 8), (2, 4, 5, 8))
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[0, ..., 3:], mask[1] = False, False
    expected, _ = numpy_attention(query, key, value, mask)
    half = [x.to(dtype) for x in (query, key, value)]
    for context in (attend(*half, mask)[0], attend_fused(*half, mask)):
        assert context.dtype == dtype
        np.testing.assert_allclose(context.float(), expected, atol=0.05)


def test_masked_weights_are_exactly_zero_and_rows_sum_to_one():
    weights = masked_softmax(*random_tensors((4, 6)), torch.tensor([1, 0, 1, 1, 0, 0], dtype=torch.bool))
    assert torch.equal(weights[:, [1, 4, 5]], torch.zeros(4, 3))
    torch.testing.assert_close(weights.sum(1), torch.ones(4))


@pytest.mark.parametrize("path", [lambda *x: attend(*x)[0], attend_fused])
def test_a_row_that_may_look_nowhere_is_zero_and_passes_no_gradient(path):
    query, key, value = (x.requires_grad_() for x in random_tensors((1, 2, 4), (1, 3, 4), (1, 3, 4)))
    mask = torch.tensor([[[False, False, False], [True, False, True]]])
    context = path(query, key, value, mask)
    assert torch.equal(context[0, 0], torch.zeros(4))
    context.sum().backward()
    assert torch.equal(query.grad[0, 0], torch.zeros(4))
    assert torch.equal(value.grad[0, 1], torch.zeros(4))
    assert all(torch.isfinite(x.grad).all() for x in (query, key, value))


def test_both_paths_have_the_same_gradients_and_those_of_finite_differences():
    inputs = [x.requires_grad_() for x in random_tensors((2, 3, 4), (2, 5, 4), (2, 5, 3), dtype=torch.float64)]
    mask = torch.rand(2, 3, 5) < 0.7
    assert torch.autograd.gradcheck(lambda *x: attend(*x, mask)[0], inputs)
    expected = torch.autograd.grad(attend(*inputs, mask)[0].sin().sum(), inputs)
    actual = torch.autograd.grad(attend_fused(*inputs, mask).sin().sum(), inputs)
    for expected_gradient, gradient in zip(expected, actual, strict=True):
        torch.testing.assert_close(expected_gradient, gradient)


def test_values_default_to_keys():
    query, key = random_tensors((3, 4), (5, 4))
    torch.testing.assert_close(attend(query, key)[0], attend(query, key, key)[0])


def test_a_learned_scale_replaces_the_fixed_one():
    query, key = random_tensors((3, 4), (5, 4))
    score = Dot(scaled=True, initial_scale=0.5)  # 1 / sqrt(4)
    torch.testing.assert_close(attend(query, key, score=score)[1], attend(query, key)[1])
    attend(query, key, score=score)[0].sum().backward()
    assert score.scale.grad != 0
    torch.testing.assert_close(Dot(scaled=True)(query, key), Dot()(query, key))
    assert not list(Dot().parameters())


def test_causal_is_the_causal_mask():
    query, key, value = random_tensors((2, 2, 6, 4), (2, 2, 6, 4), (2, 2, 6, 4))
    expected, _ = attend(query, key, value, causal_mask(6))
    torch.testing.assert_close(attend_fused(query, key, value, causal=True), expected)
    mask = padding_mask(torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]), 0)
    expected, _ = attend(query, key, value, mask & causal_mask(6))
    torch.testing.assert_close(attend_fused(query, key, value, mask, causal=True), expected)


def test_masks():
    ids = torch.tensor([[5, 6, 0], [7, 0, 1]])
    assert padding_mask(ids, 0).tolist() == [[[[True, True, False]]], [[[True, False, True]]]]
    assert padding_mask(ids, {0, 1}).tolist() == [[[[True, True, False]]], [[[True, False, False]]]]
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    mask = target_mask(ids, 0)
    assert mask.shape == (2, 1, 3, 3)
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
