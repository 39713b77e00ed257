"""Captured updates, on an emulated GPU that repeats the operations of a CUDA graph in the same memory."""

from types import SimpleNamespace

import pytest
import torch

from tests.devices.emulated import Emulation
from tests.devices.test_counts import table
from tests.training.test_packed import OPTIONS, SHAPE, built, padded_batch
from translucid.data.packing import pack
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.training.captured import reason_against
from translucid.training.data_loader import SharedBatch
from translucid.training.hardware.ddp import Workers
from translucid.training.hardware.precision import Precision
from translucid.training.records.record import Display
from translucid.training.trainer import Trainer

LENGTHS = [((3, 3), (2, 8), (7, 4)), ((4, 6), (9, 2), (1, 11), (5, 5)), ((10, 11),), ((2, 2), (8, 3))]
TOO_LONG = [((13, 5), (4, 4))]
LAUNCHES = 60
"""The largest number of launches of a captured update, its graph included, whatever the number of layers."""


def updates(device, options, optimizer, captured, before=lambda: None, launches=lambda: 0):
    """Make 9 updates in float64; return the weights and moments, and the figures and launches of each update.

    `before` is called before an update, and `launches` after it.
    """
    settings = ["training.packed=true", f"training.captured={captured}", f"training.optimizer={optimizer}"]
    training = resolve(assignments=[*settings, "training.label_smoothing=0.1"]).training
    unused, display, counts = SimpleNamespace(), Display(Console(quiet=True)), []
    model = built(*OPTIONS[options])
    trainer = Trainer(model, unused, unused, unused, training, device, Precision(False, ""))
    # A graph is captured in the fourth update, and the batch that does not fit comes after it.
    for lengths in [*LENGTHS, *LENGTHS[::-1][:2], *TOO_LONG, *LENGTHS[:2]]:
        rows = pack(padded_batch(lengths), SHAPE)._replace(links=None, soft_targets=None).prepared()
        before()
        tokens = sum(target for _, target in lengths)
        trainer._update([SharedBatch(rows, tokens)], 0.01 / (1 + len(counts)), display)
        trainer.progress.step += 1
        counts.append(launches())
    trainer._read_figures(display)
    weights = {name: tensor.cpu() for name, tensor in trainer.weights.tensors().items()}
    moments = trainer.optimizer.moments().items()
    weights |= {f"{i}.{name}": tensor.cpu() for i, state in moments for name, tensor in state.items()}
    return weights, torch.tensor([figures[:3] for figures in trainer.recent.window]), counts


def emulated_updates(*case):
    with Emulation("cuda") as emulation:

        def launches():
            assert not emulation.synchronizations
            return emulation.kernels.total()

        return updates(emulation.device, *case, emulation.forget, launches)


@pytest.mark.parametrize(("options", "optimizer"), [("pre-norm, sinusoids, tied", "muon"), ("ssru", "adam")])
def test_a_captured_update_is_that_of_the_trainer(options, optimizer):
    expected, expected_figures, separate = emulated_updates(options, optimizer, False)
    weights, figures, launches = emulated_updates(options, optimizer, True)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(figures, expected_figures)
    assert min(separate) > 3 * LAUNCHES
    assert [count <= LAUNCHES for count in launches] == [False] * 4 + [True] * 2 + [False] + [True] * 2
    assert table()["*tiny*, captured, an update"] == (0, launches[-1])


@pytest.mark.parametrize(
    ("settings", "device", "processes", "reason"),
    [
        ([], "cuda", 1, ""),
        ([], "cpu", 1, "the device cpu"),
        ([], "cuda", 2, "several processes"),
        (["training.accumulate=2"], "cuda", 1, "training.accumulate"),
        (["training.optimizer=nadam"], "cuda", 1, "training.optimizer=nadam"),
        (["training.guided_alignment=0.1"], "cuda", 1, "training.guided_alignment"),
    ],
)
def test_what_keeps_updates_from_being_captured_is_named(settings, device, processes, reason):
    options = resolve(assignments=["training.packed=true", "training.captured=true", *settings]).training
    assert reason_against(options, torch.device(device), Workers(0, processes)) == reason


def test_padded_batches_are_not_captured():
    with pytest.raises(UserError, match=r"set training\.packed=true"):
        resolve(assignments=["training.captured=true"])
