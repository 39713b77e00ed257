"""Measure translation systems in turn: BLEU and chrF, time for one sentence, throughput, and size on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bitext.pair import Pair
from bitext.reading import read_at_most
from translucid.api.translator import Translator
from translucid.data.readers.corpus import sources_of, targets_of
from translucid.decoding.decoding_options import CandidateVocabulary
from translucid.engines.tuned import ResultFile, Tuned
from translucid.evaluation.metrics import Criterion
from translucid.ground.console import Console, progress_bar

ROUNDS = 3
"""The number of times that each system is timed; the median counts."""
SECONDS = 1.0
"""The time for single sentences of a system in a round; batches get the same time."""
ALONE = 40
"""The largest number of sentences that are translated one at a time in a round."""
FEWEST_ALONE = 5
"""The smallest number of them, however slow the system is."""
FEWEST_TOGETHER = 64
"""The smallest number of sentences that are translated together."""
LARGEST = 1 << 22
"""The largest size of a saved report, in bytes."""
MEGABYTE = 1e6

Role: TypeAlias = Literal["teacher", "student"]


class Round(BaseModel):
    """The speed of a system in one round."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    milliseconds: float
    """The median time for a sentence that is translated alone."""
    sentences_per_second: float
    """The number of sentences that are translated in a second, many together."""
    words_per_second: float
    """The number of source words, separated by white space, that are translated in a second, many together."""


class Measured(BaseModel):
    """The figures of one system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    tuned: Tuned
    """The engine, its weights and its candidates."""
    beam: int
    bleu: float
    chrf: float
    bytes: int
    """The size on disk of all that the system needs: the exported folder with its tokenizer, or the run folders."""
    seconds: float
    """The time of the first translation of all sentences, by which the size of a batch of later ones is chosen."""
    rounds: list[Round] = []

    @property
    def name(self) -> str:
        """The name of the system, without its beam."""
        weights: str = self.tuned.quantization
        if self.tuned.engine == "torch":
            weights += ", our search"
        return f"{self.role}, {weights}{CANDIDATES[self.tuned.considered]}"

    @property
    def megabytes(self) -> float:
        """The size on disk in 10^6 bytes."""
        return self.bytes / MEGABYTE

    @property
    def milliseconds(self) -> float:
        """The time for one sentence: the median of the rounds."""
        return median(figures.milliseconds for figures in self.rounds)

    @property
    def sentences_per_second(self) -> float:
        """The throughput in sentences: the median of the rounds."""
        return median(figures.sentences_per_second for figures in self.rounds)

    @property
    def words_per_second(self) -> float:
        """The throughput in source words: the median of the rounds."""
        return median(figures.words_per_second for figures in self.rounds)


CANDIDATES: dict[CandidateVocabulary, str] = {
    "all pieces": "",
    "seen pieces": ", target-side vocabulary",
    "small shortlist": ", small shortlist",
    "large shortlist": ", large shortlist",
}
"""The part of a system's name that describes its candidates."""


class Measurements(ResultFile):
    """The figures of all systems, complete or not."""

    key: str
    """A fingerprint of everything that the figures depend on, but the machine."""
    machine: str
    """The processor, its cores and its instructions."""
    busy: float = 0.0
    """The highest load average of the last minute, the number of threads that were running or waiting for a core."""
    sentences: int
    """The number of test sentences."""
    metric: Literal["BLEU", "chrF"] = "BLEU"
    """The metric by which systems are compared: chrF where references are too short for BLEU, or BLEU is too low."""
    signatures: list[str] = Field(default_factory=list)
    """sacreBLEU's signatures of BLEU and chrF."""
    count: int | None = None
    """The number of systems; None as long as they have not been opened."""
    systems: list[Measured] = Field(default_factory=list)

    @classmethod
    def resumed(cls, file: Path, empty: Measurements) -> Measurements:
        """Return what a file has of the same systems on the same machine; `empty` if it has nothing."""
        with suppress(OSError, ValidationError):
            saved = cls.model_validate_json(read_at_most(file, LARGEST))
            if (saved.key, saved.machine) == (empty.key, empty.machine):
                return saved
        return empty

    def complete(self, rounds: int) -> bool:
        """Return whether all systems are measured."""
        done = [len(system.rounds) >= rounds for system in self.systems]
        return self.count is not None and len(done) == self.count and all(done)

    def score(self, system: Measured) -> float:
        """Return the score of a system by the metric."""
        return system.bleu if self.metric == "BLEU" else system.chrf

    def with_system(self, index: int, system: Measured) -> Self:
        """Return measurements with other figures of the system at an index, or with a new one at the end."""
        systems = [*self.systems]
        systems[index : index + 1] = [system]
        return self.model_copy(update={"systems": systems})


