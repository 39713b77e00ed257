"""BLEU over minutes: Translucid and the fastest other toolkits, one core each, side by side on all cores.

    python benchmarks/peers/learn.py [--minutes 30] [--only ours hf opennmt eole] [--recipe FILE] [--work runs/peers]

Needs the environments and data of run.py. All translate the same 500 validation sentences greedily, and one program
scores them. Translucid uses the recipe; the others use the architecture of Wu et al. 2021 (arXiv 2105.14462), batches
of 4,096 target tokens, and a warm-up and peak learning rate that suit the short time. Their minutes are training only;
ours include translating and saving. Prints a Markdown table.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from run import reported

from translucid.data.readers.corpus import read_lines
from translucid.evaluation.metrics import bleu
from translucid.kernels.machine import cores

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAMES = {"ours": "**Translucid**", "hf": "HF MarianMT", "opennmt": "OpenNMT-py 3.5.1", "eole": "Eole 0.6.4"}


def command(name: str, minutes: float, recipe: Path, work: Path) -> list[str]:
    """Return the command line of one toolkit."""
    if name != "ours":
        script = ["learn_marian.py"] if name == "hf" else ["learn_tools.py", name]
        return [str(work / "envs" / name / "bin" / "python"), *script, str(minutes)]
    data = work / "data"
    settings = [f"training.max_minutes={minutes}", "training.validate_every=100", "training.log_every=100"]
    return [
        *(str(work / "envs" / "translucid" / "bin" / "translucid"), "train", str(recipe.resolve())),
        *("--train", f"{data}/train.{{en,de}}", "--valid", f"{data}/valid.{{en,de}}"),
        *("--out", str(work / "tools" / "learn"), "--overwrite", "--no-tune", "--set", *settings),
    ]


def pinned(core: int, line: list[str], work: Path) -> subprocess.CompletedProcess[str]:
    """Run a program on one core."""
    on_core = ["taskset", "-c", str(core), *line] if shutil.which("taskset") else line
    environment = {**os.environ, "PEERS_WORK": str(work), "OMP_NUM_THREADS": "1"}
    return subprocess.run(on_core, env=environment, cwd=HERE, stdout=subprocess.PIPE, text=True)


def points(name: str, output: str, references: list[str], work: Path) -> list[tuple[float, str, float]]:
    """Return the points of the curves: minutes, toolkit, BLEU."""
    if name == "ours":
        rows = [json.loads(line) for line in (work / "tools" / "learn" / "metrics.jsonl").read_text().splitlines()]
        return [(row["seconds"] / 60, NAMES[name], row["bleu"]) for row in rows if row["kind"] == "validation"]
    return [
        (row["seconds"] / 60, NAMES[name], bleu(row["texts"], [references[: len(row["texts"])]]))
        for row in reported(output)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--recipe", type=Path, default=ROOT / "recipes" / "multi30k-en-de.yaml")
    parser.add_argument("--work", type=Path, default=Path("runs/peers"))
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    references = [line.strip() for line in read_lines(work / "data" / "valid.de")]
    measurements: list[tuple[float, str, float]] = []
    ours = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(cores())
    for first in range(0, len(arguments.only), len(ours)):
        names = arguments.only[first : first + len(ours)]
        lines = [command(name, arguments.minutes, arguments.recipe, work) for name in names]
        with ThreadPoolExecutor(len(ours)) as pool:
            finished = list(pool.map(pinned, ours, lines, repeat(work)))
        for name, process in zip(names, finished, strict=True):
            if process.returncode:
                sys.exit(f"{NAMES[name]} has failed")
            measurements += points(name, process.stdout, references, work)
    print("| minutes | | BLEU |\n| ---: | --- | ---: |")
    for minute, whose, score in sorted(measurements):
        print(f"| {minute:.1f} | {whose} | {score:.1f} |")


if __name__ == "__main__":
    main()
