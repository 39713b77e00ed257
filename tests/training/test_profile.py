"""`train --profile`: the parts of updates, their matrix products, and that profiling changes nothing."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tests.devices.emulated import Emulation
from tests.devices.shrunk import build_case
from translucid.ground.console import Console
from translucid.runs.configuration import resolve
from translucid.training import profile
from translucid.training.data_loader import SharedBatch
from translucid.training.hardware.precision import Precision
from translucid.training.profile import UpdateProfile, part
from translucid.training.records.record import Display
from translucid.training.trainer import Trainer


@pytest.fixture(autouse=True)
def few_updates(monkeypatch):
    monkeypatch.setattr(profile, "WARM_UP", 2)
    monkeypatch.setattr(profile, "UPDATES", 3)
    monkeypatch.setattr(profile, "product_limit", lambda *args, **kwargs: 1e9)


def weights_and_lines(device, *, profiles, before=lambda update: None):
    """Make 6 updates in `device`; return the weights and the lines of their profile."""
    torch.manual_seed(1)
    case, lines, unused = build_case("tiny", layers=1), [], SimpleNamespace()
    options = resolve(assignments=["training.label_smoothing=0.1"]).training
    trainer = Trainer(case.model, unused, unused, unused, options, device, Precision(False, ""))
    if profiles:
        trainer.profile = UpdateProfile(device, bfloat16=False, counts=True, show=lines.append)
    for update in range(6):
        before(update)
        with trainer.profile.update() if profiles else nullcontext():
            with part("data"):
                batches = [SharedBatch(case.batch.prepared(), 30)]
            trainer._update(batches, 0.01, Display(Console(quiet=True)))
        trainer.progress.step += 1
    return {name: tensor.cpu() for name, tensor in trainer.weights.tensors().items()}, lines


def test_a_profile_shows_all_parts_and_changes_no_weight():
    expected, none = weights_and_lines(torch.device("cpu"), profiles=False)
    weights, (title, head, *rows, products) = weights_and_lines(torch.device("cpu"), profiles=True)
    assert not none
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert title.startswith("3 updates of 30 target tokens, ")
    assert head.split() == ["part", "host", "ms", "share"]
    parts, milliseconds, shares = zip(*map(str.split, rows), strict=True)
    assert parts == ("data", "forward", "loss", "backward", "optimizer", "other")
    assert sum(int(share.rstrip("%")) for share in shares) == pytest.approx(100, abs=3)
    tokens_per_second = float(title.split()[-2].replace(",", ""))
    assert tokens_per_second == pytest.approx(30_000 / sum(map(float, milliseconds)), rel=0.2)
    assert "that a large product in float32 reaches here" in products


def test_on_a_gpu_each_part_has_two_clocks_and_nothing_waits():
    with Emulation("cuda") as emulation:

        def before(update):
            # Before the first update the weights move to the device, and after the last profiled one events are read.
            synchronizations = emulation.synchronizations.total()
            assert update == 0 or synchronizations == (update == 5)
            emulation.forget()

        _, (_, head, *rows, _) = weights_and_lines(emulation.device, profiles=True, before=before)
    assert head.split() == ["part", "GPU", "ms", "host", "ms", "share"]
    for row in rows:
        _, gpu, host, _ = row.split()
        assert float(gpu) == pytest.approx(float(host), abs=2)


def test_products_are_counted():
    """A layer of 3 inputs and 5 outputs, for 2 rows: 2 * 3 * 5 multiplications and additions for each of 3 products."""
    layer, x = nn.Linear(3, 5), torch.randn(2, 3, requires_grad=True)
    with profile.CountedProducts() as products:
        layer(x).sum().backward()
        nn.functional.scaled_dot_product_attention(*torch.randn(3, 1, 1, 4, 8))
    assert products.operations == 3 * 60 + 2 * 2 * 4 * 4 * 8
    assert products.complete
    with profile.CountedProducts() as products, torch.no_grad():
        nn.LSTM(3, 5)(x)
    assert not products.complete