@dataclass(frozen=True)
class System:
    """A system that is ready to translate."""

    role: Role
    tuned: Tuned
    translator: Translator
    beam: int
    bytes: int
    """The size on disk of all that it needs."""

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate sentences, none of which is split."""
        options = self.translator.configuration.decoding.model_copy(update={"beam": self.beam, "nbest": 1})
        translations = self.translator.translate(texts, options, split=False)
        return [translation.text for translation in translations]


def measure(
    systems: Sequence[System],
    pairs: Sequence[Pair],
    measurements: Measurements,
    file: Path,
    *,
    console: Console,
    language: str | None = None,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
) -> Measurements:
    """Score each system once, and time all of them in rounds; return what was measured.

    The figures are saved after each step. What `measurements` already has is not measured again.

    Args:
        systems: the systems.
        pairs: the test sentences with references.
        measurements: the figures that there are; its systems are the first of `systems`.
        file: the file with the figures.
        console: shows the progress.
        language: the code of the target language, if it is known.
        rounds: the number of rounds.
        seconds: the time for single sentences of a system in a round; batches get the same time.
    """
    sources = sources_of(pairs)
    measurements = measurements.model_copy(update={"count": len(systems)})
    steps = len(systems) * (1 + rounds) - len(measurements.systems)
    for saved in measurements.systems:
        steps -= len(saved.rounds)
    with progress_bar(console, "measuring", steps) as advance:
        criterion = Criterion([targets_of(pairs)], language)
        for index in range(len(measurements.systems), len(systems)):
            measurements = _score_system(systems[index], sources, criterion, measurements)
            measurements.write(file)
            advance(1)
        # The systems take turns, so that a time at which the machine is busy slows all of them down.
        texts = Random(1).sample(sources, len(sources))
        for number in range(rounds):
            for index, system in enumerate(systems):
                measured = measurements.systems[index]
                if len(measured.rounds) > number:
                    continue
                timed = _time_system(system, texts, measured.seconds, seconds)
                measured = measured.model_copy(update={"rounds": [*measured.rounds, timed]})
                busy = max(measurements.busy, load_average())
                measurements = measurements.with_system(index, measured).model_copy(update={"busy": busy})
                measurements.write(file)
                advance(1)
    return measurements


def load_average() -> float:
    """Return the load average of the last minute; 0 where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _score_system(
    system: System, sources: Sequence[str], criterion: Criterion, measurements: Measurements
) -> Measurements:
    """Add a system with its scores; the first one decides on the metric."""
    started = time.perf_counter()
    texts = system.translate(sources)
    elapsed = time.perf_counter() - started
    if not measurements.systems:
        criterion.choose_metric(texts)
        measurements = measurements.model_copy(update={"metric": criterion.name})
    bleu, chrf = criterion.scores(texts)
    signatures = [f"{score.name}|{score.signature}" for score in (bleu, chrf)]
    measured = Measured(
        role=system.role,
        tuned=system.tuned,
        beam=system.beam,
        bleu=bleu.value,
        chrf=chrf.value,
        bytes=system.bytes,
        seconds=elapsed,
    )
    with_signatures = measurements.model_copy(update={"signatures": signatures})
    return with_signatures.with_system(len(measurements.systems), measured)


def _time_system(system: System, texts: Sequence[str], total_seconds: float, seconds: float) -> Round:
    """Time a system.

    Args:
        system: the system.
        texts: sentences in random order.
        total_seconds: the time in which the system translates all of them, roughly.
        seconds: the time for single sentences; batches get the same time.
    """
    system.translate(texts[:1])  # its memory has been displaced from the processor's cache by other systems
    times = []
    deadline = time.perf_counter() + seconds
    for text in texts[:ALONE]:
        started = time.perf_counter()
        system.translate([text])
        ended = time.perf_counter()
        times.append(ended - started)
        if ended > deadline and len(times) >= FEWEST_ALONE:
            break
    size = max(FEWEST_TOGETHER, int(len(texts) * seconds / max(total_seconds, 1e-9)))
    batch = texts[:size]
    repetitions = 0
    started = time.perf_counter()
    deadline = started + seconds
    while not repetitions or time.perf_counter() < deadline:
        system.translate(batch)
        repetitions += 1
    elapsed = time.perf_counter() - started
    words = sum(len(text.split()) for text in batch)
    return Round(
        milliseconds=1000 * median(times),
        sentences_per_second=repetitions * len(batch) / elapsed,
        words_per_second=repetitions * words / elapsed,
    )
