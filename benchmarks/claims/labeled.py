"""Shared by the claims about labels: labeled texts, cached classifiers, and their accuracy."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.bag_of_bigrams import accuracies, drawn
from benchmarks.claims.common import train_once
from benchmarks.claims.guessing import LabelGuesser
from bitext.pair import Pair
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.kernels.devices import choose_device
from translucid.kernels.rounding import bfloat16_is_faster, mixed_precision
from translucid.language.text_classifier import TextClassifier
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.runs.initialization import settings_from
from translucid.runs.run_folder import RunFolder

Settings = dict[str, Any]
"""Settings by key, as for --set."""
Record = dict[str, Any]
"""`task`, `way`, `labels`, `seed`, `accuracy` in percent; trainings also have `minutes`, `steps` and `settings`."""
SHARE = 0.7
"""The share of the most confident pseudo-labels that a classifier is trained on."""
WATCHED = 100
"""Texts for the one validation at the end of a training; no checkpoint is selected with it."""


class Task(NamedTuple):
    """A classification task."""

    name: str
    train: list[Pair]
    """Labeled texts to sample from."""
    watched: list[Pair]
    """Texts for the validation at the end of a training; see `WATCHED`."""
    held_out: list[Pair]
    """The texts that all figures are computed on."""

    @property
    def labels(self) -> list[str]:
        """Labels in the order of a classifier's outputs."""
        return sorted({text.target for text in self.train})


def reviews(folder: Path, count: int) -> Task:
    """Return the reviews of IMDb; `count` of val.jsonl.gz are held out, always the same."""
    held_out = read_reviews(folder / "val.jsonl.gz")
    random.Random(7).shuffle(held_out)
    return Task("imdb", read_reviews(folder / "train.jsonl.gz"), held_out[:WATCHED], held_out[-count:])


def read_reviews(file: Path) -> list[Pair]:
    """Read reviews as one line each, without `<br />`."""
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Pair(" ".join(re.sub(r"<br\s*/?>", " ", row["text"]).split()), row.get("label", "")) for row in rows]


def questions(folder: Path) -> Task:
    """Return the questions of TREC-6 with their labels, without duplicates; a fixed tenth is held out."""
    lines = (folder / "train.tsv").read_text(encoding="utf-8").splitlines()
    by_text: dict[str, Pair] = {}
    for line in lines:
        coarse_label, _, question = line.split("\t")
        by_text[question.lower()] = Pair(question, coarse_label)
    rows = list(by_text.values())
    random.Random(1).shuffle(rows)
    tenth = len(rows) // 10
    return Task("trec6", rows[tenth:], rows[tenth:][:WATCHED], rows[:tenth])


def sample(task: Task, count: int | None, seed: int) -> list[Pair]:
    """Return random labeled texts, balanced over the labels; all texts without a number."""
    rows = drawn(np.array([text.target for text in task.train]), count, seed)
    return [task.train[row] for row in rows]


def fresh_run(language: Path, folder: Path, seed: int) -> Path:
    """Return a run with the tokenizer and architecture of a language model, and fresh weights."""
    before, run = RunFolder(language), RunFolder(folder)
    if not run.model_file.exists():
        configuration, tokenizer = before.configuration(), before.tokenizer()
        run.begin(configuration, tokenizer)
        torch.manual_seed(seed)
        sizes = tokenizer.source_size, tokenizer.target_size, tokenizer.target_vocabulary
        run.save_model(build_model(configuration.model, *sizes), tokenizer, {"step": 0})
    return folder


