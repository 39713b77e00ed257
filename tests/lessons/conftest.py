"""The lessons' models, barely trained, and their pages."""

import shutil
from pathlib import Path

import pytest
import torch

from bitext.pair import Pair
from translucid import Translator
from translucid.circuits import Dictionary, Transcoder, find_contexts, lesson_records
from translucid.circuits.dictionary import DictionaryConfiguration, sublayers_of
from translucid.circuits.labels import KINDS, Meaning, Meanings, Unit
from translucid.cli.export import write_web_page
from translucid.corpora.phrasebook import generate
from translucid.ground.console import Console
from translucid.lessons import recording, runs
from translucid.lessons.lessons import LESSONS
from translucid.lessons.pages import DEMO_PAGE, save_pages
from translucid.lessons.recording import record_of
from translucid.lessons.runs import RECURRENT, Models, context_run
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.training.experiment import run_experiment

SETTINGS = [
    "model.width=16",
    "data.tokenizer.vocabulary=220",
    "data.source_language=en",
    "data.target_language=es",
    "training.batch_tokens=512",
    "training.max_steps=40",
    "training.warmup=10",
    "training.learning_rate=0.02",
    "training.validate_every=40",
    "training.validate_sentences=5",
]
RECURRENT_SETTINGS = [*SETTINGS, "training.max_steps=20", "training.validate_every=20"]
DEMO = [*SETTINGS, "model.heads=2", "model.feed_forward=32", "model.encoder_layers=1", "model.decoder_layers=2"]


def write_dictionary(run, pairs):
    """Write a dictionary of its neurons into a run, with contexts and labels: each feature stands for food."""
    translator = Translator.load(run, "cpu", "torch")
    torch.manual_seed(2)
    transcoders = {}
    for name, sublayer in sublayers_of(translator.model).items():
        transcoders[name] = Transcoder.of_neurons(sublayer, 48, 8).requires_grad_(False)
    digest = translator.loaded.folder.model_digest()
    dictionary = Dictionary(transcoders, DictionaryConfiguration(digest, 3, 8, 0, 1, (), len(pairs)))
    dictionary.save(run)
    find_contexts(translator, dictionary, pairs, console=Console(quiet=True)).save(run)
    units = {kind: Unit(f"decoder.0.{kind}.1", 1, 0.5, 0.4 + 0.1 * i, 48) for i, kind in enumerate(KINDS)}
    row = Meaning("written", "topic", "food", 60, 600, 0.2, units)
    features = {f"{name}.feature.{i}": row for name in transcoders for i in range(48)}
    Meanings(dictionary.digest, [row], features).save(run)


def _train_and_record(folder: Path) -> None:
    """Train the runs and record the figures of all lessons, with fewer sentences than usual."""
    pairs = [Pair(p.source, p.target) for p in generate(320, max_words=8)]
    corpora = Corpora.of(pairs[:300], pairs[300:])
    for name in ("demo", *RECURRENT.values()):
        configuration = resolve(preset=name, assignments=DEMO if name == "demo" else RECURRENT_SETTINGS)
        run_experiment(configuration, folder / name, corpora=corpora, console=Console(quiet=True), device="cpu")
    settings = [*DEMO, "data.context=1"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "resumed_or_new", lambda *given: (resolve(preset="demo", assignments=settings), False))
        patched.setattr(runs, "PASSAGES", 40)
        patched.setattr(runs, "VALID_PASSAGES", 4)
        context_run(folder, "cpu")
    write_dictionary(folder / "demo", [(pair.source, pair.target) for pair in pairs[:60]])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recording, "FACTORS", (0, 4))
        patched.setattr(lesson_records, "SHOWN", 2)
        patched.setattr(recording, "PER_LENGTH", 3)
        patched.setattr(recording, "LENGTHS", (3, 5, 13))
        patched.setattr(recording, "CANDIDATES", 6)
        patched.setattr(recording, "LAYER_CANDIDATES", 3)
        patched.setattr(recording, "HELD_OUT", 3)
        patched.setattr(recording, "HEAD_STEP", 5)
        for lesson in LESSONS:
            record_of(Models(folder), lesson)


@pytest.fixture(scope="session")
def lesson_runs(made_once, tmp_path_factory):
    """The folder of the runs, copied for each process because tests write into it."""
    return shutil.copytree(made_once("lessons", _train_and_record), tmp_path_factory.mktemp("lessons") / "runs")


@pytest.fixture(scope="session")
def models(lesson_runs):
    return Models(lesson_runs)


@pytest.fixture(scope="session")
def records(models):
    """The figures of all lessons, as JSON."""
    return {lesson.name: record_of(models, lesson) for lesson in LESSONS}


@pytest.fixture(scope="session")
def saved(records, models, tmp_path_factory):
    """The lessons in a folder, as `translucid learn --save` writes them."""
    folder = tmp_path_factory.mktemp("saved") / "lessons"
    folder.mkdir()
    write_web_page(models.demo, models.runs / "demo", folder / DEMO_PAGE)
    save_pages(folder, records)
    return folder


@pytest.fixture
def lesson(context, saved):
    """Open a lesson from its file: lesson("memory"). The page must report no error and load only files beside it."""
    page = context.new_page()
    problems, requests = [], []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))

    def opened(name):
        page.goto(f"{saved.as_uri()}/{name}.html")
        page.wait_for_selector("#figure[data-ready]")
        return page

    yield opened
    assert problems == []
    assert all(
        url.startswith((saved.as_uri(), "data:", "blob:")) for url in requests
    )  # blob: the embedded page's worker
    page.close()
