"""The SSRU against a loop in float64 that follows the paper (D19-5632, section 3.1)."""

import numpy as np
import pytest
import torch

from translucid.layers.ssru import SSRU

D = 4


@pytest.fixture
def unit():
    torch.manual_seed(2)
    unit = SSRU(D).double()
    unit.forget_bias.data.normal_()
    return unit


def reference_ssru(unit, x, cell):
    w_f, w = (matrix.detach().numpy() for matrix in unit.projection.weight.chunk(2))
    outputs = []
    for x_t in x.transpose(0, 1).detach().numpy():
        f = 1 / (1 + np.exp(-(x_t @ w_f.T + unit.forget_bias.detach().numpy())))
        cell = f * cell + (1 - f) * (x_t @ w.T)
        outputs.append(np.maximum(cell, 0))
    return np.stack(outputs, 1), cell


def test_outputs_equal_the_equation(unit):
    x = torch.randn(3, 9, D, dtype=torch.float64)
    output, cell = unit(x)
    expected, last = reference_ssru(unit, x, np.zeros((3, D)))
    np.testing.assert_allclose(output.detach().numpy(), expected, atol=1e-14)
    np.testing.assert_allclose(cell.detach().numpy(), last, atol=1e-14)
    assert (output > 0).any() and (output == 0).any()


def test_a_step_continues_the_sequence(unit):
    x, cell = torch.randn(3, 5, D, dtype=torch.float64), torch.zeros(3, D, dtype=torch.float64)
    full, last = unit(x)
    for t in range(5):
        step, cell = unit(x[:, t : t + 1], cell)
        torch.testing.assert_close(step[:, 0], full[:, t], rtol=0, atol=1e-14)
    torch.testing.assert_close(cell, last, rtol=0, atol=1e-14)


def test_gradients_are_finite_differences(unit):
    x = torch.randn(2, 5, D, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *weights: unit(x)[0], (x, *unit.parameters()))


def test_gates_next_to_one_do_not_round_to_one_in_half_precision(unit):
    unit = unit.bfloat16()
    unit.projection.weight.data[:D] = 0
    unit.forget_bias.data.fill_(7)  # sigmoid(7) = 0.9991, which bfloat16 would round to 1
    x = torch.ones(1, 1, D, dtype=torch.bfloat16)
    output, cell = unit(x)
    assert output.dtype == torch.bfloat16 and cell.dtype == torch.float32
    value = unit.projection(x)[0, 0, D:].float()
    torch.testing.assert_close(cell[0], value * (1 - torch.sigmoid(torch.tensor(7.0))), rtol=1e-3, atol=0)