class Lab:
    """Trains classifiers once each, and caches their predictions for held-out texts."""

    def __init__(self, runs: Path, console: Console) -> None:
        """`runs`: the folder of all classifiers."""
        self.runs, self.console = runs, console

    def train(
        self,
        method: str,
        task: Task,
        count: int | None,
        seed: int,
        language: Path,
        settings: Settings,
        pseudo_labeled: Sequence[Pair] = (),
    ) -> str:
        """Train a classifier on `count` texts unless it exists; return the name of its run.

        Args:
            method: the name of the method.
            task: the classification task.
            count: the number of texts with labels; None for all.
            seed: seed of the sample of texts and of the training.
            language: the language model that initializes it.
            settings: settings that override the preset.
            pseudo_labeled: texts with pseudo-labels.
        """
        name = run_name(method, task, count, seed)
        if not (self.runs / name / "result.json").exists():
            self.console.rule(name)
            fixed = {"training.seed": seed, "training.validate_every": 1_000_000_000}
            configuration = resolve(
                preset="classifier", overrides=settings | fixed, initial_settings=settings_from(language, "classifier")
            )
            texts = sample(task, count, seed)
            train_once(self.runs / name, configuration, [*texts, *pseudo_labeled], task.watched)
            shutil.rmtree(self.runs / name / "state", ignore_errors=True)  # needed only to resume training
            facts = json.loads((self.runs / name / "done.json").read_text())
            score = percent_right(self.probabilities(name, task.name, task.held_out), task.held_out, task.labels)
            self._save(
                name, {**about(method, task, len(texts), seed), "accuracy": score, **facts, "settings": settings}
            )
        return name

    def average(self, method: str, task: Task, count: int | None, seed: int, names: Sequence[str]) -> str:
        """Average the probabilities of several runs; return the name of the result."""
        name = run_name(method, task, count, seed)
        if not (self.runs / name / "result.json").exists():
            mean = np.mean([self.probabilities(member, task.name, task.held_out) for member in names], 0)
            score = percent_right(mean, task.held_out, task.labels)
            number = json.loads((self.runs / names[0] / "result.json").read_text())["labels"]
            self._save(name, {**about(method, task, number, seed), "accuracy": score})
        return name

    def bags(self, task: Task, count: int | None, seed: int) -> None:
        """Train both bag-of-words baselines on the classifiers' training texts."""
        if not (self.runs / run_name("nb-svm", task, count, seed) / "result.json").exists():
            (texts, y), (test, truth) = (
                map(np.array, zip(*pairs, strict=True)) for pairs in (sample(task, count, seed), task.held_out)
            )
            for method, value in accuracies(texts, y, test, truth).items():
                self._save(
                    run_name(method, task, count, seed),
                    {**about(method, task, len(texts), seed), "accuracy": 100 * value},
                )

    def guess(self, task: Task, count: int, seed: int, texts: Sequence[str]) -> list[Pair]:
        """Predict pseudo-labels from `count` labels; return the most confident ones, and record the accuracy of all."""
        labeled = sample(task, count, seed)
        known = {text.source for text in labeled}
        texts = [text for text in texts if text not in known]
        guesser = LabelGuesser.learn(labeled, texts, share=SHARE)
        predicted = guesser.judge.predict(guesser.space.transform([text.source for text in task.held_out]))
        right = [label == text.target for label, text in zip(predicted, task.held_out, strict=True)]
        record = {**about("guesses", task, count, seed), "accuracy": 100 * float(np.mean(right))}
        self._save(run_name("guesses", task, count, seed), record)
        return [Pair(text, guess.label) for text, guess in zip(texts, guesser.guess(texts), strict=True) if guess]

    def probabilities(self, name: str, texts_name: str, texts: Sequence[Pair]) -> NDArray[np.floating]:
        """Return the probabilities [texts, labels] of a run, cached in its folder under the name of the texts."""
        file = self.runs / name / f"{texts_name}.npy"
        if not file.exists():
            device = choose_device("auto")
            with mixed_precision(device, enabled=bfloat16_is_faster(device)):  # as in training
                member = TextClassifier.load(self.runs / name).members[0]
                computed = member.probabilities([text.source for text in texts])
            with file.open("wb") as out:
                np.save(out, computed)
        loaded: NDArray[np.floating] = np.load(file)
        return loaded

    def records(self) -> list[Record]:
        """Return all results so far."""
        return [json.loads(file.read_text()) for file in sorted(self.runs.glob("*/result.json"))]

    def _save(self, name: str, record: Record) -> None:
        (self.runs / name).mkdir(parents=True, exist_ok=True)
        write_atomically(self.runs / name / "result.json", json.dumps(record).encode())
        self.console.print(f"{name}: {record['accuracy']:.1f} %")


def run_name(method: str, task: Task, count: int | None, seed: int) -> str:
    """Return the name of a run."""
    return f"{task.name}-{method.replace(' ', '-')}-{count or 'all'}-{seed}"


def about(method: str, task: Task, labels: int, seed: int) -> Record:
    """Return the common fields of a record."""
    return {"task": task.name, "way": method, "labels": labels, "seed": seed, "held out": len(task.held_out)}


def percent_right(probabilities: NDArray[np.floating], texts: Sequence[Pair], labels: Sequence[str]) -> float:
    """Return the accuracy in percent."""
    pairs = zip(probabilities.argmax(1), texts, strict=True)
    return 100 * float(np.mean([labels[column] == text.target for column, text in pairs]))
