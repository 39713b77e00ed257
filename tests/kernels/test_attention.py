"""Attention by a kernel: the equation, in every dtype and with every mask; and which kernel is taken where."""

import pytest
import torch

from translucid.attention import MultiHeadAttention, attend, attend_fused, causal_mask
from translucid.attention.points import recording
from translucid.kernels import attention, linear, reference_mode
from translucid.kernels.attention import _Products, fast_attention, share_mask
from translucid.kernels.rounding import rounded_products

B, H, T, S, D = 3, 2, 5, 7, 8


def drawn(dtype=torch.float64, keys=S):
    """Query, key and value as `MultiHeadAttention` has them: views, the last two of one tensor."""
    generator = torch.Generator().manual_seed(4)
    shapes = [(B, T, D), (B, keys, 2 * D)]
    query, both = (torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)
    query, both = query.requires_grad_(), both.requires_grad_()
    key, value = both.unflatten(-1, (2, H, -1)).unbind(2)
    return [query, both], [query.unflatten(-1, (H, -1)).transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)]


def masks(keys=S):
    nowhere = torch.rand(B, H, T, keys, generator=torch.Generator().manual_seed(5)) < 0.6
    nowhere[0, 0, 0] = False  # a row that may look nowhere
    padding = torch.ones(B, 1, 1, keys, dtype=torch.bool)
    padding[1, ..., 4:] = False
    return {"none": None, "all": torch.ones(B, 1, 1, keys, dtype=torch.bool), "padding": padding, "rows": nowhere}


def with_gradients(path, dtype, *rest, keys=S, **options):
    inputs, parts = drawn(dtype, keys)
    context = path(*parts, *rest, **options)
    weights = torch.randn(context.shape, generator=torch.Generator().manual_seed(6)).to(dtype)
    return [context, *torch.autograd.grad(context, inputs, weights)]


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("longest", [0, 128])
def test_values_and_gradients_are_those_of_plain(mask, causal, dtype, longest, monkeypatch):
    monkeypatch.setattr(attention, "LONGEST", up_to(longest))
    keys = T if causal else S
    mask = masks(keys)[mask]
    with reference_mode("attention"):
        exact = with_gradients(attend_fused, torch.float64, mask, keys=keys, causal=causal)
    found = with_gradients(attend_fused, dtype, mask, keys=keys, causal=causal)
    for one, other in zip(found, exact, strict=True):
        assert one.dtype == dtype
        assert torch.isfinite(one).all()
        if dtype == torch.bfloat16:
            assert (one - other).norm() < 0.01 * other.norm()
        else:
            torch.testing.assert_close(one, other.to(dtype))


def up_to(longest):
    """The longest memory of which the products are taken, in both dtypes."""
    return {torch.bfloat16: longest, torch.float32: longest}


def products(query, key, value, mask):
    """The kernel for rounded products, of any dtype."""
    return _Products.apply(query, key, value, None if mask is None else share_mask(mask))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("mask", masks())
def test_products_are_the_equation(mask, dtype):
    """Of dtypes in which a mistake could not hide behind rounding."""
    found = with_gradients(products, dtype, masks()[mask])
    exact = with_gradients(lambda *parts: attend(*parts)[0], dtype, masks()[mask])
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("mask", masks())
def test_gradients_against_finite_differences(mask):
    parts = [part.detach().requires_grad_() for part in drawn()[1]]
    assert torch.autograd.gradcheck(lambda *parts: products(*parts, masks()[mask]), parts)


def test_within_plain_there_is_no_kernel():
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        _, parts = drawn(dtype)
        with reference_mode("attention"):
            assert fast_attention(*parts) is None
            assert torch.equal(attend_fused(*parts), attend(*parts)[0])
        assert fast_attention(*parts) is not None


