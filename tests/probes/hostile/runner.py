"""All targets in turn, each in a separate process that may crash, with limits of memory and time."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator

from tests.probes.hostile.memory import memory_ceiling
from tests.probes.hostile.tally import Tally

SHARES = {
    "corpora": 0.5,
    "documents": 0.02,
    "texts": 0.13,
    "settings": 0.115,
    "vocabularies": 0.115,
    "images": 0.05,
    "run_folders": 0.05,
    "searches": 0.014,
    "lines": 0.006,
}
"""The share of inputs of each module; quick targets have more."""
SECONDS = 1800
"""The maximum number of seconds for one target."""


def run_all(count: int, seed: int, targets: list[str] | None = None) -> Iterator[Tally]:
    """Try `count` inputs in all, distributed over the targets; a crashed target is a failure, too."""
    names = targets or list(SHARES)
    total = sum(SHARES[name] for name in names)
    for name in names:
        yield run_apart(name, max(1, round(count * SHARES[name] / total)), seed)


def run_apart(name: str, count: int, seed: int) -> Tally:
    """Try a target in a separate process."""
    command = [sys.executable, "-m", "tests.probes.hostile.runner", name, str(count), str(seed)]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Tally(name, failures=[f"{count} inputs of seed {seed} took more than {SECONDS} seconds"])
    if completed.returncode:
        return Tally(
            name, failures=[f"seed {seed}: the process died ({completed.returncode}): {completed.stderr[-3000:]}"]
        )
    return Tally(**json.loads(completed.stdout.splitlines()[-1]))


def _here(name: str, count: int, seed: int) -> None:
    fuzz = importlib.import_module(f"tests.probes.hostile.{name}").fuzz  # before the slow import of PyTorch
    import faulthandler

    import torch

    torch.set_num_threads(1)
    faulthandler.enable()
    fuzz(1, seed)  # load everything before the memory limit is set
    with memory_ceiling():
        print(json.dumps(fuzz(count, seed).to_json()))


if __name__ == "__main__":
    _here(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
