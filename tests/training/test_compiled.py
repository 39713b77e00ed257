"""Compiled forward passes of Transformers: one graph, with the results of the uncompiled model."""

import io
import json
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.backends.registry import lookup_backend

from tests.devices.shrunk import VOCABULARY, build_case
from tests.training.test_packed import SHAPE, figures, padded_batch
from translucid.data.batching import Batch
from translucid.data.packing import pack
from translucid.ground.errors import UserError
from translucid.kernels import reference_mode
from translucid.runs.configuration import resolve
from translucid.runs.tensor_file import load_tensors
from translucid.runs.training_options import TrainingOptions
from translucid.training import compile_choice
from translucid.training.compile_choice import choose_compilation
from translucid.training.hardware.ddp import Workers
from translucid.training.objective import batch_loss
from translucid.training.weights import CompiledLoss, Weights, padded_length


def counting(graphs, run=lambda graph, inputs: graph.forward):
    """Return a backend that records its graphs and runs them, by default unchanged."""

    def backend(graph, inputs):
        graphs.append(graph)
        return run(graph, inputs)

    return backend


def loss_and_gradients(model, loss_of, batch):
    model.zero_grad()
    loss = loss_of(batch, 0.1).smoothed
    loss.backward()
    return loss.item(), [parameter.grad.clone() for parameter in model.parameters()]


def test_one_graph_for_all_batches_of_a_length_gives_the_loss_and_the_gradients_of_the_model_as_it_is():
    """With SSRU; the packed batches below are those of a decoder with attention."""
    case, graphs = build_case("ssru", layers=1), []
    model, batch = case.model.train(), case.batch
    loss_of = CompiledLoss(model, counting(graphs, lookup_backend("aot_eager")))
    loss, gradients = loss_and_gradients(model, loss_of, batch)
    expected, expected_gradients = loss_and_gradients(model, partial(batch_loss, model), batch)
    assert loss == pytest.approx(expected, rel=1e-5)
    for actual, reference in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(actual, reference, rtol=1e-4, atol=1e-5)
    loss_of(Batch(batch.source[:4, :5], batch.targets_in[:4, :6], batch.labels[:4, :6]))
    assert len(graphs) == 1


def test_all_packed_batches_are_one_graph_with_their_loss(monkeypatch):
    """In float64: the figures and gradients of the padded batch, with a loss in four chunks."""
    model, graphs = build_case("post-norm, learned positions", layers=1).model.double().train(), []
    monkeypatch.setattr("translucid.kernels.loss.LOGITS_ON_GPU", 13 * VOCABULARY)
    loss_of = CompiledLoss(model, counting(graphs, lookup_backend("aot_eager")))
    for lengths in (((4, 6), (9, 2), (1, 11)), ((3, 3), (2, 8), (7, 4), (5, 5))):
        batch = padded_batch(lengths)
        expected = figures(model, batch_loss, batch)
        actual = figures(model, lambda _, *args: loss_of(*args), pack(batch, SHAPE))
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-9)
    assert len(graphs) == 1


def test_a_captioner_is_one_graph():
    case, graphs = build_case("caption-transformer", layers=1), []
    expected = batch_loss(case.model.train(), case.batch, 0.1)
    loss = CompiledLoss(case.model, counting(graphs))(case.batch, 0.1)
    assert loss.smoothed.item() == pytest.approx(expected.smoothed.item(), rel=1e-5)
    assert len(graphs) == 1


@pytest.mark.parametrize("preset", ["attention-only", "lm-transformer"])
def test_other_models_of_attention_are_one_graph_as_well(preset):
    case, graphs = build_case(preset, layers=1), []

    def features(source, targets_in):
        return case.model.features(case.model.encode(source), targets_in)

    torch.compile(features, backend=counting(graphs), fullgraph=True)(case.batch.source, case.batch.targets_in)
    assert len(graphs) == 1


def test_no_graph_runs_in_reference_mode():
    case, graphs = build_case("tiny"), []
    with reference_mode():
        CompiledLoss(case.model, counting(graphs))(case.batch)
    assert not graphs


