"""Shared fixtures and settings of the training tests."""

import pytest

from tests.conftest import IMAGE_ENCODER
from translucid.ground.console import Console
from translucid.runs.configuration import resolve
from translucid.training.experiment import run_experiment

TINY = [*IMAGE_ENCODER, "model.dropout=0.2"]
KINDS = {
    "caption-soft": [],
    "caption-hard": [],
    "caption-transformer": ["model.heads=2", "model.feed_forward=16"],
}
TRAINING = [
    "training.batch_tokens=600",
    "training.validate_every=4",
    "training.validate_sentences=3",
    "training.log_every=2",
    "training.max_steps=9",
    "decoding.max_length_extra=12",
]
SHORT_CAPTIONS = "data.max_tokens=14"
"""A setting that leaves out longer captions, so that each update takes half the time."""


@pytest.fixture(scope="session")
def train_captioner(scenes):
    """Train a tiny captioner on the scenes: train_captioner(folder, "caption-soft", "training.max_steps=5")."""

    def training(folder, kind="caption-soft", *settings, images=None, output=None, **options):
        files = [
            f"data.train=[{scenes / 'train.tsv'}]",
            f"data.valid=[{scenes / 'valid.tsv'}]",
            f"data.images=[{images or scenes / 'images.tar'}]",
        ]
        configuration = resolve(preset=kind, assignments=[*TINY, *KINDS[kind], *TRAINING, *files, *settings])
        console = Console(quiet=output is None, file=output, width=1000)
        return run_experiment(configuration, folder, device="cpu", console=console, **options).progress

    return training
