"""Attention by products of rounded factors: the equation of the plain path, and taken only where it should be."""

import pytest
import torch

from translucid.attention import MultiHeadAttention, attend, causal_mask, multi_head
from translucid.attention.rounded import attend_rounded
from translucid.kernels import linear as products
from translucid.kernels.linear import rounded_products

B, H, T, S, D = 3, 2, 5, 7, 8


def drawn(dtype=torch.float64):
    generator = torch.Generator().manual_seed(4)
    shapes = [(B, T, D), (B, S, 2 * D)]
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def masks():
    nowhere = torch.rand(B, H, T, S, generator=torch.Generator().manual_seed(5)) < 0.6
    nowhere[0, 0, 0] = False  # a row that may look nowhere
    padding = torch.ones(B, 1, 1, S, dtype=torch.bool)
    padding[1, ..., 4:] = False
    return {"none": None, "all": torch.ones(B, 1, 1, S, dtype=torch.bool), "padding": padding, "rows": nowhere}


def plainly(query, key_value, mask):
    def split(x):
        return x.unflatten(-1, (H, -1)).transpose(1, 2)

    context, _ = attend(split(query), *map(split, key_value.chunk(2, -1)), mask)
    return context.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("mask", masks())
def test_values_and_gradients_are_those_of_the_plain_path(mask):
    inputs, mask = drawn(), masks()[mask]
    one, other = attend_rounded(*inputs, H, mask), plainly(*inputs, mask)
    torch.testing.assert_close(one, other)
    weights = torch.randn(one.shape, dtype=one.dtype)
    for ours, theirs in zip(
        torch.autograd.grad(one, inputs, weights), torch.autograd.grad(other, inputs, weights), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
        assert torch.isfinite(ours).all()


@pytest.mark.parametrize("mask", masks())
def test_gradients_against_finite_differences(mask):
    assert torch.autograd.gradcheck(lambda *inputs: attend_rounded(*inputs, H, masks()[mask]), drawn())


def test_in_bfloat16_it_stays_near():
    exact = plainly(*drawn(), masks()["padding"])
    near = attend_rounded(*(x.bfloat16() for x in drawn()), H, masks()["padding"])
    assert near.dtype == torch.bfloat16
    assert (near - exact).norm() < 0.01 * exact.norm()


@pytest.mark.parametrize("causal", [True, False])
def test_heads_within_rounded_products_are_nearly_those_outside(causal, monkeypatch):
    monkeypatch.setattr(products, "LARGE", 0)
    layer, x = MultiHeadAttention(16, 4), torch.randn(4, 9, 16, requires_grad=True)
    padding = masks()["padding"].new_ones(4, 1, 1, 9)
    padding[2, ..., 6:] = False
    inputs = [x, *layer.parameters()]

    def found():
        y, _ = layer(x, x, padding, causal=causal)
        return [y, *torch.autograd.grad(y.square().sum(), inputs)]

    def plainly():
        mask = padding & causal_mask(9) if causal else padding
        y, weights = layer(x, x, mask, weights=True)
        assert weights is not None
        return [y, *torch.autograd.grad(y.square().sum(), inputs)]

    exact = plainly()
    with rounded_products():
        rounded = found()
    for one, other in zip(rounded, exact, strict=True):
        assert one.dtype == torch.float32
        assert not torch.equal(one, other)
        # the gradient of the keys' bias is 0, but for rounding
        assert (one - other).norm() < 0.03 * other.norm() + 0.05


def test_it_is_taken_for_large_products_in_training_alone(monkeypatch):
    taken = []
    monkeypatch.setattr(multi_head, "attend_rounded", lambda q, *rest: taken.append(q.dtype) or q)
    monkeypatch.setattr(products, "LARGE", 4 * 9 * 16 * 16)
    monkeypatch.setattr(multi_head, "LONGEST", 9)
    layer, x = MultiHeadAttention(16, 4), torch.randn(4, 9, 16)
    layer(x, x)
    with rounded_products():
        with torch.no_grad():
            layer(x, x)
        layer(x, x, weights=True)
        layer(x[:3], x[:3])
        layer(torch.randn(4, 10, 16), torch.randn(4, 10, 16))
        with rounded_products(False):
            layer(x, x)
        assert not taken
        layer(x, x)
    assert taken == [torch.bfloat16]
