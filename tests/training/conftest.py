"""A training small enough to run many times."""

from pathlib import Path
from typing import TextIO

import pytest

from translucid.console import Console
from translucid.data.corpus import Pair
from translucid.data.phrasebook import generate
from translucid.training.configuration import resolve
from translucid.training.corpora import Corpora
from translucid.training.experiment import run_experiment

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
    ):
        configuration = resolve(assignments=[*SETTINGS, *settings])
        console = Console(quiet=said is None, file=said, width=width)
        return run_experiment(configuration, folder, corpora=data, resume=resume, device="cpu", console=console).place

    return training
