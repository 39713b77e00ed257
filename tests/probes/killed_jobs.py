"""Kill a job many times, at random moments, and check its output.

    python -m tests.probes.killed_jobs runs/demo [--lines 20000] [--kills 20] [--workers 2]
    python -m tests.probes.killed_jobs runs/demo --document
    python -m tests.probes.killed_jobs runs/caption-demo --images [--lines 2000]

After each kill the same command runs again, until it ends by itself; then a new job begins, until the number of kills
is reached. The output of each job is compared with that of a job without kills. As each line has a unique number, lost,
duplicated and misplaced lines can be counted.
"""

import argparse
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tests.probes.forked import Forked, forked
from translucid.captions.scenes.generation import generate as generate_scenes
from translucid.captions.scenes.painting import paint
from translucid.corpora.phrasebook import generate

WINDOWS = ("translucid.jobs.job.TranslationJob.window", "translucid.captions.job.CaptionJob.window")
"""Names of the constants that are replaced: the numbers of lines and of images per window."""
WRONG = ("lost", "duplicated", "out_of_order", "different", "orphans", "leftovers")
"""Counts that must be 0."""


@dataclass(frozen=True)
class Job:
    """The command and properties of a job."""

    command: list[str]
    """The command without options."""
    code: int = 0
    """The expected exit code."""
    repeatable: bool = True
    """Whether scores are identical for any number of processes."""
    form: str = "jsonl"
    """The format of the output."""


def texts(work: Path, model: Path, lines: int) -> Job:
    """Write lines to be translated."""
    text = work / "in.txt"
    text.write_text("".join(f"{i} {source}\n" for i, source in enumerate(_sources(lines))), encoding="utf-8")
    return Job(["translate", str(model), "--input", str(text)])


def document(work: Path, model: Path, lines: int) -> Job:
    """Write messages to be translated."""
    messages = (f'msgid "{i} {source}"\nmsgstr ""\n' for i, source in enumerate(_sources(lines)))
    (work / "in.po").write_text("\n".join(messages), encoding="utf-8")
    return Job(["translate", str(model), str(work / "in.po")], form="po")


def pictures(work: Path, model: Path, lines: int) -> Job:
    """Write images to be captioned; one in fifty is broken."""
    scenes = [BytesIO() for _ in range(min(lines, 200))]
    for scene, file in zip(generate_scenes(len(scenes)), scenes, strict=True):
        paint(scene, 40).save(file, "PNG")
    with tarfile.open(work / "in.tar", "w") as images:
        for i in range(lines):
            content = scenes[i % len(scenes)].getvalue()[: 100 if i % 50 == 7 else None]
            entry = tarfile.TarInfo(f"{i:06}.png")
            entry.size = len(content)
            images.addfile(entry, BytesIO(content))
    return Job(["caption", str(model), str(work / "in.tar")], code=2 if lines > 7 else 0, repeatable=False)


def run(
    work: Path,
    model: Path,
    *,
    kills: int = 20,
    lines: int = 20_000,
    workers: int = 1,
    options: Sequence[str] = ("--beam", "1"),
    make_job: Callable[[Path, Path, int], Job] = texts,
    seed: int = 1,
    window: int | None = None,
) -> dict[str, int]:
    """Kill jobs `kills` times in all and count what went wrong.

    Args:
        work: an empty folder for inputs and outputs.
        model: a run folder.
        kills: the number of SIGKILLs, which only the main process gets.
        lines: the number of lines of the output.
        workers: the number of processes of the job.
        options: further options of the command.
        make_job: writes the input and returns the job.
        seed: the seed of the random moments.
        window: the number of lines per window, if fewer than usual. If given, commands are forked from a process that
            has imported everything; otherwise Python is started, as users do.

    Returns:
        kills; jobs (the number of finished jobs); continued (commands that resumed after lines of an earlier one);
        and counts that must be 0: lost, duplicated and out_of_order lines, different (jobs whose output differs from
        that of a job without kills), orphans (worker processes that outlived their job) and leftovers (files beside a
        finished output).
    """
    job = make_job(work, model, lines)
    expected, out = work / f"whole.{job.form}", work / f"out.{job.form}"
    form = ["--format", "jsonl"] if job.form == "jsonl" else []
    command = [*job.command, *form, *options]
    worker_options = ["--workers", str(workers)]
    started = time.monotonic()
    _one([*command, "--output", str(expected), *([] if job.repeatable else worker_options)], job.code, window=window)
    duration = time.monotonic() - started
    command += ["--output", str(out), *worker_options]
    files_before = set(work.iterdir())
    moments = random.Random(seed)
    counts = Counter(dict.fromkeys(("kills", "jobs", "continued", *WRONG), 0))
    finished = False
    while counts["kills"] < kills or not finished:  # a job killed before its first write has left no file
        moment = Moment(out, moments, duration) if counts["kills"] < kills else None
        log, orphans, killed = _one(command, job.code, moment, window=window)
        counts["continued"] += "continued after line" in log
        counts["orphans"] += orphans
        finished = out.exists()
        if not finished:
            if not killed:
                raise RuntimeError(f"the job has ended without its output: {log}")
            counts["kills"] += 1
            continue
        counts["jobs"] += 1
        counts.update(compared(out.read_bytes(), expected.read_bytes(), lines))
        out.unlink()
        counts["kills"] += killed
        if not killed:  # a job killed between its last two steps leaves its record, which the next job removes
            counts["leftovers"] += len(set(work.iterdir()) - files_before)
    return dict(counts)


