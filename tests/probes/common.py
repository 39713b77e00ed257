"""What the trials share: a small training, the command, and the comparison of two runs."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.probes.forked import Forked, ProcessGroup, forked, forked_together, forked_torchrun
from tests.probes.kinds import TEXT, Kind
from translucid.cli.main import run as run_command
from translucid.runs.run_folder import ADAPTER, RunFolder
from translucid.runs.tensor_file import load_tensors

Process = subprocess.Popen[str] | Forked | ProcessGroup

TIMES = {"seconds", "tokens_per_second", "done"}


@dataclass
class Finding:
    """What one trial came to."""

    trial: str
    """What was done, as a person would say it."""
    figures: dict[str, int | float | str] = field(default_factory=dict)
    """What was counted."""
    failures: list[str] = field(default_factory=list)
    """What should not have happened."""
    messages: list[str] = field(default_factory=list)
    """What a user is told, different ones once."""

    def fail(self, what: str) -> None:
        self.failures.append(what)

    def told(self, said: str, run: Path) -> None:
        """Keep the error line of what a command said, with RUN for the path of the run folder."""
        lines = [line.strip().replace(str(run), "RUN") for line in said.splitlines() if "error:" in line]
        if lines and lines[-1] not in self.messages:
            self.messages.append(lines[-1])


class Start:
    """How commands are started."""

    fork = False
    """Fork them from a process that has loaded everything, as the test suite does, or start Python, as users do."""


def translucid(*arguments: str | Path, starter: Sequence[str] = (), log: Path | None = None) -> Process:
    """Start the command as a user does, on one thread, so that sums come out the same each time.

    What it says goes to a file if there is a `log`, else it can be read.
    """
    if Start.fork and not starter:
        return forked(*arguments, environment={"COLUMNS": "1000"}, log=log)
    with log.open("wb") if log else contextlib.nullcontext(subprocess.PIPE) as out:
        return subprocess.Popen(
            [sys.executable, *starter, "-m", "translucid", *map(str, arguments)],
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "1000"} | ({} if log else {"OMP_NUM_THREADS": "1"}),
        )


def said_by(process: Process, seconds: float = 600) -> str:
    """Wait for the end of a command and return all it has said."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + "\nHANGS"


def here(*arguments: str | Path) -> tuple[int, str]:
    """Run the command in this process, where how it ends is all that matters; return its exit code and what it said."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run_command([str(argument) for argument in arguments])
    said.flush()
    return code, said.buffer.getvalue().decode()  # type: ignore[attr-defined]


def training(out: Path, corpus: list[str], steps: int, kind: Kind = TEXT) -> list[str]:
    """Return the command that starts a training, or goes on with it."""
    settings = ["--set", *kind.settings, f"training.max_steps={steps}"]
    preset = ["--model", kind.model] if kind.model else []
    return ["train", *preset, *corpus, "--out", str(out), "--resume", "--no-tune", *settings]


def train(
    out: Path, corpus: list[str], steps: int, kind: Kind = TEXT, *, processes: int = 1, restarts: int = 0
) -> Process:
    """Start a training, or go on with it; under torchrun if it has several processes or may be started again."""
    words = training(out, corpus, steps, kind)
    if Start.fork and restarts:
        return forked_torchrun(*words, count=processes, restarts=restarts)
    if Start.fork and processes > 1:
        return forked_together(*words, count=processes)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    starter = [*torchrun, f"--max-restarts={restarts}"] if processes > 1 else []
    return translucid(*words, starter=starter)


def differences(one: Path, other: Path) -> list[str]:
    """Say in what two runs differ besides the time they took: weights, optimiser, random states, place, metrics."""
    found = []
    adapters = [ADAPTER] * (one / ADAPTER).exists()
    for name in ("model.safetensors", "state/checkpoint.safetensors", *adapters):
        (tensors, facts), (others, other_facts) = load_tensors(one / name), load_tensors(other / name)
        if tensors.keys() != others.keys():
            found.append(f"{name}: other tensors")
            continue
        found += [
            f"{name}: {key}" for key in tensors if tensors[key].numpy().tobytes() != others[key].numpy().tobytes()
        ]
        for record in (facts, other_facts):
            record.get("place", {}).pop("seconds", None)
            record["recent"] = [row[:3] for row in record.get("recent", [])]
        if facts != other_facts:
            found.append(f"{name}: place, BLEU or corpus")
    rows, others_rows = (
        [{key: value for key, value in row.items() if key not in TIMES} for row in RunFolder(run).metrics()]
        for run in (one, other)
    )
    if rows != others_rows:
        found.append("metrics.jsonl")
    return found


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: float) -> Iterator[Path | None]:
    """Mount a disk of a few megabytes; None where that is not allowed (it needs root on Linux)."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["mount", "-t", "tmpfs", "-o", f"size={int(megabytes * 1024)}k", "tmpfs", str(folder)]
    try:
        subprocess.run(options, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    """Change a mounted disk: `ro`, `size=9m`."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True, capture_output=True)
