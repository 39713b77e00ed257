"""Whole trainings on an emulated GPU."""

import json
import os
import signal

import pytest
import torch

from tests.devices.emulated import Emulation
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.kernels.devices import is_memory_full, tune_pytorch
from translucid.kernels.rounding import mixed_precision
from translucid.kernels.upload import Download
from translucid.runs.run_folder import RunFolder
from translucid.training.trainer import Trainer

SMALL = "training.max_steps=4", "training.validate_every=4", "training.precision=float32"


def watch_updates(monkeypatch, emulation):
    """Return a list that records the synchronizations of each update."""
    counts, update = [], Trainer._update

    def counting_update(self, *rest):
        emulation.forget()
        update(self, *rest)
        counts.append(dict(emulation.synchronizations))

    monkeypatch.setattr(Trainer, "_update", counting_update)
    return counts


@pytest.mark.parametrize(
    "setting",
    ["training.optimizer=adam", "training.optimizer=muon", "training.optimizer=nadam", "training.sharded=true"],
)
def test_an_update_of_the_trainer_does_not_wait_for_the_gpu(train, tmp_path, monkeypatch, setting):
    with Emulation("cuda") as emulation:
        counts = watch_updates(monkeypatch, emulation)
        progress = train(tmp_path / "run", *SMALL, setting, device="cuda")
    first, *remaining = counts
    assert len(first) == setting.endswith("nadam")  # the first update has no moments to restore
    assert remaining == [{}] * 3
    assert progress.step == 4 and progress.skipped == 0


def test_the_host_reads_the_figures_of_an_update_when_the_next_one_is_queued(train, tmp_path, monkeypatch):
    order, read = [], Download.read

    class RecordedDownload(Download):
        def __init__(self, tensor):
            super().__init__(tensor)
            self.number = sum(kind == "queued" for kind, _ in order)
            order.append(("queued", self.number))

        def read(self):
            order.append(("read", self.number))
            return read(self)

    monkeypatch.setattr("translucid.training.trainer.Download", RecordedDownload)
    with Emulation("cuda"):
        train(tmp_path / "run", "training.max_steps=3", "training.validate_every=3", device="cuda")
    assert order == [("queued", 0), ("queued", 1), ("read", 0), ("queued", 2), ("read", 1), ("read", 2)]


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_an_update_that_is_not_finite_is_skipped_on_the_gpu(train, tmp_path, monkeypatch, optimizer):
    update, unmoved = Trainer._update, []

    def failing_update(self, batches, *rest):
        before = [parameter.detach().clone() for parameter in self.weights.parameters]
        loss_of, fails = self.weights.loss, self.progress.step == 2

        def infinite_loss(rows, smoothing):
            loss = loss_of(rows, smoothing)
            return loss._replace(smoothed=loss.smoothed * torch.inf, cross_entropy=loss.cross_entropy * torch.inf)

        self.weights.loss = infinite_loss if fails else loss_of
        update(self, batches, *rest)
        self.weights.loss = loss_of
        pairs = zip(before, self.weights.parameters, strict=True)
        unmoved.append(all(bool((old == new).all()) for old, new in pairs))

    monkeypatch.setattr(Trainer, "_update", failing_update)
    with Emulation("cuda"):
        progress = train(tmp_path / "run", *SMALL, f"training.optimizer={optimizer}", device="cuda")
    assert unmoved == [False, False, True, False]
    assert progress.skipped == 1


def test_a_training_on_a_gpu_that_is_interrupted_saves_every_update(train, tmp_path, monkeypatch):
    """The figures of the last update are still being copied to the host when the loop ends."""
    update = Trainer._update

    def interrupted_update(self, *rest):
        update(self, *rest)
        if self.progress.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "_update", interrupted_update)
    with Emulation("cuda"), pytest.raises(Interrupted):
        train(tmp_path / "run", *SMALL, device="cuda")
    facts = RunFolder(tmp_path / "run").load_state()[1]
    assert facts["place"]["step"] == len(facts["recent"]) == 3


def test_nadam_that_is_resumed_reads_nothing_of_its_weights_from_the_gpu(train, tmp_path, monkeypatch):
    nadam = "training.optimizer=nadam", "training.precision=float32"
    with Emulation("cuda"):
        train(tmp_path / "run", "training.max_steps=2", *nadam, device="cuda")
    with Emulation("cuda") as emulation:
        counts = watch_updates(monkeypatch, emulation)
        train(tmp_path / "run", "training.max_steps=4", *nadam, resume=True, device="cuda")
    assert counts == [{}] * 2


def test_the_record_names_the_gpu_and_the_loss_is_validated_as_it_is_trained(train, tmp_path, monkeypatch):
    flags = []

    def recording(device, **settings):
        flags.append(settings["enabled"])
        return mixed_precision(device, **settings)

    monkeypatch.setattr("translucid.training.validation.mixed_precision", recording)
    with Emulation("cuda"):
        train(tmp_path / "run", "training.max_steps=1", device="cuda")
    assert (
        json.loads(RunFolder(tmp_path / "run").provenance_file.read_text())["machine"]["device"] == "cuda:0 (Emulated)"
    )
    assert set(flags) == {True}  # bfloat16, which `auto` chooses here


def test_a_full_gpu_is_a_refusal_that_says_what_to_lower(train, tmp_path, monkeypatch):
    def raise_out_of_memory(*rest):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    monkeypatch.setattr(Trainer, "_update", raise_out_of_memory)
    with pytest.raises(UserError, match=r"memory of the GPU is full.*batch_tokens=\d+ training.accumulate=\d+"):
        train(tmp_path / "run", *SMALL)


def test_a_model_larger_than_the_gpu_is_refused_before_anything_is_moved(train, tmp_path, monkeypatch):
    with Emulation("cuda"):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 10_000))
        with pytest.raises(UserError, match=r"takes at least .* GiB.*sharded"):
            train(tmp_path / "run", *SMALL, device="cuda")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("shapes do not fit"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_that_mean_full_memory(error, expected):
    assert is_memory_full(error) == expected


def test_float32_products_are_rounded_to_tf32_unless_float32_is_wanted(monkeypatch):
    matmul = torch.backends.cuda.matmul
    operations = matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
    before = [operation.fp32_precision for operation in operations]
    monkeypatch.setattr("translucid.kernels.devices._configured", True)
    try:
        with Emulation("cuda"):
            tune_pytorch()
            assert matmul.fp32_precision == "tf32"
            tune_pytorch(exact=True)
            assert matmul.fp32_precision == "ieee"
    finally:
        for operation, precision in zip(operations, before, strict=True):
            operation.fp32_precision = precision
