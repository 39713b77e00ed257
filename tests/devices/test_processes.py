"""The devices of the tensors that several processes with one GPU each share or gather.

`DTensor` and collectives need real processes (see tests/training/test_ddp.py), so stand-ins take their place.
"""

from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from torch import nn

from tests.devices.emulated import DeviceTensor, Emulation
from tests.devices.shrunk import build_case
from tests.devices.test_commands import watch_updates
from translucid.language.running_text import StreamLoss
from translucid.training.hardware.ddp import Workers
from translucid.training.trainer import Trainer


class TwoWorkers(Workers):
    """One of two processes; the other one never answers."""

    def gather(self, thing):
        return [thing]

    def wait(self):
        pass

    def updating(self):
        return nullcontext()

    @classmethod
    def joined(cls, device):
        return nullcontext(cls(0, 2, device))


class Distributed(torch.Tensor):
    """A sharded tensor whose parts are all in this process."""

    device_mesh = placements = None

    def full_tensor(self):
        return self.as_subclass(torch.Tensor)


class DistributedOnGpu(Distributed):
    """A sharded tensor on a GPU."""

    def full_tensor(self):
        return super().full_tensor().to("cuda")


@pytest.fixture(autouse=True)
def sharded_weights(monkeypatch):
    """Return `ShardedWeights` as on a GPU; its module is imported here because that takes a second."""
    from translucid.training.hardware import sharding

    monkeypatch.setattr(sharding, "DTensor", Distributed)
    monkeypatch.setattr(sharding, "distribute_tensor", lambda tensor, mesh, placements: tensor)
    with Emulation("cuda"):
        yield sharding.ShardedWeights


@pytest.fixture
def sharded():
    """Return a stand-in for sharded weights, without processes."""
    complete = nn.BatchNorm1d(3)  # it has a buffer
    averages = [torch.ones(3).as_subclass(Distributed) for _ in complete.parameters()]
    return SimpleNamespace(
        device=torch.device("cuda"),
        workers=SimpleNamespace(leads=True),
        complete=complete,
        _distributed_ema=lambda: averages,
        _empty=lambda: None,
    )


def test_rows_and_parts_go_to_the_gpu(sharded_weights, sharded):
    batch = build_case("tiny").batch
    assert isinstance(sharded_weights.rows(sharded, batch).source, DeviceTensor)
    parameter = torch.ones(3).as_subclass(Distributed)
    assert isinstance(sharded_weights.shard(sharded, torch.ones(3), parameter), DeviceTensor)


def test_the_average_is_validated_on_the_gpu_and_saved_from_the_cpu(sharded_weights, sharded):
    with sharded_weights.ema_model(sharded) as model:
        tensors = [*model.parameters(), *model.buffers()]
        assert all(isinstance(tensor, DeviceTensor) for tensor in tensors)
    part = torch.ones(3).as_subclass(DistributedOnGpu)
    assert isinstance(part.full_tensor(), DeviceTensor)
    assert not isinstance(sharded_weights.full_tensor(sharded, part), DeviceTensor)


def test_a_model_in_parts_is_not_moved_as_a_whole(train, tmp_path, monkeypatch):
    devices = []

    def create_weights(model, *rest):
        devices.append({parameter.device.type for parameter in model.parameters()})
        raise KeyboardInterrupt

    monkeypatch.setattr("translucid.training.experiment.Workers", TwoWorkers)
    monkeypatch.setattr("translucid.training.trainer.create_weights", create_weights)
    for sharded in ("true", "false"):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / sharded, f"training.sharded={sharded}", device="cuda")
    assert devices == [{"cpu"}, {"cuda"}]


def test_an_update_of_two_processes_waits_for_no_gpu(train, tmp_path, monkeypatch):
    """The sums over processes of gradients, figures, times and signals do not wait."""
    reduced = []

    def all_reduce(tensor, async_op=False):
        reduced.append(tensor)
        return SimpleNamespace(wait=lambda: None)

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    monkeypatch.setattr("translucid.training.experiment.Workers", TwoWorkers)
    monkeypatch.setattr(Trainer, "_validate", Mock(side_effect=KeyboardInterrupt))
    counts = watch_updates(monkeypatch, Emulation.current)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", "training.max_steps=3", "training.validate_every=3", device="cuda")
    assert counts == [{}] * 3
    assert all(isinstance(tensor, DeviceTensor) for tensor in reduced) and len(reduced) >= 6


def test_numbers_are_added_up_where_nccl_adds(monkeypatch):
    reduced = []
    monkeypatch.setattr("torch.distributed.all_reduce", reduced.append)
    assert Workers(0, 2, torch.device("cuda", 0)).sum(1.0, 2.0) == [1.0, 2.0]
    assert isinstance(reduced[0], DeviceTensor)


def test_a_resumed_language_model_carries_its_state_on_the_gpu():
    model = build_case("lm-lstm").model.to("cuda")
    loss = StreamLoss(model)
    parts = model.begin(2, torch.device("cuda")).tensors()
    saved = {f"process.0.carried.{index}": part.cpu() for index, part in enumerate(parts)}
    loss.restore(0, 1, saved, torch.device("cuda"))
    assert len(loss.state_tensors()) == len(saved) == 2
    assert all(isinstance(tensor, DeviceTensor) for tensor in loss.state_tensors().values())
