"""Claim 11: what helps low-resource translation most: initialization, ELMo, back-translation, or all of them.

    python benchmarks/claims/few_pairs.py [--data data/tatoeba-eng-spa] [--runs runs/claims/few-pairs]
        [--pairs 5000] [--updates 3000] [--only NAME ...] [--quick]

English to Spanish on Tatoeba. The first pairs of the training file are the parallel data; both sides of all others,
shuffled separately, are monolingual text. A language model trains on both languages. A reverse model, initialized from
it, translates each Spanish line into a source. Translation models then train on the data of each method, all with the
same number of updates. BLEU is on test.tsv with beam 5, with a paired bootstrap test against the pairs only; those also
train for as many updates as the preparation of the others takes in time. Minutes are CPU time.

Every step is a command of `translucid`; the same command resumes an interrupted benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import DATA, DOCS, table, write
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from bitext.pair import Pair
from translucid.data.readers.corpus import read_pairs
from translucid.ground.atomic import write_atomically

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python benchmarks/claims/few_pairs.py"
LANGUAGE = [
    *("model.width=192", "model.feed_forward=512", "model.layers=3", "model.context=64", "training.window=64"),
    *("training.batch_tokens=4096", "data.tokenizer.vocabulary=4000", "training.warmup=200"),
    *("training.validate_every=400", "training.max_epochs=3"),
]
ELMO = [
    *("model.width=128", "model.hidden=256", "data.tokenizer.vocabulary=4000", "training.validate_every=400"),
    *("training.max_epochs=3",),
]
SHAPE = [
    "model.width=192",
    "model.heads=4",
    "model.feed_forward=512",
    "model.encoder_layers=3",
    "model.decoder_layers=3",
]
"""The architecture from scratch; it equals that of the language model."""


MIXED = ["model.dropout=0.1", "training.batch_tokens=4096"]
"""Settings with synthetic pairs, which are twenty times as many as real ones."""
LONGER = "pairs alone, with the total time of the others"
LIMITS = ["training.max_minutes=null", "training.validate_every=500"]


def _spent() -> float:
    """Return the CPU seconds of the commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Trial:
    """A folder of data and runs; finished steps are not repeated."""

    def __init__(self, folder: Path, updates: int) -> None:
        self.folder, self.updates = folder, updates
        folder.mkdir(parents=True, exist_ok=True)

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def command(self, output: Path, *words: str | Path) -> float:
        """Run one of our commands unless it is done; return its CPU minutes."""
        note = output.with_name(output.name + ".minutes")
        if not note.exists():
            print("translucid", *words, flush=True)
            started = _spent()
            arguments = [sys.executable, "-m", "translucid", *map(str, words)]
            subprocess.run(arguments, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            write_atomically(note, f"{(_spent() - started) / 60:.2f}".encode())
        return float(note.read_text())

    def train(self, name: str, *words: str | Path, settings: Sequence[str] = (), updates: int = 0) -> float:
        """Train or resume a run."""
        limits = [f"training.max_steps={updates}", *LIMITS] if updates else []
        resume = ["--resume"] if (self / name / "config.yaml").exists() else []
        out = self / name
        return self.command(out, "train", *words, "--out", out, "--no-tune", *resume, "--set", *settings, *limits)


def prepared(trial: Trial, data: Path, count: int, quick: bool) -> None:
    """Write the pairs, and the text of each side."""
    rows = [*read_pairs(data / "train.tsv")][: 2 * count if quick else None]
    sides = {"en.txt": [pair.source for pair in rows[count:]], "es.txt": [pair.target for pair in rows[count:]]}
    write_atomically(trial / "pairs.tsv", "".join(f"{p.source}\t{p.target}\n" for p in rows[:count]).encode())
    for seed, (name, lines) in enumerate(sides.items(), 1):
        lines = [*dict.fromkeys(lines)]
        random.Random(seed).shuffle(lines)
        write_atomically(trial / name, "".join(f"{line}\n" for line in lines).encode())
    for name in ("dev", "test"):
        pairs = [*read_pairs(data / f"{name}.tsv")][: 50 if quick else None]
        write_atomically(trial / f"{name}.tsv", "".join(f"{p.source}\t{p.target}\n" for p in pairs).encode())


def methods(trial: Trial) -> dict[str, tuple[list[str | Path], list[str]]]:
    """Return the options and settings of each method, by name."""
    language, elmo = trial / "language", trial / "elmo"
    halves: list[str | Path] = ["--init-from", f"encoder={language}", "--init-from", f"decoder={language}"]
    text: list[str | Path] = ["--target-text", trial / "es.txt"]
    back_translation: list[str | Path] = ["--synthetic", trial / "synthetic.tsv"]
    features: list[str | Path] = ["--elmo", elmo]
    return {
        "pairs alone": ([], ["data.tokenizer.vocabulary=2000", *SHAPE]),
        "ELMo": (features, ["data.tokenizer.vocabulary=2000", *SHAPE]),
        "halves": (halves, []),
        "halves, and text of the target language": ([*halves, *text], ["data.weights=[1,1]"]),
        "back-translation": (
            back_translation,
            ["data.tokenizer.vocabulary=4000", "data.weights=[1,3]", *SHAPE, *MIXED],
        ),
        "halves, back-translation": ([*halves, *back_translation], ["data.weights=[1,3]", *MIXED]),
        "halves, ELMo, back-translation": ([*halves, *features, *back_translation], ["data.weights=[1,3]", *MIXED]),
    }


def translated(trial: Trial, name: str, test: Sequence[Pair]) -> list[str]:
    """Translate the test sources with a run and beam 5."""
    out, sources = trial / f"{name}.out", trial / "test.en"
    write_atomically(sources, "".join(f"{pair.source}\n" for pair in test).encode())
    options = ["--input", sources, "--output", out, "--beam", "5", "--lines", "whole"]
    trial.command(out, "translate", trial / name, *options)
    return out.read_text(encoding="utf-8").splitlines()


def run(trial: Trial, only: Sequence[str]) -> list[dict[str, Any]]:
    """Train the chosen methods; return a row for each."""
    base = ["low-resource", "--train", trial / "pairs.tsv", "--valid", trial / "dev.tsv"]
    texts = [trial / "en.txt", trial / "es.txt"]
    minutes_spent = trial.train("language", "--model", "lm-transformer", "--train", *texts, settings=LANGUAGE)
    halves = ["--init-from", f"encoder={trial}/language", "--init-from", f"decoder={trial}/language"]
    options_reverse = [*halves, "--target-text", trial / "en.txt"]
    reverse = ["data.reverse=true", "data.weights=[1,1]"]
    minutes_spent += trial.train("reverse", *base, *options_reverse, settings=reverse, updates=trial.updates)
    options = ["--text", trial / "es.txt", "--out", trial / "synthetic.tsv", "--beam", "1", "--overwrite"]
    minutes_spent += trial.command(trial / "synthetic.tsv", "data", "back-translate", trial / "reverse", *options)
    test = [*read_pairs(trial / "test.tsv")]
    rows = []
    for name, (options, settings) in methods(trial).items():
        if only and name not in only:
            continue
        if "ELMo" in name:
            trial.train("elmo", "--model", "lm-bilstm", "--train", *texts, settings=ELMO)
        folder = name.replace(", ", "-").replace(" ", "-")
        minutes = trial.train(folder, *base, *options, settings=settings, updates=trial.updates)
        rows.append({"way": name, "minutes": minutes, "found": translated(trial, folder, test)})
    if not only or LONGER in only:
        total = minutes_spent + max(row["minutes"] for row in rows)
        updates = round(trial.updates * total / rows[0]["minutes"])
        options, settings = methods(trial)["pairs alone"]
        minutes = trial.train("pairs-alone-longer", *base, *options, settings=settings, updates=updates)
        translations = translated(trial, "pairs-alone-longer", test)
        rows.insert(1, {"way": LONGER, "minutes": minutes, "found": translations})
    return rows


def page(rows: Sequence[dict[str, Any]], trial: Trial, count: int) -> str:
    """Return the page."""
    test = [*read_pairs(trial / "test.tsv")]
    references = [[pair.target for pair in test]]
    systems = [(row["way"], row["found"]) for row in rows]
    metric = BLEU(references=references)
    if len(systems) > 1:
        _, scores = PairedTest(systems, {"BLEU": metric}, None, test_type="bs", n_samples=1000)()
        results = scores["BLEU"]
    else:
        results = [BLEU().corpus_score(systems[0][1], references)]
    cells = []
    for row, result in zip(rows, results, strict=True):
        p = getattr(result, "p_value", None)
        cells.append([row["way"], f"{result.score:.1f}", "" if p is None else f"{p:.3f}", f"{row['minutes']:.0f}"])
    minutes = {
        name: float((trial / f"{name}.minutes").read_text()) for name in ("language", "reverse", "synthetic.tsv")
    }
    duration = f"{minutes['language']:.0f} minutes, the reverse model {minutes['reverse']:.0f}"
    lines = [
        "# Claim 11: low-resource translation",
        "",
        f"English to Spanish, the first {count:,} pairs of Tatoeba, and monolingual text of 93,000 and 102,000 lines.",
        f"The language model takes {duration}, and back-translation {minutes['synthetic.tsv']:.0f}.",
        f"Each row is one run of {trial.updates:,} updates; minutes are CPU time. BLEU on {len(test):,} held-out",
        "sentences, beam 5; p from a paired bootstrap test against the first row.",
        "",
        table(["method", "BLEU", "p", "minutes"], cells),
        f"To reproduce: `{COMMAND}`",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA / "tatoeba-eng-spa")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/few-pairs"))
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    count = 300 if arguments.quick else arguments.pairs
    trial = Trial(arguments.runs, 20 if arguments.quick else arguments.updates)
    if not (trial / "test.tsv").exists():
        prepared(trial, arguments.data, count, arguments.quick)
    rows = run(trial, arguments.only)
    text = page(rows, trial, count)
    durations = [{"way": row["way"], "minutes": row["minutes"]} for row in rows]
    write_atomically(trial / "rows.json", json.dumps(durations, indent=1).encode())
    write("11-few-pairs.md", text, arguments.runs if arguments.quick or arguments.only else DOCS)


if __name__ == "__main__":
    main()
