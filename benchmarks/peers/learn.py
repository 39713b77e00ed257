"""BLEU over minutes: ours and Hugging Face's MarianMT, the fastest of the others, side by side on a core each.

    python benchmarks/peers/learn.py [--minutes 15] [--recipe recipes/multi30k-en-de.yaml] [--work runs/peers]

Needs what run.py has made (its environments and data). Both train at the same time, so that whatever slows the machine
down slows both; both translate the same 500 validation sentences greedily every minute and are scored by the same
program. Theirs has the shape, the schedule and the batches that Wu et al. 2021 (arXiv 2105.14462) give, as far as the
minutes allow. Prints a Markdown table.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from translucid.data.corpus import read_lines
from translucid.evaluation.scores import bleu

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def pinned(core: int, command: list[str], work: Path) -> subprocess.Popen[str]:
    """Start a program on one core."""
    on_core = ["taskset", "-c", str(core), *command] if shutil.which("taskset") else command
    environment = {**os.environ, "PEERS_WORK": str(work), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(on_core, env=environment, cwd=HERE, stdout=subprocess.PIPE, text=True)


def ours(minutes: float, recipe: Path, work: Path) -> list[str]:
    data = work / "data"
    settings = [f"training.max_minutes={minutes}", "training.validate_every=100", "training.log_every=100"]
    return [
        *(str(work / "envs" / "translucid" / "bin" / "translucid"), "train", str(recipe.resolve())),
        *("--train", f"{data}/train.{{en,de}}", "--valid", f"{data}/valid.{{en,de}}"),
        *("--out", str(work / "tools" / "learn"), "--overwrite", "--set", *settings),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--recipe", type=Path, default=ROOT / "recipes" / "multi30k-en-de.yaml")
    parser.add_argument("--work", type=Path, default=Path("runs/peers"))
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    theirs = pinned(1, [str(work / "envs" / "hf" / "bin" / "python"), "learn_marian.py", str(arguments.minutes)], work)
    mine = pinned(0, ours(arguments.minutes, arguments.recipe, work), work)
    output, _ = theirs.communicate()
    mine.communicate()
    if theirs.returncode or mine.returncode:
        sys.exit("one of them has failed")
    translations = [json.loads(line.removeprefix("RESULT ")) for line in output.splitlines() if "RESULT" in line]
    references = [line.strip() for line in read_lines(work / "data" / "valid.de")][:500]
    points = [(row["seconds"] / 60, "HF MarianMT", bleu(row["texts"], [references])) for row in translations]
    rows = [json.loads(line) for line in (work / "tools" / "learn" / "metrics.jsonl").read_text().splitlines()]
    points += [(row["seconds"] / 60, "**Translucid**", row["bleu"]) for row in rows if row["kind"] == "validation"]
    print("| minutes | | BLEU |\n| ---: | --- | ---: |")
    for minute, name, score in sorted(points):
        print(f"| {minute:.1f} | {name} | {score:.1f} |")


if __name__ == "__main__":
    main()
