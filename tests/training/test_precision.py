"""The precision of large matrix products in training: measured, agreed between processes, recorded and kept."""

import io
import json
import math
from types import SimpleNamespace

import pytest
import torch

from translucid.runs.training_options import TrainingOptions
from translucid.training.hardware import precision as module
from translucid.training.hardware.precision import choose_precision

CPU = torch.device("cpu")


def choose(monkeypatch, gain, before=None, setting="auto", device=CPU, workers=None):
    monkeypatch.setattr(module, "gain_of_rounding", lambda device: gain)
    return choose_precision(TrainingOptions(precision=setting), device, workers, before)


@pytest.mark.parametrize(
    ("gain", "before", "name"),
    [
        (2.0, None, "bfloat16"),
        (0.9, None, "float32"),
        (0.2, None, "float32"),
        (0.5, "bfloat16", "bfloat16"),  # within noise, the earlier precision is kept
        (0.1, "bfloat16", "float32"),
        (3.0, "float32", "float32"),
        (8.0, "float32", "bfloat16"),
    ],
)
def test_the_faster_one_unless_a_resumed_run_has_another(monkeypatch, gain, before, name):
    assert choose(monkeypatch, gain, before).name == name


def test_the_reason_names_the_measurement(monkeypatch):
    assert (
        str(choose(monkeypatch, 1.96)) == "bfloat16 (measured here: bfloat16 multiplies 1.96 times as fast as float32)"
    )
    assert str(choose(monkeypatch, 0.5, "bfloat16")).startswith("bfloat16 (as before; measured here: ")
    assert str(choose(monkeypatch, 0.1, "bfloat16")).startswith("float32 (measured here: ")
    assert str(choose(monkeypatch, 0.1, setting="bfloat16")) == "bfloat16 (as training.precision says)"
    assert str(choose(monkeypatch, 2.0, setting="float32")) == "float32 (as training.precision says)"


@pytest.mark.parametrize(("gain", "before", "name"), [(math.inf, "float32", "bfloat16"), (0.0, "bfloat16", "float32")])
def test_a_gpu_has_instructions_or_not(monkeypatch, gain, before, name):
    choice = choose(monkeypatch, gain, before, device=torch.device("cuda"))
    assert choice.name == name
    assert "measured" not in choice.reason


def test_the_slowest_process_decides_for_all(monkeypatch):
    workers = SimpleNamespace(gather=lambda gain: [gain, 0.2])
    assert choose(monkeypatch, 2.0, workers=workers).name == "float32"


def test_a_resumed_run_keeps_its_choice_and_both_starts_are_recorded(train, tmp_path, monkeypatch):
    names = []
    for gain, steps in ((2.0, 1), (1.0, 2)):
        monkeypatch.setattr(module, "gain_of_rounding", lambda device, gain=gain: gain)
        output = io.StringIO()
        train(tmp_path / "run", f"training.max_steps={steps}", resume=steps > 1, output=output)
        assert f"multiplies {gain:.2f} times" in output.getvalue()
    for line in (tmp_path / "run" / "provenance.jsonl").read_text().splitlines():
        names.append(json.loads(line)["precision"])
    assert [name["bfloat16"] for name in names] == [True, True]
    assert "as before" not in names[0]["reason"] and "as before" in names[1]["reason"]
