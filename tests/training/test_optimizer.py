"""Optimizers: which weights each one updates, and their saved moments."""

import subprocess
import sys
from copy import deepcopy

import pytest
import torch
from pydantic import ValidationError

from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions, TransformerOptions
from translucid.runs.training_options import TrainingOptions
from translucid.training.optimizer import ADAM, Adam, Muon, NAdam, Optimizer, inner_matrices, orthogonal

SHAPE = {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1}


def model_of(**changes):
    return build_model(TransformerOptions(**{**SHAPE, **changes}), 30, 30)


def optimizer_of(model, name="muon", bfloat16=False):
    return Optimizer(TrainingOptions(optimizer=name), model, list(model.parameters()), bfloat16=bfloat16)


@pytest.mark.parametrize("tied", [True, False])
def test_muon_moves_the_matrices_within_the_layers_and_adam_all_else(tied):
    model = model_of(tie_output=tied, share_embeddings=tied)
    inner = {id(p) for p in inner_matrices(model)}
    for name, parameter in model.named_parameters():
        outer = "embedding" in name or name.startswith("output") or parameter.ndim < 2
        assert (id(parameter) in inner) is not outer, name
    muon, adam = optimizer_of(model).optimizers
    moved = [parameter for part in (muon, adam) for group in part.param_groups for parameter in group["params"]]
    assert isinstance(muon, Muon) and isinstance(adam, Adam)
    assert len(muon.param_groups[0]["params"]) == len(inner)
    assert sorted(map(id, moved)) == sorted(map(id, model.parameters()))
    assert inner_matrices(build_model(RecurrentOptions(width=8), 30, 30))


def test_kernels_of_convolutions_are_inner_matrices_unless_they_read_colors():
    of_pixels, of_states = torch.nn.Conv2d(3, 8, 5), torch.nn.Conv2d(8, 4, 3)
    (inner,) = inner_matrices(torch.nn.Sequential(of_pixels, of_states))
    assert inner is of_states.weight


@pytest.mark.parametrize(
    ("optimizer_class", "original"),
    [
        (Adam, lambda weights: torch.optim.Adam(weights, lr=0.1, fused=True, **ADAM)),
        (NAdam, lambda weights: torch.optim.NAdam(weights, lr=0.1)),
    ],
)
def test_weights_and_moments_are_those_of_torch_and_stay_where_a_gradient_is_not_finite(optimizer_class, original):
    ours = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    theirs = deepcopy(ours)
    optimizer, expected = optimizer_class([ours], lr=0.1), original([theirs])
    for step, finite in enumerate([False, True, True, False, True]):
        ours.grad = torch.full_like(ours, step + 1.0 if finite else torch.inf)
        optimizer.step(torch.tensor(finite))
        if finite:
            theirs.grad = ours.grad.clone()
            expected.step()
        assert torch.equal(ours, theirs), step
    assert optimizer.state[ours].keys() == expected.state[theirs].keys()
    assert all(torch.equal(value, expected.state[theirs][name]) for name, value in optimizer.state[ours].items())


