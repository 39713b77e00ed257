"""The recurrence over time against NumPy's loop in float64, for values and gradients of every implementation."""

import numpy as np
import pytest
import torch

from translucid.kernels import recurrence, reference_mode
from translucid.kernels.packing import Sentences
from translucid.kernels.recurrence import linear_recurrence, reference_recurrence

IMPLEMENTATIONS = {
    "stepped": linear_recurrence,
    "doubled": lambda a, b: recurrence._doubling_scan(a, b, b.size(1)),
    "reference": reference_recurrence,
}


def parts(length, dtype=torch.float64, lower=0.0, upper=1.0):
    generator = torch.Generator().manual_seed(length)
    a = lower + (upper - lower) * torch.rand(2, length, 3, generator=generator, dtype=torch.float64)
    b = torch.randn(2, length, 3, generator=generator, dtype=torch.float64)
    return a.to(dtype).requires_grad_(), b.to(dtype).requires_grad_()


def loop_recurrence(a, b):
    """Compute the equation in float64."""
    a, b = (x.detach().double().numpy() for x in (a, b))
    h = np.zeros_like(b)
    h[:, 0] = b[:, 0]
    for t in range(1, b.shape[1]):
        h[:, t] = a[:, t] * h[:, t - 1] + b[:, t]
    return h


@pytest.fixture(params=IMPLEMENTATIONS)
def compute(request):
    return IMPLEMENTATIONS[request.param]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 65])
def test_states_equal_those_of_a_loop(compute, length):
    a, b = parts(length)
    np.testing.assert_allclose(compute(a, b).detach().numpy(), loop_recurrence(a, b), atol=1e-13)


@pytest.mark.parametrize("length", [1, 2, 6])
def test_gradients_are_finite_differences(compute, length):
    assert torch.autograd.gradcheck(compute, parts(length))


# Products of 2,000 gates below 1e-3 are 0 in float32, and a scan that divides by them returns NaN; those of gates above
# 0.999 carry a summand, and its rounding, from the first position to the last.
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1e-3), (0.999, 1.0), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
def test_long_sequences_are_exact_in_float32(compute, lower, upper):
    a, b = parts(2000, torch.float32, lower, upper)
    h = compute(a, b)
    expected = loop_recurrence(a, b)
    np.testing.assert_allclose(h.detach().numpy(), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    seeds = torch.randn(h.shape, generator=torch.Generator().manual_seed(1))
    da, db = torch.autograd.grad(h, (a, b), seeds)
    exact_a, exact_b = parts(2000, torch.float64, lower, upper)
    exact_a.data.copy_(a.data)
    exact_b.data.copy_(b.data)
    exact = torch.autograd.grad(reference_recurrence(exact_a, exact_b), (exact_a, exact_b), seeds.double())
    for gradient, reference in zip((da, db), exact, strict=True):
        torch.testing.assert_close(gradient.double(), reference, rtol=1e-4, atol=1e-5 * reference.abs().max().item())


def test_sentences_of_a_packed_row_have_recurrences_of_their_own():
    """Also in the gradients: the states and the gradients are those of each sentence alone."""
    a, b = (x[:1].detach().requires_grad_() for x in parts(12))
    sentences = Sentences.of(torch.tensor([4, 1, 0, 5, 2]), 8)
    h = linear_recurrence(a, b, sentences)
    seeds = torch.randn(h.shape, generator=torch.Generator().manual_seed(1), dtype=h.dtype)
    gradients = torch.autograd.grad(h, (a, b), seeds)
    for first, last in ((0, 4), (4, 5), (5, 10), (10, 12)):
        part = [x[:, first:last].detach().requires_grad_() for x in (a, b)]
        expected = reference_recurrence(*part)
        torch.testing.assert_close(h[:, first:last], expected, rtol=0, atol=1e-13)
        references = torch.autograd.grad(
            expected, part, seeds[:, first:last], allow_unused=True, materialize_grads=True
        )
        for gradient, reference in zip(gradients, references, strict=True):
            torch.testing.assert_close(gradient[:, first:last], reference, rtol=0, atol=1e-13)


def test_reference_mode_and_the_compiler_have_other_ways(monkeypatch):
    a, b = parts(9)
    monkeypatch.setattr(recurrence, "_scan", None)
    with reference_mode("recurrence"):
        np.testing.assert_allclose(linear_recurrence(a, b).detach().numpy(), loop_recurrence(a, b), atol=1e-13)
    compiled = torch.compile(linear_recurrence, backend="eager", fullgraph=True)
    np.testing.assert_allclose(compiled(a, b).detach().numpy(), loop_recurrence(a, b), atol=1e-13)
