"""Servers with barely trained models, and their clients."""

import io
import shutil
import socket
import threading
from contextlib import contextmanager

import pytest
import torch
import yaml
from fastapi.testclient import TestClient

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from tests.probes.foreign import many_languages_folder
from translucid.api.translator import Translator
from translucid.captions.scenes import generate as generate_scenes
from translucid.captions.scenes.painting import paint
from translucid.captions.scenes.scene import COMMON
from translucid.circuits.contexts import find_contexts
from translucid.circuits.dictionary import Dictionary, DictionaryConfiguration, sublayers_of
from translucid.circuits.transcoder import Transcoder
from translucid.cli import main
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console
from translucid.interop.importing import import_model
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.serving import catalog, documents
from translucid.serving.app import create_app
from translucid.serving.catalog import load
from translucid.serving.documents import DocumentJobs
from translucid.serving.server_options import ServerOptions
from translucid.training.experiment import run_experiment

SETTINGS = [
    "model.width=32",
    "model.heads=2",
    "model.feed_forward=64",
    "model.encoder_layers=1",
    "model.decoder_layers=2",
    "data.tokenizer.vocabulary=250",
    "data.source_language=en",
    "data.target_language=es",
    "training.batch_tokens=512",
    "training.max_steps=40",
    "training.validate_every=40",
    "training.validate_sentences=5",
    "decoding.max_length_ratio=1",  # barely trained models do not end their outputs, so the limit is low
    "decoding.max_length_extra=4",
]


@pytest.fixture(scope="session")
def run(made_once):
    """A run folder, English to Spanish."""

    def fill(folder):
        pairs = [Pair(p.source, p.target) for p in generate(320, max_words=8)]
        corpora = Corpora.of(pairs[:300], pairs[300:])
        settings = resolve(assignments=SETTINGS)
        run_experiment(settings, folder, corpora=corpora, console=Console(quiet=True), device="cpu")

    return made_once("tiny", fill)


@pytest.fixture(scope="session")
def m2m(made_once):
    """A run folder with an imported model that translates between English and Spanish in both directions."""

    def fill(folder):
        folder.mkdir()
        many_languages_folder(folder / "theirs", nllb=True, end=1.0)
        import_model(folder / "theirs", folder / "many")

    return made_once("many languages", fill) / "many"


@pytest.fixture(scope="session")
def wordy_run(run, tmp_path_factory):
    """The same model with a high length limit, so that translating a single text takes a while."""
    folder = shutil.copytree(run, tmp_path_factory.mktemp("wordy") / "tiny")
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    settings["decoding"] |= {"max_length_ratio": 2.0, "max_length_extra": 20}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    return folder


@contextmanager
def starting(run):
    """Provide a function that starts a server in this process and returns a client: start(characters=100)."""
    clients = []

    def start(*runs: str, **options: object) -> TestClient:
        server_options = ServerOptions(**{"hosts": ("testserver",), **options})  # type: ignore[arg-type]
        client = TestClient(
            create_app(load(list(runs) or [str(run)], "cpu", server_options), server_options),
            raise_server_exceptions=False,
        )
        client.__enter__()
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def serve(run):
    """Return a function that starts a server in this process and returns a client: serve(characters=100)."""
    with starting(run) as start:
        yield start


@pytest.fixture(scope="module")
def serve_for_all(run):
    """Like `serve`, but shared by the tests of a module; for tests that leave no state in the server."""
    with starting(run) as start:
        yield start


@pytest.fixture
def client(serve):
    """A client for a server with the usual limits."""
    return serve()


@pytest.fixture(scope="module")
def many(serve_for_all, m2m):
    """A client for a server whose model translates from and into English and Spanish."""
    return serve_for_all(str(m2m))


@pytest.fixture
def memory_file(tmp_path):
    """A translation memory of one entry."""
    file = tmp_path / "mine.memory"
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("I like soccer.", "Me encanta.")], "Ana")
    return file


@pytest.fixture
def serve_arguments(monkeypatch):
    """The runs and options that `translucid serve` would start with: serve_arguments(run, "--host", "0.0.0.0")."""

    class Loaded(Exception):  # noqa: N818
        pass

    def load(runs, device, options, engine, *terms):
        raise Loaded(runs, options)

    def parse(*arguments):
        monkeypatch.setattr(catalog, "load", load)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with pytest.raises(Loaded) as loaded:
            main.app(["serve", *map(str, arguments), "--port", str(port)], standalone_mode=False)
        return loaded.value.args

    return parse


@pytest.fixture
def jobs(monkeypatch):
    """The document jobs of all servers that a test starts."""
    created = []
    original = DocumentJobs.__init__

    def record_jobs(self, context):
        original(self, context)
        created.append(self)

    monkeypatch.setattr(DocumentJobs, "__init__", record_jobs)
    return created


@pytest.fixture
def release(monkeypatch):
    """An event; documents are not translated before it is set."""
    released = threading.Event()
    stream = documents.translated

    def translate_when_released(*arguments, **keywords):
        while not released.wait(0.01):
            documents.between_steps()
        return stream(*arguments, **keywords)

    monkeypatch.setattr(documents, "translated", translate_when_released)
    yield released
    released.set()


@pytest.fixture(scope="session")
def captioner_run(made_once):
    """A run folder with an untrained captioner whose attention is peaked."""
    return made_once("eyes", write_captioner)


def write_captioner(path):
    captions = [caption.text for scene in generate_scenes(60, shapes=tuple(COMMON)) for caption in scene.captions]
    assignments = [
        "model.width=32",
        "model.image_encoder.channels=8",
        "model.image_encoder.size=64",
        "data.tokenizer.vocabulary=120",
    ]
    assignments += ["decoding.max_length_ratio=0", "decoding.max_length_extra=12"]
    settings = resolve(preset="caption-soft", assignments=assignments)
    tokenizer = Tokenizer.learn([Pair("", text) for text in captions], settings.data.tokenizer, seed=1)
    torch.manual_seed(3)
    model = build_model(settings.model, tokenizer.source_size, tokenizer.target_size)
    with torch.no_grad():  # so that attention is peaked and captions of images differ
        for name, weight in model.named_parameters():
            if "score" in name or name.startswith(("output", "bridges")):
                weight.mul_(6)
    folder = RunFolder(path)
    folder.begin(settings, tokenizer)
    folder.save_model(model, tokenizer, {})


@pytest.fixture(scope="session")
def scene():
    """A picture of a scene, as PNG."""
    return png(paint(next(generate_scenes(1, seed=5, shapes=tuple(COMMON))), 96))


def png(picture, kind="PNG"):
    """Return a picture encoded as a file."""
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="session")
def run_with_features(run, made_once):
    """The same model with a dictionary of its neurons."""

    def fill(folder):
        folder = shutil.copytree(run, folder / run.name)
        translator = Translator.load(folder, "cpu", "torch")
        transcoders = {}
        for name, sublayer in sublayers_of(translator.model).items():
            transcoders[name] = Transcoder.of_neurons(sublayer, 64, 8).requires_grad_(False)
        digest = translator.loaded.folder.model_digest()
        dictionary = Dictionary(transcoders, DictionaryConfiguration(digest, 2, 8, 0, 1, ("text.tsv",), 0))
        dictionary.save(folder)
        pairs = [(pair.source, pair.target) for pair in generate(40, max_words=8)]
        find_contexts(translator, dictionary, pairs, console=Console(quiet=True)).save(folder)

    return made_once("features", fill) / run.name
