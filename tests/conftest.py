"""What all tests share."""

import json
import os
import stat
from pathlib import Path
from typing import TextIO

import pytest
import torch

from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.corpora.scenes.writing import write_corpus
from translucid.data.readers.corpus import Pair
from translucid.ground.console import Console
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.training.experiment import run_experiment

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = [
    "model.width=16",
    "model.heads=2",
    "model.feed_forward=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0.2",
    "data.tokenizer.vocabulary=200",
    "data.subword_dropout=0.1",
    "training.batch_tokens=200",
    "training.accumulate=2",
    "training.cooldown=0",
    "training.validate_every=7",
    "training.validate_sentences=4",
    "training.log_every=3",
    "training.max_steps=30",
]
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


IMAGE_ENCODER = [
    *(
        "model.image_encoder.channels=4",
        "model.image_encoder.size=32",
        "model.image_encoder.stride=16",
        "model.width=16",
    ),
    *("data.tokenizer.vocabulary=200",),
]


LANGUAGE = [
    *("model.width=16", "model.hidden=24", "data.tokenizer.vocabulary=120"),
    *(
        "training.batch_tokens=160",
        "training.window=10",
        "training.log_every=5",
        "training.warmup=10",
        "training.learning_rate=0.02",
    ),
    *("training.max_steps=40", "training.validate_every=20", "training.averaging=0.9"),
]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora, from $TRANSLUCID_DATA or beside the checkout; tests that need it skip without."""
    folder = Path(os.environ.get("TRANSLUCID_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real corpora in {folder}: set TRANSLUCID_DATA")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Small models are no faster with more, and tests share their machine."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _a_cache_of_their_own(tmp_path_factory):
    """What tests convert does not push the user's own models out of the cache, nor is it found there."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _same_numbers_each_time():
    torch.manual_seed(1)


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
    code = run([str(a) for a in ["train", *files, "--out", folder, "--no-tune", "--set", *SHAPE, *limits]])
    assert code == 0
    return folder


@pytest.fixture(scope="session")
def texts(corpus):
    """Files of running text: train.jsonl and test.jsonl, the English side of `corpus`."""
    for split in ("train", "test"):
        lines = (corpus / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
        rows = [json.dumps({"text": line.split("\t")[0]}) + "\n" for line in lines]
        (corpus / f"{split}.jsonl").write_text("".join(rows))
    return corpus


@pytest.fixture(scope="session")
def language_run(texts, tmp_path_factory):
    """Train a language model: language_run("lm-bilstm", "model.characters=true"); a run folder."""
    made = {}

    def training(preset: str, *settings: str) -> Path:
        if (preset, settings) not in made:
            folder = tmp_path_factory.mktemp("runs") / preset
            files = ["--train", texts / "train.jsonl", "--valid", texts / "test.jsonl", "--out", folder]
            more = [*LANGUAGE, *settings]
            assert run([str(a) for a in ["train", *files, "--model", preset, "--set", *more]]) == 0
            made[preset, settings] = folder
        return made[preset, settings]

    return training


@pytest.fixture(scope="session")
def scenes(tmp_path_factory):
    """Pictures with captions: images.tar, train.tsv, valid.tsv and so on."""
    folder = tmp_path_factory.mktemp("scenes")
    write_corpus(folder, 24, size=32)
    return folder


@pytest.fixture
def null(tmp_path):
    """A device of our own that swallows everything, as /dev/null does."""
    return device(tmp_path / "devices" / "null", 3)


@pytest.fixture
def full(tmp_path):
    """A device of our own that has no room, as /dev/full."""
    return device(tmp_path / "devices" / "full", 7)


def device(node: Path, minor: int) -> Path:
    node.parent.mkdir()
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        node.open("wb").close()
    except OSError:
        pytest.skip("no right to make a device here")
    return node


@pytest.fixture(scope="session")
def corpora() -> Corpora:
    """A hundred pairs to learn from, about ten updates an epoch, and a few to validate with."""
    pairs = [Pair(p.source, p.target) for p in generate(104, max_words=8)]
    return Corpora.of(pairs[:100], pairs[100:])


@pytest.fixture(scope="session")
def train(corpora):
    """Train as in SETTINGS but for what is given: train(folder, "training.max_steps=5", resume=True)."""

    def training(
        folder: Path,
        *settings: str,
        data: Corpora = corpora,
        resume: bool = False,
        said: TextIO | None = None,
        width: int = 1000,
        device: str = "cpu",
    ):
        configuration = resolve(assignments=[*SETTINGS, *settings])
        console = Console(quiet=said is None, file=said, width=width)
        return run_experiment(
            configuration, folder, corpora=data, resume=resume, device=device, console=console
        ).progress

    return training
