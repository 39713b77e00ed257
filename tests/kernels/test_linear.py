"""Linear layers with oneDNN products or rounded factors against plain PyTorch."""

from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch import nn

from translucid.kernels import linear, onednn, reference_mode
from translucid.kernels.linear import Linear
from translucid.kernels.onednn import onednn_is_better
from translucid.kernels.rounding import factor, rounded_products


@pytest.fixture(params=["as this machine would", "always"])
def _fast(request, monkeypatch):
    """Take the fast path where this machine would, or always; oneDNN itself runs only where it is preferred."""
    monkeypatch.setattr(linear, "LARGE", 0)
    if not onednn_is_better():
        monkeypatch.setattr(onednn, "_onednn", nullcontext)
        if request.param == "always":
            monkeypatch.setattr(linear, "onednn_is_better", lambda: True)
            monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize("shape", [(7,), (300, 7), (3, 100, 7), (2, 3, 50, 7)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_nn_linear(shape, bias):
    layer, reference = Linear(7, 130, bias=bias), nn.Linear(7, 130, bias=bias)
    reference.load_state_dict(layer.state_dict())
    x, reference_x = (torch.randn(shape, generator=torch.Generator().manual_seed(1), requires_grad=True) for _ in "ab")
    weights = torch.randn(*shape[:-1], 130)
    (layer(x) * weights).sum().backward()
    (reference(reference_x) * weights).sum().backward()
    torch.testing.assert_close(layer(x), reference(reference_x), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(x.grad, reference_x.grad, atol=1e-4, rtol=1e-5)
    for parameter, reference_parameter in zip(layer.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, reference_parameter.grad, atol=1e-4, rtol=1e-5)


def test_gradients_against_finite_differences():
    x, weight, bias = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((2, 3, 4), (5, 4), (5,)))
    assert torch.autograd.gradcheck(linear._Linear.apply, (x, weight, bias, False))
    assert torch.autograd.gradcheck(linear._Linear.apply, (x, weight, None, False))
    assert torch.autograd.gradcheck(linear._Linear.apply, (x.detach(), weight, bias, False))


def test_large_products_in_float32_on_a_cpu_take_it(monkeypatch):
    calls = []

    @contextmanager
    def recording():
        calls.append(True)
        yield

    monkeypatch.setattr(linear, "onednn_is_better", lambda: True)
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    monkeypatch.setattr(onednn, "_onednn", recording)
    monkeypatch.setattr(linear, "LARGE", 3 * 4 * 5)
    layer, x = Linear(4, 5), torch.randn(3, 4)
    layer(x[:2])
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    layer.double()(x.double())
    layer.float()
    with reference_mode("linear"):
        layer(x).sum().backward()
    assert not calls
    with torch.no_grad():
        layer(x)
    assert len(calls) == 1
    layer(x).sum().backward()
    assert len(calls) == 3


def gradients(layer, x, weights):
    y = layer(x)
    return [y, *torch.autograd.grad((y * weights).sum(), [x, *layer.parameters()])]


@pytest.mark.parametrize("shape", [(7,), (300, 7), (3, 100, 7)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_rounded_factors_give_what_products_of_bfloat16_give(shape, bias, monkeypatch):
    monkeypatch.setattr(linear, "LARGE", 0)
    layer, x = Linear(7, 130, bias=bias), torch.randn(shape, requires_grad=True)
    weights = torch.randn(*shape[:-1], 130)
    exact = gradients(layer, x, weights)
    with rounded_products():
        rounded = gradients(layer, x, weights)
    flat, dy = x.detach().reshape(-1, 7).bfloat16().double(), weights.reshape(-1, 130)
    y = flat @ layer.weight.bfloat16().double().T + (layer.bias.bfloat16() if bias else 0)
    dx, dw = dy.bfloat16().double() @ layer.weight.bfloat16().double(), dy.bfloat16().double().T @ flat
    for actual, expected in zip(rounded, [y, dx, dw, dy.sum(0)], strict=False):  # dy.sum(0) only with a bias
        assert actual.dtype == torch.float32
        # the sum is also rounded to the eight significant bits of bfloat16
        torch.testing.assert_close(actual.flatten(), expected.flatten().float(), rtol=2**-8, atol=2e-2)
    assert not any(
        torch.equal(rounded_tensor, exact_tensor)
        for rounded_tensor, exact_tensor in zip(rounded[:3], exact[:3], strict=True)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("is_rounded", [False, True])
def test_every_dtype_against_plain(dtype, is_rounded, monkeypatch):
    """Only float32 products may be rounded; other dtypes stay bit-identical."""
    monkeypatch.setattr(linear, "LARGE", 0)
    layer, x = Linear(64, 48).to(dtype), torch.randn(9, 64).to(dtype).requires_grad_()
    weights = torch.randn(9, 48).to(dtype)
    with reference_mode():
        expected = gradients(layer, x, weights)
    with rounded_products(is_rounded):
        results = gradients(layer, x, weights)
    for actual, reference in zip(results, expected, strict=True):
        assert actual.dtype == reference.dtype == dtype
        if dtype == torch.float32:
            assert (actual - reference).norm() < (0.01 if is_rounded else 1e-6) * reference.norm()
        else:
            assert torch.equal(actual, reference)
    assert torch.equal(results[0], expected[0]) is not (is_rounded and dtype == torch.float32) or not is_rounded


@pytest.mark.parametrize("bias", [True, False])
def test_what_feeds_a_product_stays_rounded(bias, monkeypatch):
    monkeypatch.setattr(linear, "LARGE", 0)
    inner, outer, x = Linear(7, 30, bias=bias), Linear(30, 7), torch.randn(3, 100, 7, requires_grad=True)
    parameters = [x, *inner.parameters(), *outer.parameters()]

    def outputs_and_gradients(feeds):
        inner.feeds_product = feeds
        hidden = inner(x).relu()
        assert hidden.dtype == (torch.bfloat16 if feeds else torch.float32)
        y = outer(hidden)
        return [y, *torch.autograd.grad(y.square().sum(), parameters)]

    with rounded_products():
        pairs = zip(outputs_and_gradients(True), outputs_and_gradients(False), strict=True)
    for actual, reference in pairs:
        assert actual.dtype == reference.dtype == torch.float32
        assert (actual - reference).norm() < 0.01 * reference.norm()
    inner.feeds_product = True
    assert inner(x).dtype == torch.float32  # nothing is rounded here
    with rounded_products(), reference_mode("linear"):
        assert inner(x).dtype == torch.float32


@pytest.mark.parametrize("case", ["small", "outside", "no gradients", "plain", "outside, by the faster library"])
def test_two_dtypes_may_meet(case, monkeypatch):
    """A rounded output may be read by a small layer or outside `rounded_products`."""
    monkeypatch.setattr(linear, "LARGE", 8 * 16 * 32)
    monkeypatch.setattr(linear, "onednn_is_better", lambda: "faster" in case)
    first, last = Linear(16, 32, feeds_product=True), Linear(32, 1 if case == "small" else 64)
    x = torch.randn(8, 16, requires_grad=True)
    parameters = [x, *first.parameters(), *last.parameters()]
    exact = torch.autograd.grad(last(first(x)).square().sum(), parameters)
    with rounded_products():
        hidden = first(x)
        assert hidden.dtype == torch.bfloat16
        if case == "small":
            y = last(hidden)
        elif case == "plain":
            with reference_mode():
                y = last(hidden)
        elif case == "no gradients":
            with torch.no_grad():
                assert last(hidden).dtype == torch.float32
            return
    if "outside" in case:
        y = last(hidden)
    assert y.dtype == torch.float32
    for actual, reference in zip(torch.autograd.grad(y.square().sum(), parameters), exact, strict=True):
        assert actual.dtype == torch.float32
        assert (actual - reference).norm() < 0.03 * reference.norm()


def test_only_large_products_that_gradients_are_made_for_are_rounded(monkeypatch):
    monkeypatch.setattr(linear, "onednn_is_better", lambda: False)
    monkeypatch.setattr(linear, "LARGE", 3 * 4 * 5)
    layer, x = Linear(4, 5), torch.randn(3, 4)
    exact = layer(x)
    with rounded_products(False):
        assert torch.equal(layer(x), exact)
    with rounded_products():
        assert not torch.equal(layer(x), exact)
        torch.testing.assert_close(layer(x[:2]), exact[:2], rtol=0, atol=1e-6)
        with rounded_products(False):
            assert factor(x) is x
        assert factor(x).dtype == torch.bfloat16
        with torch.no_grad():
            torch.testing.assert_close(layer(x), exact, rtol=0, atol=1e-6)
        with reference_mode("linear"):
            assert torch.equal(layer(x), exact)
            assert factor(x) is x
        layer.double()(x.double())
    assert factor(x) is x


def test_gradients_are_rounded_as_the_products_before_them_were(monkeypatch):
    """This also holds when backward runs outside `rounded_products`."""
    monkeypatch.setattr(linear, "LARGE", 0)
    layer, x = Linear(4, 5), torch.randn(3, 4)
    with rounded_products():
        inside = torch.autograd.grad(layer(x).sum(), layer.weight)
        y = layer(x)
    assert torch.equal(torch.autograd.grad(y.sum(), layer.weight)[0], inside[0])
