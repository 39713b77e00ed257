"""Dropout by random bytes: rate, mean, gradient and seed behave as in PyTorch's dropout."""

import math

import numpy as np
import pytest
import torch

from translucid.kernels import reference_mode
from translucid.kernels.dropout import Dropout, _integer_type


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_what_is_kept_and_its_gradient_are_those_of_the_plain_one(dtype):
    """Both implementations drop different elements but scale the kept ones alike."""
    masks = []
    for is_reference in (False, True):
        x = torch.randn(20_000, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
        if is_reference:
            with reference_mode("dropout"):
                y = Dropout(0.25)(x)
        else:
            y = Dropout(0.25)(x)
        y.backward(x.detach())
        assert y.dtype == x.grad.dtype == dtype
        is_kept = y != 0
        torch.testing.assert_close(y[is_kept], (x / 0.75)[is_kept])
        torch.testing.assert_close(x.grad, y.detach())
        masks.append(is_kept)
    for is_kept in masks:
        assert is_kept.float().mean() == pytest.approx(0.75, abs=0.015)
    assert not torch.equal(*masks)


def test_the_plain_one_is_pytorchs():
    x = torch.ones(1000)
    torch.manual_seed(3)
    with reference_mode("dropout"):
        expected = Dropout(0.5)(x)
    torch.manual_seed(3)
    assert torch.equal(expected, torch.nn.functional.dropout(x, 0.5))
    torch.manual_seed(3)
    assert not torch.equal(Dropout(0.5)(x), expected)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_dropout_drops_its_share_and_keeps_the_mean(p):
    dropped = Dropout(p)(torch.ones(1000, 100))
    assert (dropped == 0).float().mean() == pytest.approx(p, abs=0.005)
    assert dropped.mean() == pytest.approx(1, abs=0.01)
    assert len(dropped.unique()) == 2


@pytest.mark.parametrize("p", [1e-6, 1e-4, 0.0015, 0.004, 0.01, 0.1, 0.999, 0.9999])
def test_a_dropout_of_any_size_is_within_two_percent(p):
    ones = torch.ones(1_000_000)
    share = sum((Dropout(p)(ones) == 0).double().mean().item() for _ in range(5)) / 5
    assert share == pytest.approx(p, rel=0.02, abs=5 * math.sqrt(p * (1 - p) / 5e6))
    assert Dropout(p)(ones).mean() == pytest.approx(1, abs=5 * math.sqrt(p / (1 - p) / 1e6) + 1e-6)


def test_the_cheapest_numbers_that_are_fine_enough_are_drawn():
    """Use bytes if p is within two percent of a multiple of 1/256, 16-bit words for 1/65536, otherwise floats."""
    kinds = {
        0.5: np.uint8,
        0.1: np.uint8,
        0.99: np.uint8,
        0.999: np.uint8,
        0.00398: np.uint8,
        0.004: np.uint16,
        0.01: np.uint16,
    }
    for p, kind in (kinds | {0.0015: np.uint16, 1e-4: None, 1e-6: None}).items():
        assert _integer_type(p) == (kind and np.dtype(kind)), p


def test_dropout_follows_the_seed_and_the_mode():
    x, dropout = torch.ones(31), Dropout(0.5)
    torch.manual_seed(5)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)
    assert dropout.eval()(x) is x
    assert Dropout(0)(x) is x
    for wrong in (-0.1, 1):
        with pytest.raises(ValueError, match="dropout"):
            Dropout(wrong)


def test_every_dropout_is_another_one():
    ones, dropout = torch.ones(64), Dropout(0.5)
    assert len({tuple(dropout(ones).tolist()) for _ in range(500)}) == 500


def test_the_gradient_passes_where_the_value_did():
    x = torch.ones(50, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())
