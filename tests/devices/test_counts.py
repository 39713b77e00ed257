"""Synchronizations and kernels of updates and searches on an emulated GPU, as in the table of the docs."""

from pathlib import Path

import pytest
import torch

from tests.devices.emulated import Emulation
from tests.devices.shrunk import SENTENCES, SHORT, build_case
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.kernels.upload import Download
from translucid.training.hardware.ddp import Workers
from translucid.training.objective import sums
from translucid.training.optimizer import Optimizer
from translucid.training.weights import Weights

BENCHMARKS = Path(__file__).resolve().parents[2] / "docs" / "reports" / "gpu.md"


def table():
    """Return the current synchronizations and kernels by the first column of the table."""
    rows = {}
    for line in BENCHMARKS.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| *") and cells[0].endswith((", an update", ", a step", ", eight steps")):
            rows[cells[0]] = tuple(int(cell.replace(",", "")) for cell in cells[1:])
    return rows


def update(weights, optimizer, batch):
    """Make an update with all device operations of `Trainer._update`."""
    loss = weights.loss(weights.rows(batch), 0.1)
    (loss.smoothed / 30).backward()
    figures = sums([loss], weights.device, 0.0, 0.0)
    norm = weights.clip_grad_norm(1.0)
    finite = figures[0].isfinite() & norm.isfinite()
    Download(torch.cat([figures, norm[None].to(figures)]))
    optimizer.step(0.001, finite)
    weights.update_ema(0.5)


@pytest.mark.parametrize("preset", ["tiny", "rnn-bahdanau", "caption-hard", "lm-lstm"])
def test_of_an_update(preset):
    case = build_case(preset, layers=2)
    options = case.configuration.training.model_copy(update={"layer_decay": 1.0, "unfreeze": False})
    with Emulation("cuda") as emulation:
        weights = Weights(case.model, emulation.device, Workers())
        optimizer = Optimizer(options, case.model, weights.parameters, bfloat16=False)
        update(weights, optimizer, case.batch)  # creates the moments
        emulation.forget()
        update(weights, optimizer, case.batch)
        waits, kernels = emulation.synchronizations.total(), emulation.kernels.total()
    assert table()[f"*{preset}*, an update"] == (waits, pytest.approx(kernels, rel=0.02))


@pytest.mark.parametrize(("name", "beam"), [("greedy search", 1), ("beam 4", 4)])
def test_of_a_search(name, beam, steps):
    """Counts are per step; the last synchronization, which copies the hypotheses, is left out."""
    options = DecodingOptions(beam=beam, **SHORT)
    with Emulation("cuda") as emulation:
        engine = TorchEngine(build_case("tiny", layers=2).model.to(emulation.device).eval())
        emulation.forget()
        engine.decode(SearchRequest(SENTENCES, options))
        waits, kernels = emulation.synchronizations.total(), emulation.kernels.total()
    assert table()[f"*tiny*, {name}, a step"] == (
        (waits - 1) / len(steps),
        pytest.approx(kernels / len(steps), rel=0.02),
    )


def test_of_a_captured_search():
    """Eight steps are the difference between searches of 16 and of 24 steps, once their steps are captured."""
    counts = []
    with Emulation("cuda") as emulation:
        engine = TorchEngine(build_case("tiny", layers=2).model.to(emulation.device).eval())
        engine = engine.fast("float32", captured=True)
        for steps in (16, 24):
            length = {"min_length": steps - 1, "max_length_extra": steps - 1}
            request = SearchRequest(SENTENCES, DecodingOptions(beam=4, max_length_ratio=0, **length))
            for _ in range(2):
                emulation.forget()
                engine.decode(request)
            counts.append((emulation.synchronizations.total(), emulation.kernels.total()))
            assert emulation.kernels["graph"] == steps
    shorter, longer = counts
    waits, kernels = longer[0] - shorter[0], longer[1] - shorter[1]
    assert table()["*tiny*, captured beam 4, eight steps"] == (waits, kernels) and longer[0] == 3
