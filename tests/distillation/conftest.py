"""Runs, files and a fixture that calls `translucid distill` on them."""

import shutil

import pytest

from tests.conftest import SHAPE
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate

from ..cli.conftest import call  # noqa: F401

STUDENT = [*SHAPE, "training.max_steps=4", "training.validate_every=2", "data.tokenizer.vocabulary=150"]


TEACHER = [*SHAPE, "model.width=48", "model.feed_forward=96", "training.learning_rate=0.01", "training.warmup=20"]
TEACHER += ["training.max_steps=250", "training.validate_every=125", "training.averaging=0.9", "model.dropout=0"]


@pytest.fixture(scope="session")
def teacher(corpus, made_once):
    """Return an English-Spanish run that has memorized its training sentences."""

    def fill(folder):
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder]
        assert run([str(argument) for argument in ["train", *files, "--no-tune", "--set", *TEACHER]]) == 0

    return made_once("distillation-teacher", fill)


@pytest.fixture(scope="session")
def reverse_run(corpus, made_once):
    """Return a barely trained Spanish-English run, with `data.reverse` on files with English first."""

    def fill(folder):
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder]
        settings = [*TEACHER, "data.reverse=true", "training.max_steps=40", "training.validate_every=40"]
        assert run([str(argument) for argument in ["train", *files, "--no-tune", "--set", *settings]]) == 0

    return made_once("distillation-reverse", fill)


@pytest.fixture(scope="session")
def files(corpus, tmp_path_factory):
    """Write pairs.tsv with a bad line and a duplicate, valid.tsv, text.txt with a bad line, and target.txt."""
    folder = tmp_path_factory.mktemp("files")
    lines = (corpus / "train.tsv").read_bytes().splitlines(keepends=True)[:60]
    (folder / "pairs.tsv").write_bytes(b"".join([*lines, b"ca\xf1a\tx\n", lines[0]]))
    shutil.copy(corpus / "test.tsv", folder / "valid.tsv")
    phrases = list(generate(12, split="valid", max_words=8))
    (folder / "text.txt").write_bytes("".join(f"{phrase.source}\n" for phrase in phrases[:6]).encode() + b"\n\xff\n")
    (folder / "target.txt").write_text("".join(f"{phrase.target}\n" for phrase in phrases[6:]), encoding="utf-8")
    return folder


@pytest.fixture
def distill(call, files, teacher, tmp_path):  # noqa: F811
    """Return distill("--text", file), which runs the command; the student is in `distill.out`."""
    out = tmp_path / "student"

    def call_distill(*arguments, teachers=(teacher,), settings=(), student=STUDENT, report=False):
        common = ["--pairs", files / "pairs.tsv", "--valid", files / "valid.tsv", "--out", out, "--choose", "nearest:3"]
        if not report:
            common += ["--skip", "report"]
        return call("distill", *teachers, *common, *arguments, "--set", *student, *settings)

    call_distill.out, call_distill.folder = out, out / "distillation"
    return call_distill
