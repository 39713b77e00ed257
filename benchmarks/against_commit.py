"""Compare training with another checkout: speed, as ratios of the same steps in turn, and the loss of these steps.

    python benchmarks/against_commit.py ../older/src [--presets tiny small base rnn-bahdanau] [--steps 30]

For each preset, two processes run `translucid train` on the same synthetic corpus with the same seed: this checkout and
the other. One makes a step while the other waits, and the order alternates, so both process the same batches and suffer
the same drift of the machine. The ratio of a step is the other's time divided by ours: above 1, this checkout is
faster. The script prints the median ratio over the steps with its interquartile range, and the median ratio of CPU
time, which is less sensitive to other load. The losses are the means over all steps, of ours and of the other; they are
equal if the same seed gives the same results.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

OURS = Path(__file__).parents[1] / "src"
WARM = 3
"""Warm-up steps."""
CHILD = """
import os, sys, time
from translucid.cli.main import main
from translucid.training.trainer import Trainer

update, channel = Trainer._update, os.fdopen(os.dup(1), "w")

def timed(self, *arguments):
    print("ready", file=channel, flush=True)
    if not sys.stdin.readline():
        os._exit(0)
    started, worked = time.perf_counter(), time.process_time()
    update(self, *arguments)
    print(time.perf_counter() - started, time.process_time() - worked, file=channel, flush=True)

Trainer._update = timed
main(sys.argv[1:])
"""


def corpus(file: Path, pairs: int) -> Path:
    """Write sentence pairs of synthetic words, common and rare ones as in a natural language."""
    draw = random.Random(1)
    words = ["".join(draw.choices("aeinorstlkmupd", k=draw.randint(2, 9))) for _ in range(20_000)]
    often = [1 / rank for rank in range(1, len(words) + 1)]
    sides = [draw.choices(words, often, k=draw.randint(4, 24)) for _ in range(2 * pairs)]
    lines = (" ".join(one) + "\t" + " ".join(other) for one, other in zip(sides[::2], sides[1::2], strict=True))
    file.write_text("\n".join(lines) + "\n")
    return file


class Training:
    """A process that makes a step on request."""

    def __init__(self, source: Path, preset: str, folder: Path, batch_tokens: int, precision: str, steps: int) -> None:
        options = [f"training.batch_tokens={batch_tokens}", f"training.precision={precision}", "training.seed=1"]
        options += ["data.tokenizer.vocabulary=8000", "training.max_steps=1000000", "training.validate_every=1000000"]
        options += [f"training.log_every={steps}"]
        self.metrics = folder / "run" / "metrics.jsonl"
        arguments = [
            "train",
            "--model",
            preset,
            "--out",
            str(folder / "run"),
            "--train",
            str(folder.parent / "train.tsv"),
        ]
        arguments += ["--valid", str(folder.parent / "valid.tsv")] + [part for o in options for part in ("--set", o)]
        folder.mkdir()
        environment = os.environ | {"PYTHONPATH": str(source.resolve()), "OMP_WAIT_POLICY": "passive"}
        self.errors = folder / "errors"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", CHILD, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )

    def line(self) -> str:
        output = self.process.stdout.readline().strip()
        if not output:
            raise SystemExit(self.errors.read_text())
        return output

    def step(self) -> tuple[float, float]:
        """Make one step; return its wall-clock and CPU seconds. The next batch is ready afterwards."""
        print("go", file=self.process.stdin, flush=True)
        seconds, worked = map(float, self.line().split())
        self.line()
        return seconds, worked

    def end(self) -> float:
        """End the training; return the mean loss of its steps."""
        self.process.stdin.close()
        self.process.wait()
        return json.loads(self.metrics.read_text().splitlines()[-1])["loss"]


def ratio_quartiles(ours: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the quartiles of the ratio other / ours over the steps."""
    ratios = [other_seconds / our_seconds for our_seconds, other_seconds in zip(ours, other, strict=True)]
    return statistics.quantiles(ratios, n=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other", type=Path, help="the src folder of the other checkout")
    parser.add_argument("--presets", nargs="+", default=["tiny", "small", "base", "rnn-bahdanau"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    print("| preset | ms per step | other / ours, median | interquartile range | CPU time | loss, ours and other |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for preset in arguments.presets:
        with tempfile.TemporaryDirectory() as name:
            corpus(Path(name) / "train.tsv", 20_000), corpus(Path(name) / "valid.tsv", 10)
            trainings = [
                Training(
                    source,
                    preset,
                    Path(name) / side,
                    arguments.batch_tokens,
                    arguments.precision,
                    WARM + arguments.steps,
                )
                for side, source in (("ours", OURS), ("other", arguments.other))
            ]
            for training in trainings:
                training.line()
            steps: tuple[list[tuple[float, float]], ...] = ([], [])
            for step in range(WARM + arguments.steps):
                for side in (0, 1) if step % 2 else (1, 0):
                    steps[side].append(trainings[side].step())
            losses = [training.end() for training in trainings]
        ours, other = (list(zip(*timings[WARM:], strict=True)) for timings in steps)
        clock, worked = map(ratio_quartiles, ours, other)
        low, middle, high = clock
        milliseconds = 1000 * statistics.median(ours[0])
        ratios = f"{middle:.3f} | {low:.3f} to {high:.3f} | {worked[1]:.3f}"
        print(f"| {preset} | {milliseconds:.0f} | {ratios} | {losses[0]:.6g} {losses[1]:.6g} |", flush=True)


if __name__ == "__main__":
    main()
