"""A small run that every test of the commands may use, and a way to call them."""

import io
import sys
from typing import NamedTuple

import pytest

from translucid.cli.main import run
from translucid.data.phrasebook import generate

SHAPE = [
    "model.width=16",
    "model.heads=2",
    "model.feed_forward=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "data.tokenizer.vocabulary=200",
    "training.batch_tokens=512",
    "training.validate_sentences=5",
    "training.log_every=5",
]


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capfd, monkeypatch):
    """Call a command in this process: call("translate", run, stdin=b"...")."""

    def calling(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capfd.readouterr())

    return calling


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Files of phrasebook sentences: train.tsv and test.tsv."""
    folder = tmp_path_factory.mktemp("corpus")
    for split, count in (("train", 300), ("test", 20)):
        lines = [f"{p.source}\t{p.target}\n" for p in generate(count, split=split, max_words=8)]
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def small_run(corpus, tmp_path_factory):
    """A run folder whose model has learned next to nothing, but works."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    limits = ["training.max_steps=20", "training.validate_every=10"]
    code = run([str(a) for a in ["train", *files, "--out", folder, "--set", *SHAPE, *limits]])
    assert code == 0
    return folder
