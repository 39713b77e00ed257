"""The runs of the lessons, each trained when it is needed, and their models, each loaded when a lesson first needs it.

They are the demo, four small recurrent translators and one that reads the previous sentence.
"""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path

from bitext.pair import Pair
from translucid.api.translation import Translation
from translucid.api.translator import Translator
from translucid.corpora.phrasebook.discourse import generate_passages
from translucid.corpora.phrasebook.generation import Split
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.lessons.demonstration import phrasebook_pairs, resumed_or_new, train_demo
from translucid.lessons.lessons import Lesson
from translucid.models.kinds import figures_of_lesson, resolved
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import CIRCUITS, RunFolder
from translucid.training.experiment import run_experiment

RECURRENT = {
    "none": "rnn-none",
    "additive": "rnn-bahdanau",
    "dot": "rnn-luong-dot",
    "general": "rnn-luong-general",
}
"""The presets of the recurrent translators by alignment score."""
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
"""The settings that differ from the presets: each small model trains in a minute or two."""
CONTEXT = {
    "model.width": 64,
    "model.feed_forward": 256,
    "model.decoder_layers": 1,
    "data.context": 1,
    "data.source_language": "en",
    "data.target_language": "es",
    "data.tokenizer.vocabulary": 800,
    "training.batch_tokens": 1024,
    "training.learning_rate": 0.006,
    "training.warmup": 80,
    "training.max_steps": 2000,
    "training.validate_every": 2000,
    "training.validate_sentences": 100,
}
"""The settings of the run with document context that differ from those of the demo: it trains in a minute or two."""
PASSAGES, VALID_PASSAGES = 16_000, 200
"""The numbers of passages from which it learns, and with which it is validated, before longer ones are left out."""
PAIRS, VALID, WORDS = 40_000, 200, 12
"""The numbers of training and validation pairs of the phrasebook, and the maximum number of words of a side."""


def runs_folder() -> Path:
    """Return the folder of the runs: TRANSLUCID_LEARN_RUNS, or the nearest `runs` with a demo, here or above."""
    if setting := os.environ.get("TRANSLUCID_LEARN_RUNS"):
        return Path(setting)
    working_folder = Path.cwd()
    for folder in (working_folder, *working_folder.parents):
        if (folder / "runs" / "demo").is_dir():
            return folder / "runs"
    return working_folder / "runs"


def demo_run(runs: Path | None = None, device: str = "auto") -> Path:
    """Return the run of `translucid demo` in the folder of the runs; it is trained if it is missing."""
    run = (runs or runs_folder()) / "demo"
    if not finished(run):
        train_demo(run, overwrite=False, device=device, console=Console(stderr=True))
    return run


def recurrent_run(score: str, runs: Path | None = None, device: str = "auto") -> Path:
    """Return the run of a small recurrent translator; it is trained if it is missing.

    Args:
        score: the alignment score: `none`, `additive`, `dot` or `general`.
        runs: the folder of the runs; `runs_folder` finds it if not given.
        device: the device, as in `translucid train`.
    """
    run = (runs or runs_folder()) / RECURRENT[score]
    if finished(run):
        return run
    configuration, interrupted = resumed_or_new(run, RECURRENT[score], SETTINGS)
    pairs, held_out = phrasebook_pairs(PAIRS, "train", WORDS), phrasebook_pairs(VALID, "valid", WORDS)
    corpora, console = Corpora.of(pairs, held_out), Console(stderr=True)
    run_experiment(configuration, run, corpora=corpora, resume=interrupted, device=device, console=console)
    return run


def context_run(runs: Path | None = None, device: str = "auto") -> Path:
    """Return the run that reads the previous sentence; it is trained if it is missing."""
    run = (runs or runs_folder()) / "context"
    if finished(run):
        return run
    configuration, interrupted = resumed_or_new(run, "demo", CONTEXT)
    corpora = Corpora.of(passage_pairs(PASSAGES, "train"), passage_pairs(VALID_PASSAGES, "valid"))
    run_experiment(configuration, run, corpora=corpora, resume=interrupted, device=device, console=Console(stderr=True))
    return run


