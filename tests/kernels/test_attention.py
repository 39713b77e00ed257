"""Attention kernels against the equation, for every dtype and mask, and the choice of the kernel."""

import pytest
import torch

from translucid.attention import MultiHeadAttention, attend, attend_fused, causal_mask
from translucid.attention.points import recording
from translucid.kernels import attention, linear, reference_mode
from translucid.kernels.attention import _Products, fast_attention, share_mask
from translucid.kernels.rounding import rounded_products

B, H, T, S, D = 3, 2, 5, 7, 8


def random_inputs(dtype=torch.float64, keys=S):
    """Return random inputs and their query, key and value, as views like those in `MultiHeadAttention`."""
    generator = torch.Generator().manual_seed(4)
    shapes = [(B, T, D), (B, keys, 2 * D)]
    query, key_value = (torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)
    query, key_value = query.requires_grad_(), key_value.requires_grad_()
    key, value = key_value.unflatten(-1, (2, H, -1)).unbind(2)
    return [query, key_value], [
        query.unflatten(-1, (H, -1)).transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
    ]


def masks(keys=S):
    sparse = torch.rand(B, H, T, keys, generator=torch.Generator().manual_seed(5)) < 0.6
    sparse[0, 0, 0] = False  # a row whose keys are all masked
    padding = torch.ones(B, 1, 1, keys, dtype=torch.bool)
    padding[1, ..., 4:] = False
    return {"none": None, "all": torch.ones(B, 1, 1, keys, dtype=torch.bool), "padding": padding, "rows": sparse}


def with_gradients(function, dtype, *rest, keys=S, **options):
    inputs, parts = random_inputs(dtype, keys)
    context = function(*parts, *rest, **options)
    weights = torch.randn(context.shape, generator=torch.Generator().manual_seed(6)).to(dtype)
    return [context, *torch.autograd.grad(context, inputs, weights)]


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("longest", [0, 128])
def test_values_and_gradients_are_those_of_reference_mode(mask, causal, dtype, longest, monkeypatch):
    monkeypatch.setattr(attention, "LONGEST", up_to(longest))
    keys = T if causal else S
    mask = masks(keys)[mask]
    with reference_mode("attention"):
        references = with_gradients(attend_fused, torch.float64, mask, keys=keys, causal=causal)
    results = with_gradients(attend_fused, dtype, mask, keys=keys, causal=causal)
    for actual, reference in zip(results, references, strict=True):
        assert actual.dtype == dtype
        assert torch.isfinite(actual).all()
        if dtype == torch.bfloat16:
            assert (actual - reference).norm() < 0.01 * reference.norm()
        else:
            torch.testing.assert_close(actual, reference.to(dtype))


def up_to(longest):
    """Return the limit on the length of the memory for both dtypes."""
    return {torch.bfloat16: longest, torch.float32: longest}


def products(query, key, value, mask):
    """Run the kernel for rounded products in any dtype."""
    return _Products.apply(query, key, value, None if mask is None else share_mask(mask))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("mask", masks())
def test_products_are_the_equation(mask, dtype):
    """In these dtypes, rounding cannot hide a mistake."""
    results = with_gradients(products, dtype, masks()[mask])
    references = with_gradients(lambda *parts: attend(*parts)[0], dtype, masks()[mask])
    for actual, reference in zip(results, references, strict=True):
        torch.testing.assert_close(actual, reference)


@pytest.mark.parametrize("mask", masks())
def test_gradients_against_finite_differences(mask):
    parts = [part.detach().requires_grad_() for part in random_inputs()[1]]
    assert torch.autograd.gradcheck(lambda *parts: products(*parts, masks()[mask]), parts)


def test_reference_mode_uses_no_kernel():
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        _, parts = random_inputs(dtype)
        with reference_mode("attention"):
            assert fast_attention(*parts) is None
            assert torch.equal(attend_fused(*parts), attend(*parts)[0])
        assert fast_attention(*parts) is not None


