"""Fine-tuning without forgetting: several methods to fine-tune a model of everyday sentences on program messages.

    python benchmarks/fine_tuning.py BASE DOMAIN [--data ../shared/data/tatoeba-eng-spa] [--runs runs/fine-tuning]
        [--updates 600] [--only NAME ...] [--valid 200]

BASE is a run of the recipe tatoeba-eng-spa. DOMAIN is a folder with train.tsv, dev.tsv and test.tsv, such as the
English and Spanish of the `.po` files of some packages, split by file. Each method makes the same number of updates and
is validated on both corpora. The selected checkpoint is scored on both test sets with the run's own beam. Minutes are
CPU time, including validation.

Every step is a command of `translucid`; the same command resumes an interrupted benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from translucid.ground.atomic import write_atomically
from translucid.runs.run_folder import ADAPTER, RunFolder
from translucid.runs.tensor_file import read_header

ROOT = Path(__file__).resolve().parents[1]
LAYERS = "training.adapter_parts=[attention,feed-forward]"
LORA = ["training.adapter_rank=8", LAYERS, "training.learning_rate=0.003"]
WIDE = ["training.adapter_rank=9", "training.learning_rate=0.006"]
METHODS: dict[str, tuple[float, list[str]]] = {
    "mix 0.5": (0.5, []),
    "mix 0.5, distillation_weight 0.3": (0.5, ["training.distillation_weight=0.3"]),
    "LoRA 8, mix 0.5": (0.5, LORA),
    "mix 0.8": (0.8, []),
    "mix 0.8, 300 more pieces": (0.8, ["data.tokenizer.added=300"]),
    "mix 0.8, distillation_weight 0.5": (0.8, ["training.distillation_weight=0.5"]),
    "LoRA 8, mix 0.8": (0.8, LORA),
    "LoRA 9 with embeddings, mix 0.8": (0.8, WIDE),
    "mix 0.5, rate 0.00025": (0.5, ["training.learning_rate=0.00025"]),
    "mix 0.5, l2_sp 0.1": (0.5, ["training.l2_sp=0.1"]),
    "mix 0.5, encoder frozen": (0.5, ["training.freeze=[encoder]"]),
    "mix 0.5, Adam at 0.0005": (0.5, ["training.optimizer=adam", "training.learning_rate=0.0005"]),
    "distillation_weight 0.3": (0, ["training.distillation_weight=0.3"]),
    "l2_sp 0.1": (0, ["training.l2_sp=0.1"]),
    "the domain alone": (0, []),
}
"""By name: the share of general sentences in an epoch, and settings."""


class Trial:
    """A folder of runs; finished steps are not repeated."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.folder = arguments, arguments.runs
        self.folder.mkdir(parents=True, exist_ok=True)

    def command(self, note: Path, *words: str | Path) -> dict[str, Any]:
        """Run one of our commands unless it is done; return its output and CPU minutes."""
        if not note.exists():
            print("translucid", *words, flush=True)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            arguments = [sys.executable, "-m", "translucid", *map(str, words)]
            completed = subprocess.run(
                arguments, check=True, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            minutes = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60
            write_atomically(note, json.dumps({"minutes": minutes, "said": completed.stdout.decode()}).encode())
        result: dict[str, Any] = json.loads(note.read_text())
        return result

    def train(self, name: str, share: float, settings: list[str]) -> float:
        """Fine-tune the base run, or resume; return the minutes."""
        out, domain, data = self.folder / name, self.arguments.domain, self.arguments.data
        files = ["--train", domain / "train.tsv", "--valid", domain / "dev.tsv", "--valid-general", data / "dev.tsv"]
        mix = ["--mix", f"{data / 'train.tsv'}={share}"] if share else []
        resume = ["--resume"] if (out / "config.yaml").exists() else []
        limits = [
            *(f"training.max_steps={self.given.updates}", f"training.validate_sentences={self.given.valid}"),
            *("training.max_epochs=null", "training.patience=null"),
            "training.validate_every=200",
        ]
        command = ["train", "--init-from", self.arguments.base, *files, *mix, "--out", out, "--no-tune", *resume]
        note = self.folder / f"{name}.trained.json"
        minutes = float(self.command(note, *command, "--set", *limits, *settings)["minutes"])
        if RunFolder(out).metrics()[-1]["step"] < self.arguments.updates:
            note.unlink()
            raise SystemExit("interrupted; the same command goes on")
        return minutes

    def bleu(self, run: Path, test: Path, name: str) -> float:
        """Return the BLEU of a run on a test set."""
        note = self.folder / f"{name}.{test.parent.name}.json"
        output = self.command(note, "evaluate", run, "--test", test, "--lines", "whole", "--json")["said"]
        return float(json.loads(output)["BLEU"]["value"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("domain", type=Path)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "tatoeba-eng-spa")
    parser.add_argument("--runs", type=Path, default=Path("runs/fine-tuning"))
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--valid", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    trial = Trial(arguments)
    tests = arguments.domain / "test.tsv", arguments.data / "test.tsv"
    before = [trial.bleu(arguments.base, test, "base") for test in tests]
    weights = sum_of(arguments.base / "model.safetensors")
    rows = [["the base", *(f"{score:.1f}" for score in before), "", "", "", ""]]
    for name, (share, settings) in METHODS.items():
        if arguments.only and name not in arguments.only:
            continue
        folder = name.replace(", ", "-").replace(" ", "-")
        minutes = trial.train(folder, share, settings)
        run = arguments.runs / folder
        after = [trial.bleu(run, test, folder) for test in tests]
        gains = [f"{now - then:+.1f}" for now, then in zip(after, before, strict=True)]
        learned = sum_of(run / ADAPTER) / weights if (run / ADAPTER).exists() else 1
        scores = [f"{score:.1f}" for score in after]
        rows.append([name, *scores, *gains, f"{100 * learned:.1f} %" if learned < 1 else "", f"{minutes:.1f}"])
    head = ["way", "domain", "Tatoeba", "domain +", "Tatoeba +", "weights that learn", "minutes"]
    for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows):
        print("| " + " | ".join(row) + " |")


def sum_of(file: Path) -> int:
    """Return the number of parameters in a tensor file."""
    total = 0
    for shape in read_header(file)[0].values():
        count = 1
        for size in shape:
            count *= size
        total += count
    return total


if __name__ == "__main__":
    main()
