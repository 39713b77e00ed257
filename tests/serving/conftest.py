"""A server over a model that has learned next to nothing, and clients for it."""

import pytest
from fastapi.testclient import TestClient

from translucid.builtin.phrasebook import generate
from translucid.data.corpus import Pair
from translucid.ground.console import Console
from translucid.runs.configuration import resolve
from translucid.runs.corpora import Corpora
from translucid.serving.app import create_app
from translucid.serving.catalogue import load
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
]


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run folder, English to Spanish."""
    folder = tmp_path_factory.mktemp("served") / "tiny"
    pairs = [Pair(p.source, p.target) for p in generate(320, max_words=8)]
    corpora = Corpora.of(pairs[:300], pairs[300:])
    run_experiment(resolve(assignments=SETTINGS), folder, corpora=corpora, console=Console(quiet=True), device="cpu")
    return folder


@pytest.fixture
def serve(run):
    """Start a server in this process: serve(characters=100) is a client for it."""
    clients = []

    def start(*runs: str, **options: object) -> TestClient:
        given = ServerOptions(**{"hosts": ("testserver",), **options})  # type: ignore[arg-type]
        client = TestClient(
            create_app(load(list(runs) or [str(run)], "cpu", given), given), raise_server_exceptions=False
        )
        client.__enter__()
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve):
    """A client for a server with the usual limits."""
    return serve()
