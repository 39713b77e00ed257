"""A real GPU gives the losses and hypotheses of the CPU; `make gpu` runs these, and without a GPU they are skipped."""

import math
import subprocess
import sys

import pytest
import torch

from tests.conftest import SETTINGS
from tests.devices.shrunk import CASES, build_case
from tests.devices.test_models import outcome
from tests.training.test_captured import updates
from tests.training.test_packed import SHAPE, padded_batch
from translucid.attention.attend import attend_fused
from translucid.captions.self_critical import SelfCritical
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.data.packing import pack
from translucid.kernels.attention import PackedMask
from translucid.kernels.rounding import mixed_precision
from translucid.runs.run_folder import RunFolder
from translucid.training.hardware.ddp import Workers
from translucid.training.weights import Weights

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
RANDOM = "classifier", "lm-lstm", "regularized lstm", "caption-hard"
"""Models with random dropout or attention; a GPU draws other random numbers than a CPU."""
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.mark.parametrize("name", CASES)
def test_updates_and_searches(name):
    losses, hypotheses, _ = outcome(name, GPU)
    assert all(map(math.isfinite, losses))
    if name not in RANDOM:
        expected_losses, expected_hypotheses, _ = outcome(name, CPU)
        assert losses == pytest.approx(expected_losses, rel=1e-3)
        assert hypotheses == expected_hypotheses


