"""Claims 8 and 10: labels that a language model saves, and ULMFiT's three techniques (Howard and Ruder 2018).

    python -m benchmarks.claims.labels --language RUN [BACKWARDS] [--part curve|guessed|tricks|trec|all] [--quick]

RUN is a language model (`lm-lstm`) trained on the unlabeled reviews, BACKWARDS one trained on reversed text. Claim 8:
the accuracy on held-out reviews by the number of labels, for classifiers initialized from RUN, classifiers from scratch
and bags of words; the same on the questions of TREC-6. Claim 10: the accuracy without discriminative rates, slanted
triangular rates or gradual unfreezing, without all of them, and with nearly frozen layers. Runs are cached; an
interrupted command resumes.

There is no early stopping: the averaged weights at the end count.

--quick uses few texts, one epoch and one seed, to check that everything runs; its figures are written beside its runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.claims.common import DATA, DOCS
from benchmarks.claims.labeled import Lab, Settings, Task, fresh_run, questions, read_reviews, reviews
from benchmarks.claims.labels_pages import write_labels, write_tricks
from bitext.pair import Pair
from translucid.ground.console import Console
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import read_header

REVIEWS: Settings = {"data.max_tokens": 256}
"""Settings of all trainings on reviews. The tables below add settings by the minimum number of labels."""
BEGUN: dict[int, Settings] = {
    0: {"training.max_epochs": 12, "training.batch_tokens": 2048, "training.learning_rate": 0.003},
    500: {"training.max_epochs": 8, "training.batch_tokens": 8192, "training.learning_rate": 0.005},
    1000: {"training.max_epochs": 6, "training.batch_tokens": 8192, "training.learning_rate": 0.005},
    2000: {"training.max_epochs": 5, "training.batch_tokens": 8192, "training.learning_rate": 0.005},
    10000: {
        "data.max_tokens": 300,
        "training.max_epochs": 4,
        "training.batch_tokens": 8192,
        "training.learning_rate": 0.003,
        "training.layer_decay": 1.5,
        "training.unfreeze": False,
        "training.averaging": 0.995,
        "model.dropout": 0.4,
        "model.language.embedding_dropout": 0.1,
        "model.language.weight_dropout": 0.2,
    },
}
"""Settings of classifiers initialized from a language model; those for the most labels equal recipes/imdb.yaml."""
GUESSED: Settings = {**BEGUN[10000], "training.max_epochs": 3}
"""Settings of classifiers that also train on pseudo-labels."""
PLAIN: Settings = {"training.layer_decay": 1.0, "training.unfreeze": False}
FRESH: Settings = {
    **PLAIN,
    "training.learning_rate": 0.003,
    "model.dropout": 0.4,
    "model.language.embedding_dropout": 0.1,
}
"""Settings of classifiers trained from scratch."""
SCRATCH: dict[int, Settings] = {
    0: {**FRESH, "training.max_epochs": 20, "training.batch_tokens": 2048},
    500: {**FRESH, "training.max_epochs": 10, "training.batch_tokens": 8192},
    1000: {**FRESH, "training.max_epochs": 8, "training.batch_tokens": 8192},
    2000: {**FRESH, "training.max_epochs": 6, "training.batch_tokens": 8192},
    10000: {},
}
SLOWLY: Settings = {**FRESH, "training.learning_rate": 0.0015, "training.batch_tokens": 4096}
SCRATCH_SLOWLY: dict[int, Settings] = {
    0: {},
    500: {**SLOWLY, "training.max_epochs": 8},
    10000: {**SLOWLY, "training.max_epochs": 3},
}
"""A second attempt from scratch: as some samples fail to train with either settings, the better run counts.

