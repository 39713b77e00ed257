"""The main job on the built-in phrasebook: what `translucid demo` trains."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from translucid.atomic import write_atomically
from translucid.data.corpus import Pair
from translucid.data.filtering import Skipped
from translucid.data.phrasebook import Phrase, generate
from translucid.training.configuration import Configuration, resolve
from translucid.training.experiment import Corpora, run_experiment
from translucid.training.run_folder import RunFolder

TRAIN, VALID, TEST = 60_000, 500, 1000
"""Sentence pairs of each split."""


def configuration() -> Configuration:
    """Return the settings of the demo."""
    return resolve(preset="demo", overrides={"data.source_language": "en", "data.target_language": "es"})


def corpora() -> Corpora:
    """Return the phrasebook's training and validation pairs."""
    train, skipped = _pairs(generate(TRAIN, split="train")), Skipped()
    skipped.kept = len(train)
    return Corpora(train, _pairs(generate(VALID, split="valid")), skipped)