@pytest.mark.parametrize("name", CASES)
def test_an_update_in_bfloat16(name):
    case = build_case(name)
    weights = Weights(case.model, GPU, Workers())
    with mixed_precision(GPU, enabled=True):
        rounded = weights.loss(weights.rows(case.batch), 0.1)
    rounded.smoothed.backward()
    exact = weights.loss(weights.rows(case.batch), 0.1)
    if name not in RANDOM:
        assert float(rounded.smoothed.detach()) == pytest.approx(float(exact.smoothed.detach()), rel=0.03)
    assert all(torch.isfinite(p.grad).all() for p in weights.parameters if p.grad is not None)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_of_packed_batches(causal):
    """The kernel for sentences of varying length gives the contexts and the gradients of the equation."""
    packing = pack(padded_batch(), SHAPE).packing
    queries, keys = packing.target, packing.target if causal else packing.source
    tensors = [torch.randn(1, 2, len(side.position), 32).bfloat16() for side in (queries, keys, keys)]
    seeds = torch.randn_like(tensors[0])
    outcomes = []
    for device, dtype in ((CPU, torch.float32), (GPU, torch.bfloat16)):
        inputs = [x.to(device, dtype).requires_grad_() for x in tensors]
        mask = PackedMask(queries.to(device), keys.to(device))
        context = attend_fused(*inputs, mask, causal=causal)
        gradients = torch.autograd.grad(context, inputs, seeds.to(context))
        outcomes.append([x.detach().cpu().float() for x in (context, *gradients)])
    for expected, actual in zip(*outcomes, strict=True):
        torch.testing.assert_close(actual, expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("options", ["pre-norm, sinusoids, tied", "ssru"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_captured_update_is_that_of_the_trainer(options, optimizer):
    """In float64, where a graph computes the same numbers, also after a batch that does not fit."""
    expected, expected_figures, _ = updates(GPU, options, optimizer, False)
    weights, figures, _ = updates(GPU, options, optimizer, True)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(figures, expected_figures, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["caption-soft", "captioner that reads first", "captioner without attention", "tiny"])
def test_self_critical_updates(name):
    case = build_case(name)
    weights = Weights(case.model, GPU, Workers())
    critical = SelfCritical(weights.model, lambda samples, batch: [float(len(ids)) for ids in samples])
    critical(weights.rows(case.batch), 0.0).smoothed.backward()
    assert all(torch.isfinite(p.grad).all() for p in weights.parameters if p.grad is not None)


@pytest.mark.parametrize("preset", ["tiny", "rnn-bahdanau", "lm-lstm"])
def test_commands(preset, tmp_path, capsys):
    pairs = list(generate(200, split="train", max_words=8))
    for name, part in (("train", pairs[:180]), ("valid", pairs[180:])):
        lines = [f"{pair.source}\t{pair.target}\n" for pair in part]
        if preset == "lm-lstm":
            lines = [f"{pair.source}\n" for pair in part]
        (tmp_path / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    files = ["--train", str(tmp_path / "train.tsv"), "--valid", str(tmp_path / "valid.tsv")]
    out = ["--out", str(tmp_path / "run")]
    kinds = {"tiny": ("model", "data", "training"), "rnn-bahdanau": ("data", "training"), "lm-lstm": ("training",)}
    small = [setting for setting in SETTINGS if setting.startswith(kinds[preset])]
    assert run(["train", "--model", preset, *files, *out, "--device", "cuda", "--set", *small]) == 0
    overrides = ["--set", "training.max_steps=40", "training.max_epochs=1000"]
    assert run(["train", "--resume", *files, *out, "--device", "cuda", *overrides]) == 0
    assert [row for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "training"][-1]["step"] >= 38
    assert run(["evaluate", str(tmp_path / "run"), "--test", str(tmp_path / "valid.tsv"), "--device", "cuda"]) == 0
    if preset != "lm-lstm":
        capsys.readouterr()
        for device in ("cuda", "cpu"):
            command = ["translate", str(tmp_path / "run"), "I like the beach.", "--device", device]
            assert run([*command, "--engine", "torch"]) == 0
        on_gpu, on_cpu = capsys.readouterr().out.splitlines()
        assert on_gpu == on_cpu
        assert (
            run(["look", str(tmp_path / "run"), "I like it.", "--save", str(tmp_path / "x.html"), "--device", "cuda"])
            == 0
        )


FEATURES = {
    "guided alignment": ["training.guided_alignment=0.1"],
    "quantized weights": ["training.quantized_weights=true"],
    "compiled": ["training.compile=true"],
    "packed": ["training.packed=true"],
    "packed and compiled": ["training.packed=true", "training.compile=true"],
    "captured": ["training.packed=true", "training.captured=true"],
    "captured and compiled": ["training.packed=true", "training.captured=true", "training.compile=true"],
    "document context": ["data.context=2"],
    "several directions": ["data.both_directions=true"],
    "one teacher": ["training.distillation_weight=0.5", "training.teachers=[{teacher}]"],
    "soft targets": ["training.distillation_weight=0.5", "training.teachers=[{teacher}]", "training.soft_targets=4"],
}
"""Settings that enable each training feature."""


@pytest.mark.parametrize("feature", FEATURES)
def test_features_of_training(feature, corpus, small_run, tmp_path, capsys):
    settings = [setting.format(teacher=small_run) for setting in FEATURES[feature]]
    languages = ":en-es" if feature == "several directions" else ""
    files = ["--train", f"{corpus / 'train.tsv'}{languages}", "--valid", f"{corpus / 'test.tsv'}{languages}"]
    small = ["--set", *SETTINGS, "data.subword_dropout=0", "training.max_steps=20", *settings]
    command = ["train", *files, "--out", str(tmp_path / "run"), "--device", "cuda", "--no-tune", *small]
    assert run(command) == 0
    rows = RunFolder(tmp_path / "run").metrics()
    assert all(math.isfinite(row["loss"]) for row in rows)
    capsys.readouterr()
    of_target = ["--target-language", "es"] if languages else []
    for device in ("cuda", "cpu"):
        text = ["I like the beach.", "--device", device, "--engine", "torch", *of_target]
        assert run(["translate", str(tmp_path / "run"), *text]) == 0
    on_gpu, on_cpu = capsys.readouterr().out.splitlines()
    assert on_gpu == on_cpu


def losses_of_processes(count, corpus, out, *settings):
    """Train or resume in `count` processes with one GPU each; return the losses of all updates."""
    torchrun = "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count), "-m", "translucid"
    files = "--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", out
    options = ["--resume"] if out.exists() else ["--no-tune"]
    fixed = "model.dropout=0", "data.subword_dropout=0", "training.precision=float32", "training.log_every=1"
    command = [*torchrun, "train", *files, "--device", "cuda", *options, "--set", *SETTINGS, *fixed, *settings]
    completed = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=240)
    assert completed.returncode == 0, completed.stderr
    return [row["loss"] for row in RunFolder(out).metrics() if row["kind"] == "training"]


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is one CUDA device")
@pytest.mark.parametrize("sharded", ["false", "true"])
def test_two_gpus_learn_what_one_learns_and_one_resumes(sharded, corpus, tmp_path):
    sharding, first_steps, all_steps = f"training.sharded={sharded}", "training.max_steps=8", "training.max_steps=12"
    expected = losses_of_processes(1, corpus, tmp_path / "alone", all_steps)
    losses_of_processes(2, corpus, tmp_path / "two", sharding, first_steps)
    losses = losses_of_processes(1, corpus, tmp_path / "two", sharding, all_steps)
    assert len(losses) == 12
    assert losses == pytest.approx(expected, rel=1e-3)
