"""PyTorch's fused LSTM against its equations, with carried state and rounded factors."""

import pytest
import torch

from translucid.kernels import reference_mode
from translucid.kernels.lstm import lstm, reference_lstm
from translucid.kernels.rounding import rounded_products

B, T, D, H = 3, 7, 5, 4


def parts(dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, T, D), (B, H), (B, H), (4 * H, D), (4 * H, H), (4 * H,)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def results(function, dtype, window=T):
    """Return the outputs and the gradients of all inputs."""
    x, h, c, w, u, b = inputs = parts(dtype)
    y, (last, cell) = function(x[:, :window], (h, c), w, u, b)
    weights = torch.arange(y.numel(), dtype=dtype).view_as(y).cos()
    loss = (y * weights).sum() + last.square().sum() + (3 * cell).sin().sum()
    return [y, last, cell], torch.autograd.grad(loss, inputs)


@pytest.mark.parametrize("window", [1, T])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_fused_is_the_equation(dtype, tolerance, window):
    outputs, gradients = results(lstm, dtype, window)
    expected, expected_gradients = results(reference_lstm, dtype, window)
    for actual, reference in zip([*outputs, *gradients], [*expected, *expected_gradients], strict=True):
        assert actual.dtype == dtype
        torch.testing.assert_close(actual, reference, rtol=tolerance, atol=tolerance)


def test_the_equation_is_numpys():
    import numpy as np

    x, h, c, w, u, b = (part.detach().numpy() for part in parts(torch.float64))
    outputs, (last, cell) = reference_lstm(*[torch.from_numpy(x), (torch.from_numpy(h), torch.from_numpy(c))],
                                           *map(torch.from_numpy, (w, u, b)))  # fmt: skip
    for t in range(T):
        i, f, g, o = np.split(x[:, t] @ w.T + h @ u.T + b, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        np.testing.assert_allclose(outputs[:, t].numpy(), h, atol=1e-12)
    np.testing.assert_allclose(last.numpy(), h, atol=1e-12)
    np.testing.assert_allclose(cell.numpy(), c, atol=1e-12)


def test_rounded_factors_change_little_and_come_back_in_float32():
    with rounded_products():
        outputs, gradients = results(lstm, torch.float32)
    expected, expected_gradients = results(reference_lstm, torch.float32)
    for actual, reference in zip([*outputs, *gradients], [*expected, *expected_gradients], strict=True):
        assert actual.dtype == torch.float32
        assert (actual - reference).norm() < 0.03 * reference.norm()
    assert not torch.equal(outputs[0], expected[0])


def test_reference_mode_computes_the_equation(monkeypatch):
    def never(*arguments):
        raise AssertionError("the fused kernel was asked")

    monkeypatch.setattr(torch, "lstm", never)
    with pytest.raises(AssertionError, match="the fused kernel"):
        results(lstm, torch.float64)
    with reference_mode("lstm"), rounded_products():
        outputs, _ = results(lstm, torch.float64)
    assert torch.equal(outputs[0], results(reference_lstm, torch.float64)[0][0])


@pytest.mark.parametrize("function", [lstm, reference_lstm])
def test_windows_with_carried_state_equal_one_pass(function):
    x, h, c, w, u, b = (part.detach() for part in parts(torch.float64))
    full, full_state = function(x, (h, c), w, u, b)
    first, first_state = function(x[:, :3], (h, c), w, u, b)
    second, second_state = function(x[:, 3:], first_state, w, u, b)
    torch.testing.assert_close(torch.cat([first, second], 1), full, rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.cat(second_state), torch.cat(full_state), rtol=0, atol=1e-12)
