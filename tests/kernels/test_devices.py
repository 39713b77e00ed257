"""Detecting the absence of GPUs without PyTorch, and the choice of a device."""

from pathlib import Path

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.kernels import devices


@pytest.mark.parametrize(
    ("version", "platform", "files", "no_gpu"),
    [
        ("2.13.0+cpu", "linux", ["nvidia0"], True),  # this PyTorch could not use it
        ("2.13.0", "linux", [], True),
        ("2.13.0", "linux", ["nvidia0", "nvidiactl"], False),
        ("2.13.0+rocm7.0", "linux", ["kfd"], False),
        ("2.13.0", "linux", ["dxg"], False),
        ("2.13.0", "darwin", [], False),
        ("2.13.0", "win32", [], False),
    ],
)
def test_the_check_for_gpus_without_pytorch(version, platform, files, no_gpu, tmp_path, monkeypatch):
    for name in files:
        (tmp_path / name).touch()
    monkeypatch.setattr(devices, "Path", lambda _: tmp_path)
    monkeypatch.setattr(devices.metadata, "version", lambda _: version)
    monkeypatch.setattr(devices.sys, "platform", platform)
    assert devices.certainly_cpu("auto") is no_gpu
    assert devices.certainly_cpu("cpu")
    assert not devices.certainly_cpu("cuda")
    assert not devices.certainly_cpu("mps")


def test_pytorch_agrees_that_there_is_no_gpu():
    if not devices.certainly_cpu("auto"):
        pytest.skip("this machine may have a GPU")
    assert devices.choose_device("auto") == torch.device("cpu")


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.delenv("LOCAL_RANK", raising=False)


@pytest.mark.parametrize(("name", "index"), [("auto", 0), ("cuda", 0), ("cuda:0", 0), ("cuda:1", 1)])
def test_a_gpu_always_has_an_index(two_gpus, name, index):
    assert devices.choose_device(name) == torch.device("cuda", index)


def test_each_process_of_torchrun_has_a_gpu_of_its_own(two_gpus, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert devices.choose_device("auto") == devices.choose_device("cuda") == torch.device("cuda", 1)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(UserError, match="process 2 of this machine has no GPU of its own: there are 2"):
        devices.choose_device("cuda")


@pytest.mark.parametrize("name", ["cuda:2", "cuda:x", "cuda:", "cuda:-1", "cpu:0", "xpu", ""])
def test_missing_devices_are_refused(two_gpus, name):
    with pytest.raises(UserError, match=r"there is no device .* here.*Available: auto, cpu, cuda, cuda:0, cuda:1"):
        devices.choose_device(name)


@pytest.mark.parametrize(("device", "expected"), [("cpu", []), ("cuda:1", ["cuda:1"])])
def test_random_states_of_other_gpus_are_left_alone(device, expected, monkeypatch):
    """By default, PyTorch would save the state of every GPU and create a context on each."""
    calls = []
    monkeypatch.setattr("torch.random.fork_rng", calls.append)
    devices.preserve_random_state(device)
    assert calls == [expected]


def test_no_caller_reads_the_random_states_of_all_gpus():
    sources = list(Path(devices.__file__).parents[1].rglob("*.py"))
    assert len(sources) > 100
    assert [source.name for source in sources if "fork_rng()" in source.read_text(encoding="utf-8")] == []


def test_a_training_in_any_order_does_not_import_the_compiler(monkeypatch):
    monkeypatch.setattr(torch, "use_deterministic_algorithms", None)  # it imports PyTorch's compiler
    with devices.fixed_order(False):
        assert not torch.are_deterministic_algorithms_enabled()