Empty settings mean that there is no second run.
"""
QUESTIONS: Settings = {
    "training.batch_tokens": 1024,
    "training.max_epochs": 10,
    "training.learning_rate": 0.004,
    "training.layer_decay": 1.5,
    "training.unfreeze": False,
    "model.dropout": 0.4,
    "model.language.embedding_dropout": 0.1,
}
STEADY: Settings = {"training.schedule": "inverse-root", "training.warmup": 10, "training.cooldown": 0.0}
TRICKS: dict[str, Settings] = {
    "one rate": {"training.layer_decay": 1.0},
    "no triangle": STEADY,
    "no unfreezing": {"training.unfreeze": False},
    "no tricks": {**PLAIN, **STEADY},
    "nearly frozen": {"training.layer_decay": 100.0},
}
"""Settings without one of the techniques. `nearly frozen` divides the learning rate by 100 once more for each layer."""
FULL = 20000
UNLABELLED = 20000
"""The number of unlabeled texts for pseudo-labels."""
METHODS = "begun", "backwards"
"""Methods in the order of the language models on the command line."""


class Experiments(NamedTuple):
    """The experiments to run."""

    lab: Lab
    language: list[Path]
    """The language model, and optionally a backward one."""
    seeds: int
    quick: bool

    def train(self, method: str, task: Task, count: int | None, seed: int, *settings: Settings, reader: int = 0) -> str:
        """Train a classifier that is initialized from a language model; later settings override earlier ones."""
        merged = {key: value for part in settings for key, value in part.items()}
        limit: Settings = {"training.max_epochs": 1} if self.quick else {}
        return self.lab.train(method, task, count, seed, self.language[reader], merged | limit)

    def train_guessed(self, task: Task, count: int, seed: int, texts: list[str]) -> None:
        """Train a classifier that is initialized from the language model on `count` labels and on pseudo-labels."""
        pseudo_labeled = self.lab.guess(task, count, seed, texts)
        limit: Settings = {"training.max_epochs": 1} if self.quick else {}
        self.lab.train("guessed", task, count, seed, self.language[0], GUESSED | limit, pseudo_labeled)

    def train_from_scratch(self, method: str, task: Task, count: int | None, seed: int, *settings: Settings) -> str:
        """Train a classifier from scratch."""
        untrained = fresh_run(self.language[0], self.lab.runs / f"unread-{seed}", seed)
        return self._replace(language=[untrained]).train(method, task, count, seed, *settings)

    def train_both(self, task: Task, count: int | None, seed: int, *settings: Settings) -> list[str]:
        """Train a classifier for each direction and average their probabilities; return the names of the runs."""
        methods = METHODS[: len(self.language)]
        names = [self.train(method, task, count, seed, *settings, reader=i) for i, method in enumerate(methods)]
        if len(names) > 1:
            self.lab.average("both", task, count, seed, names)
        return names


def fit(by_count: dict[int, Settings], count: int) -> Settings:
    """Return the settings for a number of labels."""
    return by_count[max(known for known in by_count if known <= count)]


def curve(experiments: Experiments, task: Task, counts: Sequence[int], once: int) -> None:
    """Train on more and more labels; in both directions only on the most."""
    for seed in range(1, experiments.seeds + 1):
        for count in counts:
            if seed == 1 or count < once:
                experiments.lab.bags(task, count, seed)
                experiments.train("begun", task, count, seed, REVIEWS, fit(BEGUN, count))
                for method, by_count in {"scratch": SCRATCH, "scratch slowly": SCRATCH_SLOWLY}.items():
                    if settings := fit(by_count, count):
                        experiments.train_from_scratch(method, task, count, seed, REVIEWS, settings)
    experiments.train_both(task, max(counts), 1, REVIEWS, fit(BEGUN, max(counts)))


def guessed(experiments: Experiments, task: Task, texts: list[str], count: int) -> None:
    """Train on a few labels and pseudo-labels."""
    for seed in range(1, experiments.seeds + 1):
        experiments.train_guessed(task, count, seed, texts)


def tricks(experiments: Experiments, task: Task, count: int) -> None:
    """Train without each technique."""
    for seed in range(1, experiments.seeds + 1):
        experiments.train("begun", task, count, seed, REVIEWS, fit(BEGUN, count))
        for method, change in TRICKS.items():
            experiments.train(method, task, count, seed, REVIEWS, fit(BEGUN, count), change)


def trec(experiments: Experiments, task: Task) -> None:
    """Train on TREC-6."""
    count = 200 if experiments.quick else None
    experiments.lab.bags(task, count, 1)
    for seed in range(1, experiments.seeds + 1):
        experiments.train_both(task, count, seed, QUESTIONS)
        experiments.train_from_scratch("scratch", task, count, seed, QUESTIONS, FRESH)


def test(experiments: Experiments, task: Task, count: int, texts: list[Pair]) -> None:
    """Evaluate the classifiers with the most labels on the test set."""
    names = experiments.train_both(task, count, 1, REVIEWS, fit(BEGUN, count))
    test_task = task._replace(name=f"{task.name}-test", held_out=texts)
    experiments.lab.bags(test_task, count, 1)
    for method, name in zip(METHODS, names, strict=False):
        experiments.lab.average(method, test_task, count, 1, [name])
    if len(names) > 1:
        experiments.lab.average("both", test_task, count, 1, names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--language", type=Path, nargs="+", required=True, help="one run, or one of each direction")
    parser.add_argument("--data", type=Path, default=DATA / "imdb")
    parser.add_argument("--questions", type=Path, default=DATA / "trec6")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/labels"))
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 500, 1000, 2000, FULL])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--once", type=int, default=FULL, help="one seed for this many labels or more")
    parser.add_argument("--tricks-labels", type=int, default=500)
    parser.add_argument("--held-out", type=int, default=2000, help="held-out reviews")
    parser.add_argument("--test", type=Path, help="test reviews for the classifiers with the most labels")
    parser.add_argument("--part", choices=["curve", "guessed", "tricks", "trec", "all"], default="all")
    parser.add_argument(
        "--quick", action="store_true", help="few texts, one epoch, one seed, figures not written to docs"
    )
    arguments = parser.parse_args()
    runs, docs, counts, few, held_out, seeds = (
        arguments.runs,
        DOCS,
        arguments.labels,
        arguments.tricks_labels,
        arguments.held_out,
        arguments.seeds,
    )
    if arguments.quick:
        runs = docs = arguments.runs / "quick"
        counts, few, held_out, seeds = [20, 40], 20, 50, 1
    lab = Lab(runs, Console(stderr=True))
    experiments = Experiments(lab, arguments.language, seeds, arguments.quick)
    parts = ["curve", "guessed", "trec", "tricks"] if arguments.part == "all" else [arguments.part]
    if "curve" in parts:
        curve(experiments, reviews(arguments.data, held_out), counts, arguments.once)
    if "guessed" in parts:
        texts = [text.source for text in read_reviews(arguments.data / "unlabeled.jsonl.gz")]
        guessed(
            experiments, reviews(arguments.data, held_out), texts[: 500 if arguments.quick else UNLABELLED], min(counts)
        )
    if "trec" in parts:
        trec(experiments, questions(arguments.questions))
    if "tricks" in parts:
        tricks(experiments, reviews(arguments.data, held_out), few)
    if arguments.test:
        test(
            experiments,
            reviews(arguments.data, held_out),
            max(counts),
            read_reviews(arguments.test)[: 50 if arguments.quick else None],
        )
    updates = read_header(RunFolder(arguments.language[0]).model_file)[1]["step"]
    write_labels(lab.records(), updates, docs)
    write_tricks(lab.records(), few, updates, docs)


if __name__ == "__main__":
    main()