def test_the_optimizers_of_presets_do_not_load_the_compiler():
    """Importing it takes as long as encoding 100,000 pairs."""
    code = (
        "import sys, torch\n"
        "from translucid.training.optimizer import Adam, Muon\n"
        "for optimizer in Adam([torch.nn.Parameter(torch.ones(2))], lr=1), Muon([torch.nn.Parameter(torch.ones(2, 2))],"
        " lr=1, bfloat16=False):\n"
        "    (weight,) = optimizer.param_groups[0]['params']\n"
        "    weight.grad = torch.ones_like(weight)\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
        "    print(weight.grad, 'torch._dynamo' in sys.modules)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == ["None False"] * 2


def test_a_matrix_moves_in_a_direction_made_orthogonal():
    """The singular values of the first step are about 0.2 sqrt(longer side), whatever those of the gradient."""
    model = model_of()
    (matrix,) = (p for name, p in model.named_parameters() if name == "encoder.0.feed_forward.inner.weight")
    before = matrix.detach().clone()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    matrix.grad = torch.randn(32, 4) @ torch.diag(torch.tensor([100.0, 10, 1, 0.1])) @ torch.randn(4, 16)
    optimizer_of(model).step(0.5)
    sizes = torch.linalg.svdvals((before - matrix) / (0.5 * 0.2 * 32**0.5))[:3]
    assert ((sizes > 0.6) & (sizes < 1.3)).all()
    assert matrix.grad is None


@pytest.mark.parametrize("bfloat16", [True, False])
def test_muon_moves_as_that_of_torch_does(bfloat16):
    """PyTorch orthogonalizes each matrix by itself, in bfloat16."""
    shapes = [(8, 8), (16, 8), (8, 16), (8, 8), (24, 8)]
    generator = torch.Generator().manual_seed(1)
    ours = [torch.nn.Parameter(torch.zeros(shape)) for shape in [*shapes, (5, 3)]]
    theirs = deepcopy(ours)
    muon = Muon(ours, lr=0.1, bfloat16=bfloat16)
    reference = torch.optim.Muon(theirs, lr=0.1, weight_decay=0, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        for actual, expected in zip(ours[:-1], theirs[:-1], strict=True):  # the last matrix has no gradient
            actual.grad = torch.randn(actual.shape, generator=generator)
            expected.grad = actual.grad.clone()
        muon.step()
        reference.step()
    for actual, expected in zip(ours[:-1], theirs[:-1], strict=True):
        assert (actual - expected).norm() < 0.02 * expected.norm()
        assert expected.norm() > 0
    assert not ours[-1].any()


def test_muon_leaves_matrices_without_gradients_as_they_are():
    """As in a step without gradients inside the layers."""
    matrix = torch.nn.Parameter(torch.ones(3, 2))
    muon = Muon([matrix], lr=0.1, bfloat16=False)
    muon.step()
    assert torch.equal(matrix, torch.ones(3, 2)) and not muon.state


def quintic(x):
    """Return a singular value after one iteration with the coefficients of Jordan et al. 2024."""
    return 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5


def test_directions_made_orthogonal_are_those_of_the_polynomial():
    """The norm of the singular values 2, 3, 6 and 0 is 7; five iterations keep the singular vectors."""
    sizes = [2 / 7, 3 / 7, 6 / 7, 0]
    for _ in range(5):
        sizes = [quintic(size) for size in sizes]
    assert sizes == pytest.approx([0.92186, 1.13379, 0.97329, 0], abs=1e-5)
    u, _ = torch.linalg.qr(torch.randn(3, 4, 4, dtype=torch.float64))
    v, _ = torch.linalg.qr(torch.randn(3, 9, 4, dtype=torch.float64))

    def matrices(*sizes):
        return u @ torch.diag(torch.tensor(sizes, dtype=torch.float64)) @ v.mT

    torch.testing.assert_close(orthogonal(matrices(2, 3, 6, 0)), matrices(*sizes), rtol=0, atol=1e-12)


def test_a_zero_gradient_moves_no_weight():
    assert torch.equal(orthogonal(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def test_singular_values_come_near_1():
    sizes = torch.logspace(-2.2, 0, 40, dtype=torch.float64)
    assert (sizes / sizes.norm()).min() > 0.002
    values = orthogonal(torch.diag_embed(sizes)[None])[0].diagonal()
    assert values.min() > 0.68
    assert values.max() < 1.21


def adam(weight, gradients, rate):
    """Apply algorithm 1 of Kingma and Ba 2015 with the constants of Vaswani et al. 2017, section 5.3."""
    mean = square = 0.0
    for t, gradient in enumerate(gradients, 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.98 * square + 0.02 * gradient**2
        weight -= rate * (mean / (1 - 0.9**t)) / ((square / (1 - 0.98**t)) ** 0.5 + 1e-9)
    return weight


def nadam(weight, gradients, rate):
    """Apply Adam with Nesterov momentum, whose decay rises with the step (Dozat 2016)."""
    mean = square = 0.0
    product = 1.0
    for t, gradient in enumerate(gradients, 1):
        current, following = (0.9 * (1 - 0.5 * 0.96 ** (0.004 * i)) for i in (t, t + 1))
        product *= current
        mean, square = 0.9 * mean + 0.1 * gradient, 0.98 * square + 0.02 * gradient**2
        moved = (1 - current) / (1 - product) * gradient + following / (1 - product * following) * mean
        weight -= rate * moved / ((square / (1 - 0.98**t)) ** 0.5 + 1e-9)
    return weight


@pytest.mark.parametrize(("name", "equations"), [("adam", adam), ("nadam", nadam), ("muon", adam)])
@pytest.mark.parametrize("size", [1.0, 1e-8], ids=["usual gradients", "gradients near epsilon"])
def test_weights_move_by_the_equations(name, equations, size):
    """Muon leaves weights outside the layers to Adam."""
    model = model_of()
    bias = model.output.bias.data.fill_(0.5)
    gradients = [3 * size, -size, 2 * size, 0.0, -4 * size]
    optimizer = optimizer_of(model, name)
    for gradient in gradients:
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        model.output.bias.grad = torch.full_like(bias, gradient)
        optimizer.step(0.25)
    torch.testing.assert_close(bias, torch.full_like(bias, equations(0.5, gradients, 0.25)), rtol=1e-5, atol=1e-6)


LATE = 4
"""The index of a parameter that has no gradient in the first three steps."""


def steps(optimizer, first, count):
    for i in range(first, first + count):
        generator = torch.Generator().manual_seed(i)
        for index, parameter in enumerate(optimizer.parameters):
            gradient = torch.randn(parameter.shape, generator=generator)
            parameter.grad = None if index == LATE and i < 3 else gradient
        optimizer.step(0.01)


@pytest.mark.parametrize("name", ["adam", "nadam", "muon"])
def test_restored_moments_continue_exactly(name):
    uninterrupted, interrupted = model_of(), model_of()
    interrupted.load_state_dict(uninterrupted.state_dict())
    steps(optimizer_of(uninterrupted, name), 0, 6)
    optimizer = optimizer_of(interrupted, name)
    steps(optimizer, 0, 3)
    moments = deepcopy(optimizer.moments())
    assert set(moments) == set(range(len(optimizer.parameters))) - {LATE}
    resumed = optimizer_of(interrupted, name)
    resumed.restore(moments)
    steps(resumed, 3, 3)
    assert all(
        torch.equal(expected, actual)
        for expected, actual in zip(uninterrupted.parameters(), interrupted.parameters(), strict=True)
    )


@pytest.mark.parametrize("name", ["adam", "nadam", "muon"])
def test_moments_are_known_by_the_place_of_their_parameter(name):
    model = model_of()
    optimizer = optimizer_of(model, name)
    inner = {id(parameter) for parameter in inner_matrices(model)}
    steps(optimizer, 0, 1)
    moments = optimizer.moments()
    generator = torch.Generator().manual_seed(0)
    for index, parameter in enumerate(optimizer.parameters):
        gradient = torch.randn(parameter.shape, generator=generator)
        if index == LATE:
            continue
        if name == "muon" and id(parameter) in inner:
            assert set(moments[index]) == {"momentum_buffer"}
            torch.testing.assert_close(moments[index]["momentum_buffer"], 0.05 * gradient)
        else:
            torch.testing.assert_close(moments[index]["exp_avg"], 0.1 * gradient)
            torch.testing.assert_close(moments[index]["exp_avg_sq"], 0.02 * gradient**2)
            assert moments[index]["step"] == 1


def test_muon_refuses_sharded_matrices():
    with pytest.raises(ValidationError, match="needs whole ones"):
        TrainingOptions(optimizer="muon", sharded=True)