def test_products_are_taken_of_short_memories_in_training_alone(monkeypatch):
    taken = []
    monkeypatch.setattr(_Products, "apply", lambda query, *rest: taken.append(query.dtype) or query)
    monkeypatch.setattr(attention, "LONGEST", {torch.bfloat16: 7, torch.float32: 6})
    short, long = drawn(torch.bfloat16)[1], drawn(torch.bfloat16, keys=8)[1]
    fast_attention(*long)
    fast_attention(*drawn(torch.float32)[1])  # 7 keys
    fast_attention(*drawn(torch.float64)[1])
    fast_attention(*(part[0, 0] for part in drawn(torch.float32, keys=6)[1]))  # a single matrix
    fast_attention(short[0], *(part[:1] for part in short[1:]))  # one memory for all
    fast_attention(short[0], short[1], short[2][:1])
    fast_attention(short[0], short[1][:1], short[2])
    with torch.no_grad():
        fast_attention(*short)
    with torch.autocast("cpu", torch.bfloat16):
        fast_attention(*short)
    assert not taken
    fast_attention(*short)
    fast_attention(*drawn(torch.float32, keys=6)[1])
    assert taken == [torch.bfloat16, torch.float32]


def test_rounded_products_of_long_memories_go_to_the_fused_kernel_in_float32(monkeypatch):
    taken = []
    fused = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(attention, "LONGEST", {})
    monkeypatch.setattr(
        attention.F, "scaled_dot_product_attention", lambda q, *x, **y: taken.append(q.dtype) or fused(q, *x, **y)
    )
    for dtype in (torch.bfloat16, torch.float32):
        parts = drawn(dtype)[1]
        assert fast_attention(*parts).dtype == dtype
        with rounded_products():
            assert fast_attention(*parts).dtype == dtype
    assert taken == [torch.bfloat16, torch.float32, torch.float32, torch.float32]


@pytest.mark.parametrize("longest", [0, 128])
@pytest.mark.parametrize("causal", [True, False])
def test_heads_within_rounded_products_are_nearly_the_plain_ones(causal, longest, monkeypatch):
    monkeypatch.setattr(linear, "LARGE", 0)
    monkeypatch.setattr(attention, "LONGEST", up_to(longest))
    layer, x = MultiHeadAttention(16, 4), torch.randn(4, 9, 16, requires_grad=True)
    padding = torch.ones(4, 1, 1, 9, dtype=torch.bool)
    padding[2, ..., 6:] = False
    inputs = [x, *layer.parameters()]

    def found():
        y = layer(x, x, padding, causal=causal)
        return [y, *torch.autograd.grad(y.square().sum(), inputs)]

    with rounded_products():
        rounded = found()
        with reference_mode():
            exact = found()
    for one, other in zip(rounded, exact, strict=True):
        assert one.dtype == torch.float32
        assert not torch.equal(one, other)
        # the gradient of the keys' bias is 0, but for rounding
        assert (one - other).norm() < 0.03 * other.norm() + 0.05


@pytest.mark.parametrize("positions", [(9, 3), (3, 9)])
@pytest.mark.parametrize("closed", [(), ("attention",)])
def test_one_projection_may_be_rounded_and_the_other_not(positions, closed, monkeypatch):
    """Few positions look at many, or many at few, and one of the two products is large."""
    looking, seen = positions
    monkeypatch.setattr(linear, "LARGE", 4 * 16 * 16 * 8)
    layer, x, memory = MultiHeadAttention(16, 4), torch.randn(4, looking, 16), torch.randn(4, seen, 16)
    exact = layer(x, memory)
    with rounded_products():
        dtypes = {layer.query(x).dtype, layer.key_value(memory).dtype}
        with reference_mode(*closed) if closed else torch.enable_grad():
            found = layer(x, memory)
    assert dtypes == {torch.bfloat16, torch.float32}
    assert found.dtype == torch.float32
    assert (found - exact).norm() < 0.02 * exact.norm()


def test_weights_are_shown_in_the_dtype_of_the_model(monkeypatch):
    monkeypatch.setattr(linear, "LARGE", 0)
    layer, x = MultiHeadAttention(16, 4), torch.randn(4, 9, 16)
    with rounded_products(), recording(layer, ["attention.weights"]) as record:
        y = layer(x, x, causal=True)
    weights = record["attention.weights"]
    assert y.dtype == weights.dtype == torch.float32
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 4, 9))
    assert not (weights > 0)[..., ~causal_mask(9)].any()
    half = layer.bfloat16()
    with recording(half, ["attention.weights"]) as record:
        half(x.bfloat16(), x.bfloat16())
    assert record["attention.weights"].dtype == torch.bfloat16
