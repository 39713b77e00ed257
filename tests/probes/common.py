"""Shared by the trials: a small training, the command, and the comparison of two runs."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.probes.forked import Forked, ProcessGroup, forked, forked_group, forked_torchrun
from tests.probes.kinds import TEXT, Kind
from translucid.cli.main import run as run_command
from translucid.runs.run_folder import ADAPTER, RunFolder
from translucid.runs.tensor_file import load_tensors

Process = subprocess.Popen[str] | Forked | ProcessGroup

TIMES = {"seconds", "tokens_per_second", "done"}


@dataclass
class Finding:
    """The result of one trial."""

    trial: str
    """A description of the trial."""
    figures: dict[str, int | float | str] = field(default_factory=dict)
    """Counts and measurements."""
    failures: list[str] = field(default_factory=list)
    """Unexpected outcomes."""
    messages: list[str] = field(default_factory=list)
    """The distinct error messages for the user."""

    def fail(self, what: str) -> None:
        self.failures.append(what)

    def record_message(self, output: str, run: Path) -> None:
        """Record the error line of a command's output, with RUN in place of the path of the run folder."""
        lines = [line.strip().replace(str(run), "RUN") for line in output.splitlines() if "error:" in line]
        if lines and lines[-1] not in self.messages:
            self.messages.append(lines[-1])


class Start:
    """The way in which commands are started."""

    fork = False
    """Whether to fork them from a process that has imported everything, as the test suite does, or to start Python."""


def translucid(*arguments: str | Path, starter: Sequence[str] = (), log: Path | None = None) -> Process:
    """Start the command as a user does, on one thread, so that floating-point sums are reproducible.

    Its output goes to `log` if given, else to a pipe.
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


def output_of(process: Process, seconds: float = 600) -> str:
    """Wait for a command to end, and return its output."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + "\nHANGS"


def run_in_process(*arguments: str | Path) -> tuple[int, str]:
    """Run the command in this process; return its exit code and output."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = run_command([str(argument) for argument in arguments])
    output.flush()
    return code, output.buffer.getvalue().decode()  # type: ignore[attr-defined]


def training(out: Path, corpus: list[str], steps: int, kind: Kind = TEXT) -> list[str]:
    """Return the command that starts or resumes a training."""
    settings = ["--set", *kind.settings, f"training.max_steps={steps}"]
    preset = ["--model", kind.model] if kind.model else []
    return ["train", *preset, *corpus, "--out", str(out), "--resume", "--no-tune", *settings]


def train(
    out: Path, corpus: list[str], steps: int, kind: Kind = TEXT, *, processes: int = 1, restarts: int = 0
) -> Process:
    """Start or resume a training; under torchrun if it has several processes or may be restarted."""
    words = training(out, corpus, steps, kind)
    if Start.fork and restarts:
        return forked_torchrun(*words, count=processes, restarts=restarts)
    if Start.fork and processes > 1:
        return forked_group(*words, count=processes)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    starter = [*torchrun, f"--max-restarts={restarts}"] if processes > 1 else []
    return translucid(*words, starter=starter)


def metrics_without_times(run: Path) -> list[dict[str, Any]]:
    """Return the rows of metrics.jsonl without the fields that depend on the speed."""
    rows = RunFolder(run).metrics()
    for row in rows:
        for key in TIMES:
            row.pop(key, None)
    return rows


def differences(first_run: Path, second_run: Path) -> list[str]:
    """Describe how two runs differ, except in time: weights, optimizer, random states, position, metrics."""
    different = []
    adapters = [ADAPTER] * (first_run / ADAPTER).exists()
    for name in ("model.safetensors", "state/checkpoint.safetensors", *adapters):
        (tensors, facts), (others, other_facts) = load_tensors(first_run / name), load_tensors(second_run / name)
        if tensors.keys() != others.keys():
            different.append(f"{name}: other tensors")
            continue
        different += [
            f"{name}: {key}" for key in tensors if tensors[key].numpy().tobytes() != others[key].numpy().tobytes()
        ]
        for record in (facts, other_facts):
            record.get("place", {}).pop("seconds", None)
            record["recent"] = [row[:3] for row in record.get("recent", [])]
        if facts != other_facts:
            different.append(f"{name}: place, BLEU or corpus")
    if metrics_without_times(first_run) != metrics_without_times(second_run):
        different.append("metrics.jsonl")
    return different


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
