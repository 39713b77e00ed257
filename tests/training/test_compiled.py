"""The forward pass of a Transformer, compiled: one graph, and the numbers of the model as it is."""

from functools import partial

import pytest
import torch

from tests.devices.shrunk import build_case
from translucid.data.batching import Batch
from translucid.ground.errors import UserError
from translucid.kernels import reference_mode
from translucid.runs.configuration import resolve
from translucid.training.compiled import CompiledLoss, padded_length
from translucid.training.objective import batch_loss


def counting(graphs):
    """A backend that runs the graph as it is."""

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    return backend


@pytest.mark.parametrize("preset", ["tiny", "caption-transformer"])
def test_the_forward_pass_is_one_graph_for_all_batches_of_a_length(preset):
    case, graphs = build_case(preset), []
    loss_of = CompiledLoss(case.model.train(), counting(graphs))
    batch = case.batch
    expected = batch_loss(case.model, batch, 0.1)
    found = loss_of(batch, 0.1)
    assert float(found.smoothed) == pytest.approx(float(expected.smoothed), rel=1e-5)
    if preset != "caption-transformer":  # whose targets are several for each image
        loss_of(Batch(batch.source[:4, :5], batch.targets_in[:4, :6], batch.labels[:4, :6]))
    assert len(graphs) == 1


@pytest.mark.parametrize("preset", ["attention-only", "lm-transformer"])
def test_other_models_of_attention_are_one_graph_as_well(preset):
    case, graphs = build_case(preset), []

    def features(source, targets_in):
        return case.model.features(case.model.encode(source), targets_in)

    torch.compile(features, backend=counting(graphs), fullgraph=True)(case.batch.source, case.batch.targets_in)
    assert len(graphs) == 1


def test_gradients_are_those_of_the_model_as_it_is():
    case = build_case("tiny")
    gradients = []
    for loss_of in (partial(batch_loss, case.model), CompiledLoss(case.model.train(), "aot_eager")):
        case.model.zero_grad()
        loss_of(case.batch, 0.1).smoothed.backward()
        gradients.append([parameter.grad.clone() for parameter in case.model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_no_graph_runs_in_reference_mode():
    case, graphs = build_case("tiny"), []
    with reference_mode():
        CompiledLoss(case.model, counting(graphs))(case.batch)
    assert not graphs


def test_lengths_are_few():
    assert [padded_length(n) for n in (1, 8, 9, 24, 25, 33, 48, 49, 65, 97, 250)] == [
        *(8, 8, 16, 24, 32, 48, 48, 64, 96, 128, 256),
    ]
    assert len({padded_length(n) for n in range(1, 513)}) == 12


def test_learned_positions_limit_the_padding():
    case, graphs = build_case("post-norm, learned positions"), []
    case.model.max_length = 7
    source, _ = CompiledLoss(case.model, counting(graphs))._padded(case.batch)
    assert source.size(1) == 7


def test_a_training_learns_what_it_learns_without_compiling(train, tmp_path, monkeypatch):
    graphs = []
    monkeypatch.setattr("translucid.training.weights.CompiledLoss", partial(CompiledLoss, backend=counting(graphs)))
    settings = "training.max_steps=3", "training.precision=float32", "model.dropout=0"
    plain = train(tmp_path / "plain", *settings)
    assert not graphs
    compiled = train(tmp_path / "compiled", *settings, "training.compile=true")
    assert graphs
    assert compiled.best_loss == pytest.approx(plain.best_loss, rel=1e-5)


@pytest.mark.parametrize(
    ("preset", "setting", "reason"),
    [
        ("rnn-bahdanau", "training.seed=2", "is for Transformers"),
        ("lm-transformer", "training.seed=2", "is for Transformers"),
        ("tiny", "training.sharded=true", "do not go together"),
    ],
)
def test_what_is_not_compiled(preset, setting, reason):
    with pytest.raises(UserError, match=reason):
        resolve(preset=preset, assignments=["training.compile=true", setting])


def test_a_missing_compiler_is_an_error_that_names_it():
    def broken(graph, inputs):
        raise RuntimeError("no compiler")

    case = build_case("tiny")
    with pytest.raises(UserError, match=r"cannot compile.*training.compile=false"):
        CompiledLoss(case.model, broken)(case.batch)