def passage_pairs(count: int, split: Split) -> list[Pair]:
    """Return the sentences of those passages that have two, whose gender the first one decides; each is a document."""
    pairs = []
    for number, passage in enumerate(generate_passages(count, split=split)):
        if len(passage.sentences) == 2 and passage.phenomenon in ("pronoun", "adjective"):
            pairs += [Pair(*sentence).of_document(number) for sentence in passage.sentences]
    return pairs


def finished(run: Path) -> bool:
    """Return whether a training has finished, or its run was copied without its state."""
    folder = RunFolder(run)
    # A run without metrics was copied without its state.
    if not folder.model_file.exists() or not folder.metrics_file.exists():
        return folder.model_file.exists()
    last = 0
    for row in folder.metrics_file.read_text(encoding="utf-8").splitlines():
        last = max(last, json.loads(row).get("step", 0))
    return last >= (folder.configuration().training.max_steps or 0)


class Models:
    """The Transformer of the demo, recurrent translators by their alignment score, and one with document context."""

    def __init__(self, runs: Path) -> None:
        """`runs`: the folder of the runs; a missing one is trained when it is needed."""
        self.runs = runs
        self._recurrent: dict[str, Translator] = {}

    def has(self, lesson: Lesson) -> bool:
        """Return whether all models of a lesson are trained, and have what its figure needs beside them."""
        figures = figures_of_lesson(lesson.name)
        is_ready = resolved(figures.is_ready) if figures else Path.is_dir
        return self.has_runs(lesson) and all(is_ready(self.runs / name) for name in lesson.runs)

    def has_runs(self, lesson: Lesson) -> bool:
        """Return whether all models of a lesson are trained."""
        return all(map(self._finished, lesson.runs))

    def changed(self, lesson: Lesson) -> float:
        """Return when a file on which the figure of a lesson depends was written last, in seconds."""
        files = [self.runs / name / "model.safetensors" for name in lesson.runs]
        if figures_of_lesson(lesson.name):
            for name in lesson.runs:
                files += (self.runs / name / CIRCUITS).glob("*.*")
        return max(file.stat().st_mtime for file in files)

    def trained(self) -> list[str]:
        """Return the names of the trained runs."""
        return list(filter(self._finished, ("demo", *RECURRENT.values(), "context")))

    def _finished(self, name: str) -> bool:
        return finished(self.runs / name)

    def load(self) -> None:
        """Load all models; missing ones are trained first."""
        self.demo.model.eval()
        for score in RECURRENT:
            self.recurrent(score)
        self.context.model.eval()

    @cached_property
    def demo(self) -> Translator:
        """The demo with our own search, whose steps the lessons show."""
        return Translator.load(demo_run(self.runs), "cpu", "torch")

    @cached_property
    def context(self) -> Translator:
        """The translator that reads the previous sentence."""
        return Translator.load(context_run(self.runs), "cpu", "torch")

    def recurrent(self, score: str) -> Translator:
        """Return the translator with this alignment score: `none`, `additive`, `dot` or `general`."""
        if score not in self._recurrent:
            self._recurrent[score] = Translator.load(recurrent_run(score, self.runs), "cpu", "torch")
        return self._recurrent[score]


def translated(translator: Translator, text: str) -> tuple[Translation, list[int], list[int]]:
    """Translate a sentence; return the translation, and the ids of source and target with their end tokens.

    Raises:
        UserError: there is nothing to translate, or the text is too long for the model.
    """
    translation = translator.translate(text, split=False)
    # The figures have room for one piece.
    if len(translation.parts) != 1:
        raise UserError("a lesson takes one sentence", fix="Give a short one.")
    ((piece, best),) = translation.parts
    return translation, piece.ids, best.with_end
