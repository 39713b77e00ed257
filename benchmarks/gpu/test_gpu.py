"""`make gpu` is rehearsed on an emulated GPU: every table is measured."""

import re

import pytest
import torch

from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu import decoding, shapes, training
from benchmarks.gpu.shapes import configuration_of
from tests.devices.emulated import Emulation


def test_every_table_is_measured(tmp_path, monkeypatch):
    out = tmp_path / "gpu.md"
    options = "--quick", "--no-tests", "--seconds", "0.01", "--sentences", "4", "--out", str(out)
    monkeypatch.setattr("sys.argv", ["gpu", *options])
    monkeypatch.setattr(gpu, "PRESETS", ["tiny"])
    monkeypatch.setattr(shapes, "QUICK", [setting.replace("layers=2", "layers=1") for setting in shapes.QUICK])
    monkeypatch.setattr(decoding, "LENGTH", 4)
    monkeypatch.setattr(training, "kernels", lambda action: (action(), 1.0))  # PyTorch's profiler needs a real GPU
    # PyTorch makes a causal mask from the hint in C++, where an emulated tensor is one of the CPU.
    monkeypatch.delitem(training.BUILDERS, "nn.Transformer")
    for name in ("packed", "captured", "captured and compiled"):
        monkeypatch.delitem(training.BUILDERS, f"translucid, {name}")  # a kernel for CUDA only
    with Emulation("cuda"), pytest.raises(SystemExit) as ended:
        gpu.main()
    text = out.read_text()
    assert ended.value.code == 0, text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| tiny")]
    # Training in two precisions; kernels of an update and of four searches; search with two beams.
    assert len(rows) == 2 + 5 + 2, text
    for row in rows:
        assert all(re.match(r"[\d,.]+", cell) for cell in row[2:]), row


@pytest.mark.parametrize("name", ["nn.Transformer", "translucid, packed", "translucid, captured"])
def test_other_loops_learn_on_a_cpu(name):
    update = training.BUILDERS[name](configuration_of("tiny", quick=True), torch.device("cpu"), "bfloat16")
    assert update() > 0


def test_a_missing_gpu_is_one_line(monkeypatch):
    monkeypatch.setattr("sys.argv", ["gpu", "--device", "cuda:9"])
    with pytest.raises(SystemExit, match=r"there is no device 'cuda:9' here.* Available: auto, cpu"):
        gpu.main()
