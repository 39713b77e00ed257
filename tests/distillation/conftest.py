"""Runs, files and a way to call `translucid distill` on them."""

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
    """A translator, English to Spanish by its files, that knows the sentences that it has learned."""

    def fill(folder):
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder]
        assert run([str(word) for word in ["train", *files, "--no-tune", "--set", *TEACHER]]) == 0

    return made_once("distillation-teacher", fill)


@pytest.fixture(scope="session")
def reverse_run(corpus, made_once):
    """A run that reads Spanish and writes English, learned from the files that hold English first."""

    def fill(folder):
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder]
        settings = [*TEACHER, "data.reverse=true"]
        assert run([str(word) for word in ["train", *files, "--no-tune", "--set", *settings]]) == 0

    return made_once("distillation-reverse", fill)


@pytest.fixture(scope="session")
def files(corpus, tmp_path_factory):
    """pairs.tsv, with a bad line and a repeated pair; valid.tsv; text.txt, with a bad line; target.txt."""
    folder = tmp_path_factory.mktemp("files")
    lines = (corpus / "train.tsv").read_bytes().splitlines(keepends=True)[:60]
    (folder / "pairs.tsv").write_bytes(b"".join([*lines, b"ca\xf1a\tx\n", lines[0]]))
    shutil.copy(corpus / "test.tsv", folder / "valid.tsv")
    phrases = list(generate(12, split="valid", max_words=8))
    (folder / "text.txt").write_bytes("".join(f"{each.source}\n" for each in phrases[:6]).encode() + b"\n\xff\n")
    (folder / "target.txt").write_text("".join(f"{each.target}\n" for each in phrases[6:]), encoding="utf-8")
    return folder


@pytest.fixture
def distill(call, files, teacher, tmp_path):  # noqa: F811
    """Distill: distill("--text", file) gives the outcome; the student is in `distill.out`."""
    out = tmp_path / "student"

    def calling(*more, teachers=(teacher,), settings=(), student=STUDENT):
        given = ["--pairs", files / "pairs.tsv", "--valid", files / "valid.tsv", "--out", out, "--nbest", 3]
        return call("distill", *teachers, *given, "--no-report", *more, "--set", *student, *settings)

    calling.out, calling.folder = out, out / "distillation"
    return calling
