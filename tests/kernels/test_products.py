"""Linear layers whose products are made by the faster library or of rounded factors, against `nn.Linear`."""

import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch
from torch import nn

from translucid.kernels import linear as products
from translucid.kernels.linear import (
    Linear,
    bfloat16_is_quick,
    factor,
    fast_products,
    onednn_is_better,
    rounded_products,
)


@pytest.fixture(params=["as this machine would", "always"])
def _fast(request, monkeypatch):
    """The fast path, also where this machine would not take it; oneDNN is asked only where it is exact."""
    monkeypatch.setattr(products, "LARGE", 0)
    if not onednn_is_better():
        monkeypatch.setattr(products, "_onednn", nullcontext)
        if request.param == "always":
            monkeypatch.setattr(products, "onednn_is_better", lambda: True)


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize("shape", [(7,), (300, 7), (3, 100, 7), (2, 3, 50, 7)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_nn_linear(shape, bias):
    ours, theirs = Linear(7, 130, bias=bias), nn.Linear(7, 130, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    mine, other = (torch.randn(shape, generator=torch.Generator().manual_seed(1), requires_grad=True) for _ in "ab")
    weights = torch.randn(*shape[:-1], 130)
    (ours(mine) * weights).sum().backward()
    (theirs(other) * weights).sum().backward()
    torch.testing.assert_close(ours(mine), theirs(other), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(mine.grad, other.grad, atol=1e-4, rtol=1e-5)
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-4, rtol=1e-5)


def test_gradients_against_finite_differences():
    x, weight, bias = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((2, 3, 4), (5, 4), (5,)))
    assert torch.autograd.gradcheck(products._Linear.apply, (x, weight, bias, False))
    assert torch.autograd.gradcheck(products._Linear.apply, (x, weight, None, False))
    assert torch.autograd.gradcheck(products._Linear.apply, (x.detach(), weight, bias, False))


def test_large_products_in_float32_on_a_cpu_take_it(monkeypatch):
    taken = []

    @contextmanager
    def noted():
        taken.append(True)
        yield

    monkeypatch.setattr(products, "onednn_is_better", lambda: True)
    monkeypatch.setattr(products, "_onednn", noted)
    monkeypatch.setattr(products, "LARGE", 3 * 4 * 5)
    layer, x = Linear(4, 5), torch.randn(3, 4)
    layer(x[:2])
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    layer.double()(x.double())
    assert not taken
    with torch.no_grad():
        layer.float()(x)
    assert len(taken) == 1
    layer(x).sum().backward()
    assert len(taken) == 3


def test_outside_and_after_an_error_all_is_as_it_was(monkeypatch):
    monkeypatch.setattr(products, "onednn_is_better", lambda: True)
    matmul = torch.backends.mkldnn.matmul
    before = matmul.fp32_precision

    @fast_products()
    def fail():
        assert matmul.fp32_precision == "bf16"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert matmul.fp32_precision == before


def test_a_library_that_rounds_is_not_better(monkeypatch):
    monkeypatch.setattr(products, "amd", lambda: True)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(products, "_with_onednn", lambda a, b: a @ b)
    assert onednn_is_better.__wrapped__() is torch.backends.mkldnn.is_available()
    monkeypatch.setattr(products, "_with_onednn", lambda a, b: (a.bfloat16() @ b.bfloat16()).float())
    assert not onednn_is_better.__wrapped__()


@pytest.mark.parametrize(("capability", "amd"), [("AVX2", True), ("AVX512", False)])
def test_elsewhere_the_usual_library_is_taken(capability, amd, monkeypatch):
    monkeypatch.setattr(products, "amd", lambda: amd)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    assert not onednn_is_better.__wrapped__()


def gradients(layer, x, weights):
    y = layer(x)
    return [y, *torch.autograd.grad((y * weights).sum(), [x, *layer.parameters()])]


@pytest.mark.parametrize("shape", [(7,), (300, 7), (3, 100, 7)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_rounded_factors_give_what_products_of_bfloat16_give(shape, bias, monkeypatch):
    monkeypatch.setattr(products, "LARGE", 0)
    layer, x = Linear(7, 130, bias=bias), torch.randn(shape, requires_grad=True)
    weights = torch.randn(*shape[:-1], 130)
    exact = gradients(layer, x, weights)
    with rounded_products():
        rounded = gradients(layer, x, weights)
    flat, dy = x.detach().reshape(-1, 7).bfloat16().double(), weights.reshape(-1, 130)
    y = flat @ layer.weight.bfloat16().double().T + (layer.bias.bfloat16() if bias else 0)
    dx, dw = dy.bfloat16().double() @ layer.weight.bfloat16().double(), dy.bfloat16().double().T @ flat
    for found, expected in zip(rounded, [y, dx, dw, dy.sum(0)], strict=False):  # the last one, if there is a bias
        assert found.dtype == torch.float32
        # the sum, too, has the eight binary digits of bfloat16
        torch.testing.assert_close(found.flatten(), expected.flatten().float(), rtol=2**-8, atol=2e-2)
    assert not any(torch.equal(one, other) for one, other in zip(rounded[:3], exact[:3], strict=True))


@pytest.mark.parametrize("bias", [True, False])
def test_what_is_a_factor_again_may_stay_rounded(bias, monkeypatch):
    monkeypatch.setattr(products, "LARGE", 0)
    inner, outer, x = Linear(7, 30, bias=bias), Linear(30, 7), torch.randn(3, 100, 7, requires_grad=True)
    parameters = [x, *inner.parameters(), *outer.parameters()]

    def both(rounded):
        hidden = inner(x, rounded=rounded).relu()
        assert hidden.dtype == (torch.bfloat16 if rounded else torch.float32)
        y = outer(hidden)
        return [y, *torch.autograd.grad(y.square().sum(), parameters)]

    with rounded_products():
        pairs = zip(both(True), both(False), strict=True)
    for one, other in pairs:
        assert one.dtype == other.dtype == torch.float32
        assert (one - other).norm() < 0.01 * other.norm()
    assert inner(x, rounded=True).dtype == torch.float32  # nothing is rounded here


def test_only_large_products_that_gradients_are_made_for_are_rounded(monkeypatch):
    monkeypatch.setattr(products, "onednn_is_better", lambda: False)
    monkeypatch.setattr(products, "LARGE", 3 * 4 * 5)
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
        layer.double()(x.double())
    assert factor(x) is x


def test_gradients_are_rounded_as_the_products_before_them_were(monkeypatch):
    """Also if they are made where nothing is rounded, as after the loss."""
    monkeypatch.setattr(products, "LARGE", 0)
    layer, x = Linear(4, 5), torch.randn(3, 4)
    with rounded_products():
        inside = torch.autograd.grad(layer(x).sum(), layer.weight)
        y = layer(x)
    assert torch.equal(torch.autograd.grad(y.sum(), layer.weight)[0], inside[0])


@pytest.mark.skipif(not bfloat16_is_quick(torch.device("cpu")), reason="no instructions for bfloat16 here")
def test_a_processor_that_is_said_to_multiply_bfloat16_does_so():
    """By PyTorch's own word, which it has for x86 only."""
    assert torch.cpu._is_avx512_bf16_supported()


@pytest.mark.skipif(
    not (onednn_is_better() or bfloat16_is_quick(torch.device("cpu"))) or not Path("/proc/self/statm").exists(),
    reason="oneDNN is not taken here",
)
@pytest.mark.parametrize("training", [False, True])
def test_products_of_many_shapes_take_no_memory_with_them(training):
    program = """if True:
        import sys
        import torch
        from pathlib import Path
        from translucid.kernels.linear import Linear, bfloat16_is_quick, rounded_products

        def pages():
            return int(Path("/proc/self/statm").read_text().split()[1])

        training = sys.argv[1] == "True"
        layer, x = Linear(128, 256), torch.randn(1000, 128)
        with rounded_products(training and bfloat16_is_quick(torch.device("cpu"))), torch.set_grad_enabled(training):
            layer(x)
            before = pages()
            for rows in range(300, 700):
                y = layer(x[:rows])
                if training:
                    y.sum().backward()
        print((pages() - before) * 4 // 1024)
    """
    done = subprocess.run([sys.executable, "-c", program, str(training)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # MiB; 240 with all that oneDNN would keep by itself
