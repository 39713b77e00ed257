"""The additive score kernel against its equation: values and gradients."""

import pytest
import torch

from translucid.attention.scores import Concat
from translucid.kernels import additive
from translucid.kernels.dispatch import reference_mode


def fast_and_reference(queries, keys, width, size=1.0):
    torch.manual_seed(1)
    score = Concat(width, 5)
    results = []
    for fast in (True, False):
        query = (size * torch.randn(*queries, width, generator=torch.Generator().manual_seed(2))).requires_grad_()
        memory = (size * torch.randn(*keys, width, generator=torch.Generator().manual_seed(3))).requires_grad_()
        score.zero_grad()
        if fast:
            scores = score(query, score.keys(memory))
        else:
            with reference_mode("additive"):
                scores = score(query, score.keys(memory))
        (scores * torch.linspace(-1, 2, scores.numel()).view_as(scores)).sum().backward()
        gradients = [query.grad, memory.grad, *(p.grad.clone() for p in score.parameters())]
        results.append((scores, gradients))
    return results


@pytest.mark.parametrize("block", [1, 40, 1 << 18])
@pytest.mark.parametrize("queries", [1, 3])
def test_scores_equal_the_equation(monkeypatch, queries, block):
    monkeypatch.setattr(additive, "BLOCK", block)
    (fast, fast_gradients), (exact, gradients) = fast_and_reference((4, queries), (4, 7), 6)
    assert fast.grad_fn.name().startswith("_Additive")
    torch.testing.assert_close(fast, exact, rtol=1e-5, atol=1e-5)
    for actual, reference in zip(fast_gradients, gradients, strict=True):
        torch.testing.assert_close(actual, reference, rtol=1e-4, atol=1e-5)


def test_scores_of_extreme_inputs_are_finite():
    (fast, gradients), _ = fast_and_reference((2, 1), (2, 3), 4, size=200.0)
    assert torch.isfinite(fast).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_many_queries_in_turn_share_what_is_of_the_keys():
    torch.manual_seed(1)
    score = Concat(4)
    memory = torch.randn(2, 3, 4)
    keys = score.keys(memory)
    over = score.over(keys)
    for _ in range(3):
        query = torch.randn(2, 1, 4)
        torch.testing.assert_close(over(query, keys), score(query, keys))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_take_the_equation(dtype):
    score = Concat(4).to(dtype)
    keys = score.keys(torch.randn(2, 3, 4, dtype=dtype))
    assert score(torch.randn(2, 1, 4, dtype=dtype), keys).dtype == dtype
    assert additive.additive_over(keys, score.v) is None
