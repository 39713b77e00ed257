"""The start of a training: processor time of `translucid train` until the first update, and what it waits for.

    OMP_NUM_THREADS=1 python benchmarks/training_start.py train.tsv dev.tsv [--pairs 100000] [--times 3]
        [--model tiny] [--sources src other/src]

A new training starts, and then `--resume`, which reads the encoded corpus. `--sources` are folders with versions of the
package, which are measured in turn.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from itertools import islice
from pathlib import Path

CHILD = """
import json, os, resource, sys, time
from translucid.cli.main import main
from translucid.data.stores.store import CorpusStore
from translucid.training import experiment, trainer
from translucid.training.optimizer import Optimizer
from translucid.training.text import TextDataset

seconds = {"imports": time.process_time()}

def timed(owner, name, stage):
    function = getattr(owner, name)
    def call(*arguments, **options):
        started = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            seconds[stage] = seconds.get(stage, 0) + time.process_time() - started
    setattr(owner, name, call)

timed(TextDataset, "learn", "vocabulary")
timed(CorpusStore, "build", "encoding")
timed(experiment, "choose_precision", "precision")
timed(Optimizer, "__init__", "optimizer")
timed(trainer.Trainer, "save", "checkpoint")
update = trainer.Trainer._update
def first_update(*arguments):
    started = time.process_time()
    update(*arguments)
    seconds["first update"] = time.process_time() - started
    total = time.process_time()
    seconds["other"], seconds["total"] = total - sum(seconds.values()), total
    seconds["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(seconds), flush=True)
    os._exit(0)
trainer.Trainer._update = first_update
main(sys.argv[1:])
"""


def started(source: str, arguments: list[str]) -> dict[str, float]:
    """Start a training; return the seconds of each stage."""
    environment = {**os.environ, "PYTHONPATH": str(Path(source).resolve())}
    command = [sys.executable, "-c", CHILD, "train", *arguments]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True)
    if completed.returncode or not completed.stdout:
        sys.exit(completed.stderr)
    stages: dict[str, float] = json.loads(completed.stdout)
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("valid", type=Path)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--sources", nargs="+", default=[str(Path(__file__).resolve().parents[1] / "src")])
    arguments = parser.parse_args()
    results: dict[str, list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        corpus, out = Path(folder) / "train.tsv", ["--out", f"{folder}/run"]
        with arguments.train.open("rb") as lines, corpus.open("wb") as few:
            few.writelines(islice(lines, arguments.pairs))
        new = ["--model", arguments.model, "--train", str(corpus), "--valid", str(arguments.valid), "--overwrite", *out]
        for _ in range(arguments.times):
            for source in arguments.sources:
                results[source].append(started(source, new))
                results[f"{source}, `--resume`"].append(started(source, ["--resume", *out]))
    print(f"| | {' | '.join(results)} |\n| --- |{' ---: |' * len(results)}")
    for stage in results[arguments.sources[0]][0]:
        cells = []
        for runs in results.values():
            values = sorted(run.get(stage, 0) for run in runs)
            cells.append(f"{statistics.median(values):,.2f} ({values[0]:,.2f} to {values[-1]:,.2f})")
        print(f"| {stage} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
