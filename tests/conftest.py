"""Hooks and fixtures that all tests share."""

import gc
import json
import logging
import os
import shutil
import stat
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import TextIO

import pytest

# One thread for all libraries, before one of them is imported: several wait for each other on the cores that test
# processes share, which takes three times the processor time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from filelock import FileLock

from bitext.pair import Pair
from tests.costs import SECONDS, file_of, markers_of
from translucid.captions.scenes.writing import write_corpus
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.ground.console import Console
from translucid.kernels.devices import same_sums_on_any_threads
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.settings import parse_yaml
from translucid.training.experiment import run_experiment

# Set this before the first computation, as jobs do. MKL would ignore a later setting in this process but not in the
# processes that a test starts, and the last digits of their results would differ.
same_sums_on_any_threads()
ROOT = Path(__file__).resolve().parent.parent
# torch.manual_seed takes a third of the time of a short test: it keeps a traceback for each kind of device.
SEED = torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed
# Barely trained models never end a sentence, and tests would spend most of their time on long outputs.
SHORT = ["decoding.max_length_ratio=0.5", "decoding.max_length_extra=4"]
SETTINGS = [
    "decoding.max_length_ratio=0.5",
    "decoding.max_length_extra=4",
    "model.width=16",
    "model.heads=2",
    "model.feed_forward=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0.2",
    "data.tokenizer.vocabulary=200",
    "data.subword_dropout=0",
    "training.batch_tokens=200",
    "training.cooldown=0",
    "training.validate_every=7",
    "training.validate_sentences=4",
    "training.log_every=3",
    "training.max_steps=16",
]
SHAPE = [
    *SHORT,
    "model.kind=transformer",  # otherwise the size of the corpus would decide on the settings
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


gc.disable()  # until test collection ends, as scanning imported modules would take seconds


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip a file whose tests are all deselected, for example by `-m "not slow"`."""
    if not collection_path.name.startswith("test_"):
        return None
    deselected = {f"not {marker}" for marker in markers_of(file_of(collection_path))}
    return True if deselected & {*config.option.markexpr.split(" and ")} else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests, and run the files that take longest first."""
    seconds = {}
    for item in items:
        file = file_of(item.path)
        seconds[item.path] = SECONDS.get(file, 0)
        for marker in markers_of(file):
            item.add_marker(marker)
    items.sort(key=lambda item: -seconds[item.path])


def pytest_collection_finish() -> None:
    """Exempt all objects so far from garbage collection, as imported modules and collected tests stay to the end.

    What tests leave behind is collected a tenth as often as by default, which saves 2 % of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(7_000)
    gc.enable()


def pytest_runtest_setup() -> None:
    """Keep absl, which Keras imports, from closing the file into which pytest captures.

    Its handler closes its stream whenever a server configures logging, unless that is the process's standard error.
    """
    if absl := sys.modules.get("absl.logging"):
        absl.get_absl_handler().python_handler.stream = sys.__stderr__


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Fill a folder once for all processes of a test run: made_once("corpus", write) returns the folder.

    Tests must not change its contents; they have to copy the folder first.
    """
    base = tmp_path_factory.getbasetemp()
    # Each process of pytest-xdist has a folder in that of the run.
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    shared.mkdir(exist_ok=True)

    def fill_once(name: str, fill: Callable[[Path], object]) -> Path:
        folder, marker = shared / name, shared / f"{name}.made"
        with FileLock(shared / f"{name}.lock"):
            if not marker.exists():
                shutil.rmtree(folder, ignore_errors=True)  # left by a process that failed
                fill(folder)
                marker.touch()
        return folder

    return fill_once


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora, from $TRANSLUCID_DATA or beside the checkout; without it, tests that need it skip."""
    folder = Path(os.environ.get("TRANSLUCID_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real corpora in {folder}: set TRANSLUCID_DATA")
    return folder


@pytest.fixture(scope="session")
def real_models(real_data) -> Path:
    """The folder of published models beside that of real corpora; without it, tests that need it skip."""
    folder = real_data.parent / "models"
    if not folder.is_dir():
        pytest.skip(f"no published models in {folder}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _a_cache_of_their_own(tmp_path_factory):
    """Use a separate cache, so that tests do not change the user's cache of converted models."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk():
    """Write files without `fsync`: a test can see what a killed process leaves, but not what a power cut does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _loggers_propagate():
    """Let the loggers of PyTorch and others propagate, because pytest adds handlers to each one that does not.

    For forty loggers, this takes a quarter of the time of an empty test; and if `torch.__trace` has a handler, PyTorch
    writes slow traces of its compilers.
    """
    with pytest.MonkeyPatch.context() as patched:
        for logger in [*logging.root.manager.loggerDict.values()]:
            if isinstance(logger, logging.Logger):
                patched.setattr(logger, "propagate", True)
        yield


@pytest.fixture(scope="session", autouse=True)
def _read_once():
    """Cache parsed settings of runs, which take half of the time of a short command, and versions of packages."""
    parsed = lru_cache(1000)(parse_yaml)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("translucid.runs.settings.parse_yaml", lambda text: deepcopy(parsed(text)))
        patched.setattr(metadata, "version", cache(metadata.version))
        yield


@pytest.fixture(autouse=True)
def _same_numbers_each_time():
    if torch.get_num_threads() != 1:  # a test or a library has changed it
        torch.set_num_threads(1)
    SEED(1)
    torch.set_flush_denormal(False)  # loading a model sets it, but Hypothesis needs subnormal numbers


@pytest.fixture(scope="session")
def corpus(made_once):
    """Files of phrasebook sentences: train.tsv and test.tsv."""

    def fill(folder: Path) -> None:
        folder.mkdir()
        for split, count in (("train", 300), ("test", 20)):
            lines = [f"{p.source}\t{p.target}\n" for p in generate(count, split=split, max_words=8)]
            (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")

    return made_once("corpus", fill)


@pytest.fixture(scope="session")
def small_run(corpus, made_once):
    """A run folder whose model is barely trained, but works."""

    def fill(folder: Path) -> None:
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
        limits = ["training.max_steps=20", "training.validate_every=10"]
        code = run([str(a) for a in ["train", *files, "--out", folder, "--no-tune", "--set", *SHAPE, *limits]])
        assert code == 0

    return made_once("small", fill)


@pytest.fixture(scope="session")
def formality_run(made_once):
    """An untrained run from English to Spanish whose vocabulary has the control tokens of formality."""
    from tests.probes.untrained import untrained_run  # not all tests need it

    return made_once("formality", lambda folder: untrained_run(folder, 1, "en", "es", formality=0.5, no_repeat_ngram=1))


@pytest.fixture(scope="session")
def pivot_runs(made_once):
    """A folder with the untrained runs es-en and en-fr."""
    from tests.probes.untrained import untrained_run  # not all tests need it

    def fill(folder: Path) -> None:
        folder.mkdir()
        untrained_run(folder / "es-en", 1, "es", "en", length_penalty=0.5)
        untrained_run(folder / "en-fr", 2, "en", "fr")

    return made_once("pivot", fill)


@pytest.fixture(scope="session")
def multilingual_run(corpus, made_once):
    """A run for English to Spanish and back, whose model is barely trained, but works."""

    def fill(folder: Path) -> None:
        files = ["--train", f"{corpus}/train.tsv:en-es", "--valid", f"{corpus}/test.tsv:en-es", "--both-directions"]
        limits = ["training.max_steps=20", "training.validate_every=10", "model.norm=post"]
        assert run(["train", *files, "--out", str(folder), "--no-tune", "--set", *SHAPE, *limits]) == 0

    return made_once("multilingual", fill)


@pytest.fixture(scope="session")
def texts(corpus, made_once):
    """Files of running text: train.jsonl and test.jsonl, the English side of `corpus`, beside the files of `corpus`."""

    def fill(folder: Path) -> None:
        shutil.copytree(corpus, folder)
        for split in ("train", "test"):
            lines = (corpus / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
            rows = [json.dumps({"text": line.split("\t")[0]}) + "\n" for line in lines]
            (folder / f"{split}.jsonl").write_text("".join(rows))

    return made_once("texts", fill)


@pytest.fixture(scope="session")
def language_run(texts, made_once):
    """Train a language model and return its run folder: language_run("lm-bilstm", "model.characters=true")."""

    def train_language_model(preset: str, *settings: str) -> Path:
        def fill(folder: Path) -> None:
            files = ["--train", texts / "train.jsonl", "--valid", texts / "test.jsonl", "--out", folder]
            all_settings = [*LANGUAGE, *settings]
            assert run([str(a) for a in ["train", *files, "--model", preset, "--set", *all_settings]]) == 0

        return made_once("-".join([preset, *settings]), fill)

    return train_language_model


@pytest.fixture(scope="session")
def scenes(made_once):
    """Pictures with captions: images.tar, train.tsv, valid.tsv and so on."""
    return made_once("scenes", lambda folder: write_corpus(folder, 24, size=32))


@pytest.fixture(scope="session")
def browser():
    """Chromium, shared by all modules because starting it and its first page takes two seconds."""
    from tests.probes.chromium import chromium  # Playwright takes a while to import

    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def firefox(tmp_path_factory):
    """Firefox with one tab for all modules."""
    from tests.probes.firefox import firefox

    with firefox(tmp_path_factory.mktemp("firefox")) as started:
        yield started


@pytest.fixture(scope="module")
def context(browser):
    """A browser context whose pages have faster timers.

    A page opens in half the time if its context exists already. Tests that set the clock or emulate a touch screen open
    a page with a separate context by `context.browser`.
    """
    from tests.probes.chromium import opening

    with opening(browser) as pages:
        yield pages


@pytest.fixture
def forked_workers(monkeypatch):
    """Fork worker processes from one that has imported PyTorch, as each spawned process would import it again."""
    from tests.probes.forked import running_context  # not all tests need it

    for module in ("translucid.data.stores.encoded", "translucid.jobs.processes"):
        monkeypatch.setattr(f"{module}.get_context", lambda method: running_context())


@pytest.fixture
def null(tmp_path):
    """A device made for this test that discards everything, like /dev/null."""
    return device(tmp_path / "devices" / "null", 3)


@pytest.fixture
def full(tmp_path):
    """A device made for this test that is always full, like /dev/full."""
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
    """A hundred pairs for training, with about ten updates per epoch, and a few for validation."""
    pairs = [Pair(p.source, p.target) for p in generate(104, max_words=8)]
    return Corpora.of(pairs[:100], pairs[100:])


@pytest.fixture(scope="session")
def train(corpora):
    """Train with SETTINGS and further settings: train(folder, "training.max_steps=5", resume=True)."""

    def run_training(
        folder: Path,
        *settings: str,
        data: Corpora = corpora,
        resume: bool = False,
        output: TextIO | None = None,
        width: int = 1000,
        device: str = "cpu",
    ):
        configuration = resolve(assignments=[*SETTINGS, *settings])
        console = Console(quiet=output is None, file=output, width=width)
        return run_experiment(
            configuration, folder, corpora=data, resume=resume, device=device, console=console
        ).progress

    return run_training


@pytest.fixture(scope="session")
def context_run(train, made_once):
    """A run for English to Spanish that has learned to use the previous sentence."""
    from tests.probes.passages import CONTEXT, LEARNING  # not all tests need them
    from tests.probes.passages import corpora as documents

    return made_once("document-context", lambda folder: train(folder, *CONTEXT, *LEARNING, data=documents()))
