"""The chunked loss against its equation: values, gradients, extreme logits and unneeded gradients."""

import pytest
import torch
from torch import nn

from tests.devices.emulated import Emulation
from translucid.kernels import loss as kernel
from translucid.kernels import reference_mode
from translucid.kernels.loss import SoftTargets, Target, chunked_loss
from translucid.kernels.rounding import rounded_products
from translucid.training.objective import loss_of_target, reference_loss, smoothed_loss


def inputs(rows=23, width=6, vocabulary=11, dtype=torch.float32):
    torch.manual_seed(7)
    features = torch.randn(rows, width).to(dtype).requires_grad_()
    return features, nn.Linear(width, vocabulary).to(dtype), torch.randint(vocabulary, (rows,))


def soft_targets(rows=23, vocabulary=11, count=4):
    tokens = torch.stack([torch.randperm(vocabulary)[:count] for _ in range(rows)])
    return SoftTargets(tokens, torch.rand(rows, count).softmax(1))


def gradients(features, output, labels, smoothing, soft=None):
    loss = loss_of_target(features, output, Target(labels, smoothing, soft, 0.3 if soft else 0.0))
    return loss, torch.autograd.grad(loss.smoothed * 3, [features, output.weight, output.bias])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 7, 512])
@pytest.mark.parametrize("is_soft", [False, True])
def test_values_and_gradients_are_those_of_reference_mode(dtype, smoothing, rows, is_soft, monkeypatch):
    monkeypatch.setattr(kernel, "ROWS", rows)
    tensors, soft = inputs(dtype=dtype), soft_targets() if is_soft else None
    loss, actual_gradients = gradients(*tensors, smoothing, soft)
    with reference_mode():
        expected, expected_gradients = gradients(*tensors, smoothing, soft)
    assert type(loss.smoothed.grad_fn) is not type(expected.smoothed.grad_fn)
    torch.testing.assert_close(loss.smoothed, expected.smoothed, check_dtype=False)
    assert loss.cross_entropy == pytest.approx(float(expected.cross_entropy), rel=1e-5)
    assert loss[2:] == expected[2:]
    for actual_gradient, expected_gradient in zip(actual_gradients, expected_gradients, strict=True):
        assert actual_gradient.dtype == dtype
        torch.testing.assert_close(actual_gradient, expected_gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [3, 512])
def test_rounded_products_give_nearly_the_same(smoothing, rows, monkeypatch):
    monkeypatch.setattr(kernel, "ROWS", rows)
    tensors = inputs(50, 64, 300)
    with rounded_products():
        rounded_loss, rounded_gradients = gradients(*tensors, smoothing)
        with reference_mode():
            loss, exact_gradients = gradients(*tensors, smoothing)
    assert rounded_loss.smoothed != loss.smoothed
    torch.testing.assert_close(rounded_loss.smoothed, loss.smoothed, rtol=1e-3, atol=0)
    assert rounded_loss.cross_entropy == pytest.approx(float(loss.cross_entropy), rel=1e-3)
    for rounded_gradient, exact_gradient in zip(rounded_gradients, exact_gradients, strict=True):
        assert rounded_gradient.dtype == torch.float32
        assert (rounded_gradient - exact_gradient).norm() < 0.01 * exact_gradient.norm()