class Moment:
    """A random moment of a job: some time after its start, or after one of its first writes."""

    def __init__(self, out: Path, moments: random.Random, duration: float) -> None:
        self.record = out.with_name(f".{out.name}.part.json")
        self.writings = moments.choice((0, 1, 1, 2, 3))
        self.after = moments.uniform(0, duration) if not self.writings else moments.uniform(0, duration / 5)

    def wait(self, process: subprocess.Popen[str] | Forked) -> bool:
        """Wait for the moment; return whether the process is still running."""
        last_written, writings = self._written(), 0
        while writings < self.writings and process.poll() is None:
            time.sleep(0.001)
            if (now_written := self._written()) != last_written:
                last_written, writings = now_written, writings + 1
        end = time.monotonic() + self.after
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.001)
        return process.poll() is None

    def _written(self) -> int:
        try:
            return self.record.stat().st_mtime_ns
        except OSError:
            return 0


def compared(output: bytes, expected: bytes, lines: int) -> dict[str, int]:
    """Count the errors in an output of `lines` lines."""
    if output.startswith(b"{"):
        numbers = [_number(json.loads(line)) for line in output.split(b"\n")[:-1]]
    else:
        numbers = [int(number) for number in re.findall(rb'msgid "(\d+) .*\nmsgstr "[^"]', output)]
    return {
        "lost": len(set(range(lines)) - set(numbers)),
        "duplicated": len(numbers) - len(set(numbers)),
        "out_of_order": sum(later < earlier for earlier, later in itertools.pairwise(numbers)),
        "different": int(output != expected),
    }


def _number(record: dict[str, str]) -> int:
    """Return the number of a line: the first word of a text, or the name of an image."""
    return int(record["source"].split()[0] if "source" in record else Path(record["image"]).stem)


def _sources(count: int) -> list[str]:
    sources = [pair.source for pair in generate(min(count, 2000), max_words=8)]
    return list(itertools.islice(itertools.cycle(sources), count))


def _one(
    command: list[str], expected_code: int, moment: Moment | None = None, *, window: int | None
) -> tuple[str, int, bool]:
    """Run a command up to the moment, or to its end with the expected exit code.

    Returns:
        The output, the number of surviving workers, and whether the command was killed.
    """
    with tempfile.NamedTemporaryFile("w+") as log:
        process: subprocess.Popen[str] | Forked
        if window:
            constants = dict.fromkeys(WINDOWS, window)
            process = forked(*command, log=Path(log.name), replaced=constants)
        else:
            python = [sys.executable, "-m", "translucid"]
            process = subprocess.Popen([*python, *command], stdout=log, stderr=log, text=True)
        orphans = 0
        if moment and moment.wait(process):
            workers = workers_of(process.pid)
            process.send_signal(signal.SIGKILL)
            process.wait()
            orphans = len(still_there(workers))
        code = process.wait()
        log.seek(0)
        text = log.read()
    if code not in (expected_code, -signal.SIGKILL):
        raise RuntimeError(f"the job has failed: {text}")
    return text, orphans, code == -signal.SIGKILL


def workers_of(parent: int) -> list[int]:
    """Return the ids of a job's worker processes; an empty list without /proc."""
    workers = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = status.read_text().rpartition(")")[2].split()
            started_as = (status.parent / "cmdline").read_text()
        except OSError:  # the process has ended
            continue
        if int(after_name[1]) == parent and "spawn_main" in started_as:
            workers.append(int(status.parent.name))
    return workers


def still_there(processes: list[int], patience: float = 10) -> list[int]:
    """Return the processes that are still alive after some seconds."""
    end = time.monotonic() + patience
    while (alive := [pid for pid in processes if _lives(pid)]) and time.monotonic() < end:
        time.sleep(0.02)
    return alive


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, help="a run folder")
    parser.add_argument("--images", action="store_true", help="it writes about images")
    parser.add_argument("--document", action="store_true", help="it translates a document")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        counts = run(
            Path(work),
            arguments.model,
            kills=arguments.kills,
            lines=arguments.lines,
            workers=arguments.workers,
            make_job=pictures if arguments.images else document if arguments.document else texts,
            seed=arguments.seed,
        )
    print(json.dumps(counts, indent=2))
    if any(counts[name] for name in WRONG):
        sys.exit(1)


if __name__ == "__main__":
    main()
