"""From the command line to a translation: seconds and memory of whole commands, one sentence each.

    python benchmarks/cold_start.py RUN [--text "..."] [--times 7]

The variants run in turn: `translucid translate`; the same with an empty cache, so that the model is converted first;
`--engine torch`; and, for comparison, Python that only loads PyTorch.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def clocked(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command; return its seconds and its peak memory in MiB."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        sys.exit(f"{' '.join(command)} has failed")
    return seconds, memory_mib(usage)


def memory_mib(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--text", default="a man is standing in front of a building .")
    parser.add_argument("--times", type=int, default=7)
    arguments = parser.parse_args()
    translate = [str(Path(sys.executable).with_name("translucid")), "translate", str(arguments.run), arguments.text]
    with tempfile.TemporaryDirectory() as cache:
        cached_environment = {**os.environ, "XDG_CACHE_HOME": cache}
        commands = {
            "`translucid translate`": (translate, cached_environment),
            "the same, first time: converts the model and caches it": (translate, None),
            "the same, `--engine torch`": ([*translate, "--engine", "torch"], cached_environment),
            "Python and `import torch`": ([sys.executable, "-c", "import torch"], cached_environment),
        }
        clocked(translate, cached_environment)
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(arguments.times):
            for name, (command, environment) in commands.items():
                with tempfile.TemporaryDirectory() as empty:
                    measured[name].append(clocked(command, environment or {**os.environ, "XDG_CACHE_HOME": empty}))
    print("| | seconds | MiB |\n| --- | ---: | ---: |")
    for name, runs in measured.items():
        seconds, memory = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"| {name} | {seconds:.2f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
