"""What `translucid memory learn` gains: a model learns the polite form of address from 400 corrected sentences.

    python benchmarks/memory_learning.py [--data ../shared/data/tatoeba-eng-spa] [--runs runs/memory-learning]
        [--minutes 30] [--only NAME ...]

The pairs of Tatoeba whose Spanish contains `usted` stand for corrected translations: 400 of them are the memory, the
others its test set. A small model trains on all other pairs for a number of minutes, then each method learns the memory
from it. BLEU is that of `translucid evaluate` with beam 5.

Existing results are not computed again.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
POLITE = re.compile(r"\bustede?s?\b", re.IGNORECASE)
KEPT = 400
WAYS = {
    "as it is": [],
    "max_regression=2": ["training.max_regression=2"],
    "learning_rate=0.0002": ["training.learning_rate=0.0002"],
}
BASE = {
    "data.source_language": "en",
    "data.target_language": "es",
    "data.tokenizer.vocabulary": 4000,
    "training.optimizer": "muon",
    "training.learning_rate": 0.004,
    "training.max_steps": "null",
    "training.cooldown": 0.3,
    "training.validate_every": 500,
}


def split(data: Path, folder: Path) -> None:
    """Write train.tsv, without polite sentences, memory.tsv and test.tsv, with them."""
    rows = [line.split("\t")[:2] for line in (data / "train.tsv").read_text(encoding="utf-8").split("\n") if line]
    polite = [row for row in rows if POLITE.search(row[1])]
    sources = {row[0] for row in polite}
    Random(1).shuffle(polite)
    first: dict[str, list[str]] = {}
    for row in polite:
        first.setdefault(row[0], row)
    pairs_kept = list(first.values())
    rest = [row for row in rows if row[0] not in sources]
    for name, part in (("train", rest), ("memory", pairs_kept[:KEPT]), ("test", pairs_kept[KEPT:])):
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in part), encoding="utf-8")


def translucid(*words: str | Path) -> str:
    """Run a command and return what it prints."""
    command = [sys.executable, "-m", "translucid", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


def bleu(run: Path, test: Path) -> float:
    """Score a run."""
    result = json.loads(
        translucid("evaluate", run, "--test", test, "--beam", "5", "--lines", "whole", "--no-perplexity", "--json")
    )
    return float(result["BLEU"]["value"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/memory_learning.py", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/tatoeba-eng-spa"))
    parser.add_argument("--runs", type=Path, default=Path("runs/memory-learning"))
    parser.add_argument("--minutes", type=float, default=30, help="training minutes of the base model")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    arguments = parser.parse_args()
    data, folder = arguments.data.resolve(), arguments.runs.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    split(data, folder)
    base, memory = folder / "base", folder / "mine.memory"
    if not base.exists():
        settings = [f"{name}={value}" for name, value in {**BASE, "training.max_minutes": arguments.minutes}.items()]
        files = ["--train", folder / "train.tsv", "--valid", data / "dev.tsv"]
        translucid("train", "--model", "demo", *files, "--out", base, "--set", *settings)
    translucid("memory", "add", memory, folder / "memory.tsv", "--source-language", "en", "--target-language", "es")
    runs = {"before": base}
    for method in arguments.only:
        runs[method] = folder / method.replace(" ", "-")
        if not runs[method].exists():
            began, settings = time.monotonic(), ["--set", *WAYS[method]] if WAYS[method] else []
            translucid("memory", "learn", base, memory, "--again", "--out", runs[method], *settings)
            print(f"{method}: {time.monotonic() - began:.0f} seconds", file=sys.stderr)
    print("| | on polite sentences | on Tatoeba's test set |\n| --- | ---: | ---: |")
    for name, run in runs.items():
        tests = folder / "test.tsv", data / "test.tsv"
        print(f"| {name} | {' | '.join(f'{bleu(run, test):.1f}' for test in tests)} |")


if __name__ == "__main__":
    main()
