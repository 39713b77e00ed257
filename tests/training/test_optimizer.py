"""Which optimiser moves which weights, and what is remembered of them."""

import pytest
import torch
from pydantic import ValidationError

from translucid.models.build import build_model
from translucid.models.options import RecurrentOptions, TransformerOptions
from translucid.training.muon import COEFFICIENTS, Muon, orthogonal
from translucid.training.optimizer import Optimizer, inner_matrices
from translucid.training.options import TrainingOptions

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
    muon, adam = optimizer_of(model).parts
    moved = [parameter for part in (muon, adam) for group in part.param_groups for parameter in group["params"]]
    assert isinstance(muon, Muon)
    assert len(muon.param_groups[0]["params"]) == len(inner)
    assert sorted(map(id, moved)) == sorted(map(id, model.parameters()))
    assert inner_matrices(build_model(RecurrentOptions(width=8), 30, 30))


def test_a_matrix_moves_in_a_direction_made_orthogonal():
    """All singular values of its first step are about 0.2 sqrt(the longer side), whatever those of the gradient."""
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
    """Which makes all its directions orthogonal in bfloat16, each matrix by itself."""
    shapes = [(8, 8), (16, 8), (8, 16), (8, 8), (24, 8)]
    drawn = torch.Generator().manual_seed(1)
    ours, theirs = ([torch.nn.Parameter(torch.zeros(shape)) for shape in [*shapes, (5, 3)]] for _ in range(2))
    muon = Muon(ours, lr=0.1, bfloat16=bfloat16)
    other = torch.optim.Muon(theirs, lr=0.1, weight_decay=0, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        for mine, its in zip(ours[:-1], theirs[:-1], strict=True):  # the last one has no gradient
            mine.grad = torch.randn(mine.shape, generator=drawn)
            its.grad = mine.grad.clone()
        muon.step()
        other.step()
    for mine, its in zip(ours[:-1], theirs[:-1], strict=True):
        assert (mine - its).norm() < 0.02 * its.norm()
        assert its.norm() > 0
    assert not ours[-1].any()


def test_directions_made_orthogonal_are_those_of_the_polynomial():
    """Of each singular value, in float64."""
    x = torch.randn(3, 5, 9, dtype=torch.float64)
    u, sizes, v = torch.linalg.svd(x / torch.linalg.matrix_norm(x, keepdim=True), full_matrices=False)
    a, b, c = COEFFICIENTS
    for _ in range(5):
        sizes = a * sizes + b * sizes**3 + c * sizes**5
    torch.testing.assert_close(orthogonal(x), u @ torch.diag_embed(sizes) @ v)


def test_singular_values_come_near_1():
    sizes = torch.logspace(-2.2, 0, 40, dtype=torch.float64)
    assert (sizes / sizes.norm()).min() > 0.002
    found = orthogonal(torch.diag_embed(sizes)[None])[0].diagonal()
    assert found.min() > 0.68
    assert found.max() < 1.21


@pytest.mark.parametrize("name", ["adam", "nadam", "muon"])
def test_moments_restored_go_on_the_same(name):
    def steps(optimizer, first, count):
        for i in range(first, first + count):
            drawn = torch.Generator().manual_seed(i)
            for parameter in optimizer.parameters:
                parameter.grad = torch.randn(parameter.shape, generator=drawn)
            optimizer.step(0.01)

    whole, parts = model_of(), model_of()
    parts.load_state_dict(whole.state_dict())
    steps(optimizer_of(whole, name), 0, 6)
    optimizer = optimizer_of(parts, name)
    steps(optimizer, 0, 3)
    moments = {
        place: {key: tensor.clone() for key, tensor in state.items()} for place, state in optimizer.moments().items()
    }
    assert set(moments) == set(range(len(optimizer.parameters)))
    resumed = optimizer_of(parts, name)
    resumed.restore(moments)
    steps(resumed, 3, 3)
    assert all(torch.equal(one, two) for one, two in zip(whole.parameters(), parts.parameters(), strict=True))


def test_parts_of_matrices_are_not_for_muon():
    with pytest.raises(ValidationError, match="wants whole ones"):
        TrainingOptions(optimizer="muon", sharded=True)