def test_there_are_few_padded_lengths():
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
    settings = "training.max_steps=2", "training.accumulate=1", "training.precision=float32", "model.dropout=0"
    plain = train(tmp_path / "plain", *settings)
    assert not graphs
    compiled = train(tmp_path / "compiled", *settings, "training.compile=true")
    assert graphs
    assert compiled.best_loss == pytest.approx(plain.best_loss, rel=1e-5)


def test_auto_is_exactly_the_training_with_its_choice(train, tmp_path, monkeypatch):
    """It measures before the first update, and a resumed training keeps the choice."""
    monkeypatch.setattr("translucid.training.weights.CompiledLoss", partial(CompiledLoss, backend=counting([])))
    monkeypatch.setattr(compile_choice, "WORTHWHILE", 0)
    monkeypatch.setattr("translucid.training.trainer.BATCHES", 1)
    settings = "training.accumulate=1", "training.validate_every=9", "data.subword_dropout=0"
    train(tmp_path / "set", *settings, "training.max_steps=2", "training.compile=true")
    run, output = tmp_path / "auto", io.StringIO()
    train(run, *settings, "training.max_steps=1", "training.compile=auto", output=output)
    assert "training.compile=auto chooses true (compiled updates are " in output.getvalue()
    monkeypatch.setattr(compile_choice, "_gain", None)  # nothing is measured again
    train(run, *settings, "training.max_steps=2", "training.compile=auto", resume=True)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    choices = [(row["setting"], row["value"]) for row in rows if row["kind"] == "choice"]
    assert choices == [("training.compile", True)]
    tensors, expected = (load_tensors(folder / "state/checkpoint.safetensors")[0] for folder in (run, tmp_path / "set"))
    for name in expected:
        assert torch.equal(tensors[name], expected[name]), name


def test_without_a_compiler_auto_does_not_compile():
    case = build_case("tiny", layers=1)

    def broken(batch, smoothing):
        raise UserError("PyTorch cannot compile the model here (no compiler)", fix="Install one.")

    weights, loss = (
        Weights(case.model, torch.device("cpu"), Workers()),
        SimpleNamespace(model=case.model, compiled=broken),
    )
    choice = choose_compilation(weights, loss, [case.batch], TrainingOptions(), bfloat16=False)
    assert not choice.compiled
    assert choice.reason.startswith("PyTorch cannot compile the model here")
    assert all(parameter.grad is None for parameter in weights.parameters)


def test_the_gain_compares_the_fastest_tries(monkeypatch):
    """1 + 2 seconds without, and 0.5 + 1 with compiled kernels; the first try of each compiles."""
    times = {"plain": iter([9, 9, 3, 1, 2, 2, 4, 3]), "compiled": iter([9, 9, 0.5, 2, 2, 1, 1, 1])}
    assert compile_choice._gain([*times], ["a", "b"], lambda loss_of, batch: next(times[loss_of])) == 2


@pytest.mark.parametrize(
    ("preset", "setting", "reason"),
    [
        ("rnn-bahdanau", "training.seed=2", "is for Transformers"),
        ("lm-transformer", "training.seed=2", "is for Transformers"),
        ("tiny", "training.sharded=true", "do not go together"),
    ],
)
def test_models_that_are_not_compiled(preset, setting, reason):
    with pytest.raises(UserError, match=reason):
        resolve(preset=preset, assignments=["training.compile=true", setting])
    options = resolve(preset=preset, assignments=["training.compile=auto", setting])
    model = SimpleNamespace(options=options.model)
    assert compile_choice.reason_against_compiling(options.training, model)


def test_a_missing_compiler_is_an_error_that_names_it():
    def broken(graph, inputs):
        raise RuntimeError("no compiler")

    model = SimpleNamespace(encode=lambda source: source, features=torch.add, pad=0, max_length=None)
    with pytest.raises(UserError, match=r"cannot compile.*training.compile=false"):
        CompiledLoss(model, broken)(build_case("tiny").batch)
