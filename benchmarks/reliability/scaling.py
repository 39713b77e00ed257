"""What a second process gains in training on this machine: the same updates with one process and with two.

python -m benchmarks.reliability.scaling [--minutes 1]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tests.probes.kinds import TEXT
from translucid.runs.run_folder import RunFolder

VARIANTS = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes, 1 thread each": (2, 1)}


def measure(work: Path, minutes: float) -> dict[str, float]:
    """Return the median target tokens per second of each variant, with the preset `small`."""
    corpus = TEXT.write(work / "corpus", 20_000)
    rates = {}
    for name, (processes, threads) in VARIANTS.items():
        run = work / name
        starter = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] * (processes > 1)
        settings = [
            f"training.max_minutes={minutes}",
            "training.validate_every=100000",
            "data.tokenizer.vocabulary=2000",
        ]
        command = [
            sys.executable,
            *starter,
            "-m",
            "translucid",
            "train",
            "--model",
            "small",
            *corpus,
            "--out",
            str(run),
            "--no-tune",
        ]
        settings += ["training.validate_sentences=10", "training.log_every=5"]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        subprocess.run([*command, "--set", *settings], check=True, capture_output=True, env=environment)
        rows: list[dict[str, Any]] = [row for row in RunFolder(run).metrics() if row["kind"] == "training"]
        rates[name] = median(row["tokens_per_second"] for row in rows[1:])
    return rates


def table(rates: dict[str, float]) -> str:
    """Return the measurements as Markdown."""
    first = next(iter(rates.values()))
    rows = [f"| {name} | {rate:,.0f} | {rate / first:.2f} x |" for name, rate in rates.items()]
    return "\n".join(["| | target tokens per second | |", "|---|---|---|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        print(table(measure(Path(work), arguments.minutes)))


if __name__ == "__main__":
    main()
