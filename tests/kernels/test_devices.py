"""Whether there may be a GPU is told without loading PyTorch."""

import pytest
import torch

from translucid.kernels import devices


@pytest.mark.parametrize(
    ("version", "platform", "files", "no_gpu"),
    [
        ("2.13.0+cpu", "linux", ["nvidia0"], True),  # a PyTorch that could not use it
        ("2.13.0", "linux", [], True),
        ("2.13.0", "linux", ["nvidia0", "nvidiactl"], False),
        ("2.13.0+rocm7.0", "linux", ["kfd"], False),
        ("2.13.0", "linux", ["dxg"], False),
        ("2.13.0", "darwin", [], False),
        ("2.13.0", "win32", [], False),
    ],
)
def test_in_doubt_there_may_be_a_gpu(version, platform, files, no_gpu, tmp_path, monkeypatch):
    for name in files:
        (tmp_path / name).touch()
    monkeypatch.setattr(devices, "Path", lambda _: tmp_path)
    monkeypatch.setattr(devices.metadata, "version", lambda _: version)
    monkeypatch.setattr(devices.sys, "platform", platform)
    assert devices.certainly_cpu("auto") is no_gpu
    assert devices.certainly_cpu("cpu")
    assert not devices.certainly_cpu("cuda")
    assert not devices.certainly_cpu("mps")


def test_what_is_certain_is_so():
    if devices.certainly_cpu("auto"):
        assert devices.choose_device("auto") == torch.device("cpu")
