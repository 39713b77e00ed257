"""All targets one after the other, each in a process of its own, which may crash, with ceilings of memory and time."""

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
"""Of all inputs, by the file that makes them: the quick ones have more."""
SECONDS = 1800
"""For one target, at most."""


def run_all(count: int, seed: int, targets: list[str] | None = None) -> Iterator[Tally]:
    """Try `count` inputs in all, spread over the targets; a target that dies is a failure of its own."""
    chosen = targets or list(SHARES)
    whole = sum(SHARES[name] for name in chosen)
    for name in chosen:
        yield run_apart(name, max(1, round(count * SHARES[name] / whole)), seed)


def run_apart(name: str, count: int, seed: int) -> Tally:
    """Try a target in a process of its own."""
    command = [sys.executable, "-m", "tests.probes.hostile.runner", name, str(count), str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Tally(name, failures=[f"{count} inputs of seed {seed} took more than {SECONDS} seconds"])
    if done.returncode:
        return Tally(name, failures=[f"seed {seed}: the process died ({done.returncode}): {done.stderr[-3000:]}"])
    return Tally(**json.loads(done.stdout.splitlines()[-1]))


def _here(name: str, count: int, seed: int) -> None:
    fuzz = importlib.import_module(f"tests.probes.hostile.{name}").fuzz  # before PyTorch, which takes seconds
    import faulthandler

    import torch

    torch.set_num_threads(1)
    faulthandler.enable()
    fuzz(1, seed)  # what it loads once is no memory that an input asks for
    with memory_ceiling():
        print(json.dumps(fuzz(count, seed).to_json()))


if __name__ == "__main__":
    _here(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