def test_products_are_taken_of_short_memories_in_training_alone(monkeypatch):
    dtypes = []
    monkeypatch.setattr(_Products, "apply", lambda query, *rest: dtypes.append(query.dtype) or query)
    monkeypatch.setattr(attention, "LONGEST", {torch.bfloat16: 7, torch.float32: 6})
    short, long = random_inputs(torch.bfloat16)[1], random_inputs(torch.bfloat16, keys=8)[1]
    fast_attention(*long)
    fast_attention(*random_inputs(torch.float32)[1])  # 7 keys
    fast_attention(*random_inputs(torch.float64)[1])
    fast_attention(*(part[0, 0] for part in random_inputs(torch.float32, keys=6)[1]))  # a single matrix
    fast_attention(short[0], *(part[:1] for part in short[1:]))  # one memory for all
    fast_attention(short[0], short[1], short[2][:1])
    fast_attention(short[0], short[1][:1], short[2])
    with torch.no_grad():
        fast_attention(*short)
    with torch.autocast("cpu", torch.bfloat16):
        fast_attention(*short)
    assert not dtypes
    fast_attention(*short)
    fast_attention(*random_inputs(torch.float32, keys=6)[1])
    assert dtypes == [torch.bfloat16, torch.float32]


def test_rounded_products_of_long_memories_go_to_the_fused_kernel_in_float32(monkeypatch):
    dtypes = []
    fused = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(attention, "LONGEST", {})
    monkeypatch.setattr(
        attention.F, "scaled_dot_product_attention", lambda q, *x, **y: dtypes.append(q.dtype) or fused(q, *x, **y)
    )
    for dtype in (torch.bfloat16, torch.float32):
        parts = random_inputs(dtype)[1]
        assert fast_attention(*parts).dtype == dtype
        with rounded_products():
            assert fast_attention(*parts).dtype == dtype
    assert dtypes == [torch.bfloat16, torch.float32, torch.float32, torch.float32]


@pytest.mark.parametrize("longest", [0, 128])
@pytest.mark.parametrize("causal", [True, False])
def test_heads_within_rounded_products_are_nearly_the_plain_ones(causal, longest, monkeypatch):
    monkeypatch.setattr(linear, "LARGE", 0)
    monkeypatch.setattr(attention, "LONGEST", up_to(longest))
    layer, x = MultiHeadAttention(16, 4), torch.randn(4, 9, 16, requires_grad=True)
    padding = torch.ones(4, 1, 1, 9, dtype=torch.bool)
    padding[2, ..., 6:] = False
    inputs = [x, *layer.parameters()]

    def output_and_gradients():
        y = layer(x, x, padding, causal=causal)
        return [y, *torch.autograd.grad(y.square().sum(), inputs)]

    with rounded_products():
        rounded = output_and_gradients()
        with reference_mode():
            exact = output_and_gradients()
    for actual, reference in zip(rounded, exact, strict=True):
        assert actual.dtype == torch.float32
        assert not torch.equal(actual, reference)
        # the gradient of the keys' bias is 0 up to rounding
        assert (actual - reference).norm() < 0.03 * reference.norm() + 0.05


@pytest.mark.parametrize("positions", [(9, 3), (3, 9)])
@pytest.mark.parametrize("disabled", [(), ("attention",)])
def test_projections_are_rounded_separately(positions, disabled, monkeypatch):
    """With few queries and many keys, or the reverse, only one of the two products is large."""
    queries, keys = positions
    monkeypatch.setattr(linear, "LARGE", 4 * 16 * 16 * 8)
    layer, x, memory = MultiHeadAttention(16, 4), torch.randn(4, queries, 16), torch.randn(4, keys, 16)
    expected = layer(x, memory)
    with rounded_products():
        dtypes = {layer.query(x).dtype, layer.key_value(memory).dtype}
        with reference_mode(*disabled) if disabled else torch.enable_grad():
            output = layer(x, memory)
    assert dtypes == {torch.bfloat16, torch.float32}
    assert output.dtype == torch.float32
    assert (output - expected).norm() < 0.02 * expected.norm()


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