@pytest.mark.parametrize("bias", [-200.0, 61.0, 200.0])
def test_extreme_logits_are_no_different(bias):
    features, output, labels = inputs()
    soft = soft_targets()
    loss, expected_gradients = gradients(features, output, labels, 0.1, soft)
    with torch.no_grad():
        output.bias += bias
    extreme, actual_gradients = gradients(features, output, labels, 0.1, soft)
    torch.testing.assert_close(extreme.smoothed, loss.smoothed, rtol=1e-4, atol=1e-4)
    assert extreme.correct == loss.correct
    for actual_gradient, expected_gradient in zip(actual_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(actual_gradient, expected_gradient, rtol=1e-3, atol=1e-4)


def test_large_logits_stay_finite():
    features, output, labels = inputs()
    features = (features.detach() * 1e4).requires_grad_()
    loss, actual_gradients = gradients(features, output, labels, 0.1)
    assert torch.isfinite(loss.smoothed)
    assert all(torch.isfinite(gradient).all() for gradient in actual_gradients)


def test_gradients_are_not_computed_in_validation(monkeypatch):
    """Without gradients, as in validation, the sums are identical to those in training."""
    gradient_flags = []
    sums = kernel._sums
    monkeypatch.setattr(kernel, "_sums", lambda *x: gradient_flags.append(x[-1] is not None) or sums(*x))
    features, output, labels = inputs()
    with_gradients = smoothed_loss(features, output, labels, 0.1)
    with torch.no_grad():
        without = smoothed_loss(features, output, labels, 0.1)
    frozen = smoothed_loss(features.detach(), output.requires_grad_(False), labels, 0.1)
    assert gradient_flags == [True, False, False]
    assert with_gradients.smoothed.requires_grad
    assert not without.smoothed.requires_grad and not frozen.smoothed.requires_grad
    assert with_gradients == without == frozen


def test_counts_have_no_gradient():
    features, output, labels = inputs()
    sums = chunked_loss(features, output.weight, output.bias, Target(labels, 0.1))
    assert sums.smoothed.requires_grad and not sums.nll.requires_grad and not sums.correct.requires_grad


def test_second_derivatives_are_refused_by_the_chunks_and_right_within_plain():
    features, output, labels = inputs()

    def slope():
        loss = smoothed_loss(features, output, labels, 0.1).smoothed
        (gradient,) = torch.autograd.grad(loss.square(), features, create_graph=True)
        return gradient.square().sum()

    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope().backward()
    with reference_mode():
        slope().backward()
    assert features.grad.abs().sum() > 0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("is_soft", [False, True])
def test_chunks_on_a_gpu_have_the_values_and_gradients_of_plain(monkeypatch, smoothing, is_soft):
    monkeypatch.setattr(kernel, "LOGITS_ON_GPU", 40)  # three rows of eleven pieces
    torch.manual_seed(1)
    x, labels = torch.randn(10, 6), torch.randint(11, (10,))
    output = nn.Linear(6, 11)
    weights = [x.requires_grad_(), output.weight, output.bias]
    soft = soft_targets(10) if is_soft else None
    expected = reference_loss(x, output, Target(labels, smoothing, soft, 0.3 if soft else 0.0))
    gradients = torch.autograd.grad(expected.smoothed * 3, weights)
    with Emulation("cuda") as emulation:
        on_gpu = nn.Linear(6, 11)
        on_gpu.load_state_dict(output.state_dict())
        on_gpu.to(emulation.device)
        features = x.detach().to(emulation.device).requires_grad_()
        if soft:
            soft = SoftTargets(*(part.to(emulation.device) for part in soft))
        target = Target(labels.to(emulation.device), smoothing, soft, 0.3 if soft else 0.0)
        loss = loss_of_target(features, on_gpu, target)
        actual_gradients = torch.autograd.grad(loss.smoothed * 3, [features, on_gpu.weight, on_gpu.bias])
        assert float(loss.smoothed.detach()) == pytest.approx(float(expected.smoothed), rel=1e-5)
        assert float(loss.cross_entropy) == pytest.approx(float(expected.cross_entropy), rel=1e-5)
        assert int(loss.correct) == int(expected.correct)
        for gradient, expected_gradient in zip(actual_gradients, gradients, strict=True):
            torch.testing.assert_close(gradient.cpu(), expected_gradient)


def test_a_gpu_never_holds_all_logits(monkeypatch):
    monkeypatch.setattr(kernel, "LOGITS_ON_GPU", 40)
    shapes = []
    linear = kernel.F.linear

    def recording_linear(x, *rest):
        shapes.append(len(x))
        return linear(x, *rest)

    monkeypatch.setattr(kernel.F, "linear", recording_linear)
    with Emulation("cuda") as emulation, torch.no_grad():
        output = nn.Linear(6, 11).to(emulation.device)
        labels = torch.randint(11, (10,)).to(emulation.device)
        smoothed_loss(torch.randn(10, 6).to(emulation.device), output, labels, 0.1)
    assert shapes == [3, 3, 3, 1]
