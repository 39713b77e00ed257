"""The models of the lessons: the demo, and four small recurrent translators; each is trained when it is wanted."""

from __future__ import annotations

import json
import os
from pathlib import Path

from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import Pair
from translucid.ground.console import Console
from translucid.lessons.demonstration import train_demo
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import run_experiment

RECURRENT = {
    "none": "rnn-none",
    "additive": "rnn-bahdanau",
    "dot": "rnn-luong-dot",
    "general": "rnn-luong-general",
}
"""By its alignment score, the preset of each recurrent translator of the lessons."""
SETTINGS = {
    "model.width": 96,
    "model.bidirectional": True,
    "data.source_language": "en",
    "data.target_language": "es",
    "data.tokenizer.vocabulary": 1200,
    "training.max_steps": 1200,
    "training.warmup": 100,
    "training.learning_rate": 0.006,
    "training.cooldown": 0.4,
    "training.averaging": 0.99,
    "training.validate_every": 600,
}
"""What differs from the presets: small models, trained within a minute or two each."""
PAIRS, VALID, WORDS = 40_000, 200, 12
"""Sentence pairs of the phrasebook, those held out, and the most words of a side."""


def runs_folder() -> Path:
    """Return the folder of the runs: what the environment says in TRANSLUCID_LEARN_RUNS, or `runs`, here or above."""
    if given := os.environ.get("TRANSLUCID_LEARN_RUNS"):
        return Path(given)
    here = Path.cwd()
    return next(
        (folder / "runs" for folder in (here, *here.parents) if (folder / "runs" / "demo").is_dir()), here / "runs"
    )


def demo_run(runs: Path | None = None, device: str = "auto") -> Path:
    """Return the run of `translucid demo`, `demo` in the folder of the runs; it is trained first if it is not there."""
    run = (runs or runs_folder()) / "demo"
    if not finished(run):
        train_demo(run, overwrite=False, device=device, console=Console(stderr=True))
    return run


def recurrent_run(score: str, runs: Path | None = None, device: str = "auto") -> Path:
    """Return the run of a small recurrent translator; it is trained if it is not there.

    Args:
        score: of its attention: `none`, `additive`, `dot` or `general`.
        runs: the folder of the runs; see `runs_folder`.
        device: as for `translucid train`.
    """
    run = (runs or runs_folder()) / RECURRENT[score]
    if not finished(run):
        begun = RunFolder(run).exists
        pairs = [Pair(p.source, p.target) for p in generate(PAIRS, split="train", max_words=WORDS)]
        held_out = [Pair(p.source, p.target) for p in generate(VALID, split="valid", max_words=WORDS)]
        run_experiment(
            RunFolder(run).configuration() if begun else resolve(preset=RECURRENT[score], overrides=SETTINGS),
            run,
            corpora=Corpora.of(pairs, held_out),
            resume=begun,
            device=device,
            console=Console(stderr=True),
        )
    return run


def finished(run: Path) -> bool:
    """Whether a training has come to its end there, or the run was given away without its state."""
    folder = RunFolder(run)
    if not folder.model_file.exists() or not folder.metrics_file.exists():
        return folder.model_file.exists()
    steps = [json.loads(row).get("step", 0) for row in folder.metrics_file.read_text(encoding="utf-8").splitlines()]
    return max(steps, default=0) >= (folder.configuration().training.max_steps or 0)
