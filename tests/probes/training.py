"""Training that is killed, runs out of disk space or finds damaged files must give the same result."""

import contextlib
import io
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from tests.probes.common import (
    Finding,
    Process,
    differences,
    output_of,
    remount,
    run_in_process,
    small_disk,
    train,
    training,
)
from tests.probes.kinds import TEXT, Kind
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import run_experiment

HOW = ["flipped", "flipped", "flipped", "cut short", "emptied", "removed"]
KEPT = ["model.safetensors", "tokenizer.model", "state/checkpoint.safetensors", "state/previous.safetensors"]
NOTED = ["metrics.jsonl", "config.yaml"]


def kills(
    work: Path,
    count: int,
    steps: int,
    kind: Kind = TEXT,
    *,
    corpus: list[str] | None = None,
    seed: int = 1,
    latest: float = 6,
) -> Finding:
    """Kill a training repeatedly, and compare its result with that of an uninterrupted one.

    The first kills happen while the corpus is being read, if possible; half of the later ones while a checkpoint is
    being written, and the others up to `latest` seconds after the start.
    """
    finding = Finding(f"training on {kind.name} killed (SIGKILL) at random moments, then resumed to its end")
    generator = random.Random(seed)
    corpus, uninterrupted, killed = corpus or kind.write(work / "corpus"), work / "whole", work / "killed"
    output_of(train(uninterrupted, corpus, steps, kind))
    survived = early = reading = writing = 0
    while survived < count:
        process = train(killed, corpus, steps, kind)
        unread = kind.stored and not (killed / "state" / "checkpoint.safetensors").exists()
        if unread and reading < count / 2:
            _wait_until_more_is_read(process, killed)
            _wait(process, generator.uniform(0, 0.05))
        elif generator.random() < 0.5:
            _wait_for(process, lambda: bool(_half_files(killed)))
        else:
            _wait(process, generator.uniform(latest / 12, latest))
        halves, read = _half_files(killed), _index(killed)
        process.kill()
        output = output_of(process)
        if process.returncode == 0:
            break
        if process.returncode != -signal.SIGKILL:
            finding.fail(f"exit code {process.returncode}: {output[-300:]}")
            break
        early += not (killed / "state" / "checkpoint.safetensors").exists()
        survived, writing, reading = (
            survived + 1,
            writing + bool(halves),
            reading + (read.lines > 0 and not read.is_complete),
        )
    output = output_of(train(killed, corpus, steps, kind))
    finding.failures += (
        differences(uninterrupted, killed) if (killed / "model.safetensors").exists() else [output[-300:]]
    )
    finding.figures = {
        "kills": survived,
        "before the first checkpoint": early,
        "while reading the corpus": reading,
        "while a file was partly written": writing,
    }
    return finding


def _half_files(run: Path) -> list[Path]:
    prepared = run / ".preparing"
    return [*run.glob(".*.tmp"), *run.glob("state/.*.tmp"), *prepared.glob(".*.tmp"), *prepared.glob("state/.*.tmp")]


class _Index(NamedTuple):
    """How much of a corpus is stored in a run folder."""

    lines: int
    is_complete: bool


def _index(run: Path) -> _Index:
    for file in (*run.glob("state/*/index.jsonl"), *run.glob(".preparing/state/*/index.jsonl")):
        with contextlib.suppress(OSError):
            content = file.read_bytes()
            return _Index(content.count(b"\n"), b'"sizes"' in content)
    return _Index(0, False)


def _wait_until_more_is_read(process: Process, run: Path) -> None:
    before = _index(run)
    _wait_for(process, lambda: (now := _index(run)).is_complete or now.lines > before.lines)


def _wait_for(process: Process, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline and not condition():
        time.sleep(0.0005)


def _wait(process: Process, seconds: float) -> None:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def full_disk(work: Path, sizes: Sequence[float] = (0.7, 1.0, 1.3, 1.6, 1.9, 2.2, 2.5)) -> Finding:
    """Fill disks of these sizes in megabytes while checkpoints are written, then enlarge them and resume."""
    finding = Finding("disk full while writing a checkpoint, then space freed and resumed")
    corpus, uninterrupted = TEXT.write(work / "corpus"), work / "whole"
    output_of(train(uninterrupted, corpus, 12))
    with small_disk(work / "disk", 0.7) as disk:
        if disk is None:
            finding.figures["skipped"] = "no right to mount a disk here"
            return finding
        run, full = disk / "run", 0
        for megabytes in (*sizes, 64):
            remount(disk, f"size={int(megabytes * 1024)}k")
            process = train(run, corpus, 12)
            output = output_of(process)
            full += process.returncode == 2
            if process.returncode not in (0, 2) or "Traceback" in output:
                finding.fail(f"{megabytes} MB, exit code {process.returncode}: {output[-300:]}")
            finding.record_message(output, run)
        finding.failures += differences(uninterrupted, run)
        finding.figures["disks that are too small"] = full
    return finding


def read_only(work: Path) -> Finding:
    """Train into, resume and use a run folder that can't be written to."""
    finding = Finding("run folder on a read-only disk")
    corpus = TEXT.write(work / "corpus")
    with small_disk(work / "disk", 64) as disk:
        if disk is None:
            finding.figures["skipped"] = "no right to mount a disk here"
            return finding
        run_in_process(*training(disk / "run", corpus, 4))
        remount(disk, "ro")
        for what, run in {"a new run": disk / "new", "a resumed run": disk / "run"}.items():
            code, output = run_in_process(*training(run, corpus, 8))
            finding.record_message(output, run)
            if code != 2 or "Traceback" in output:
                finding.fail(f"{what}, exit code {code}: {output[-300:]}")
        code, output = run_in_process("translate", disk / "run", "I like soccer")
        if code != 0:
            finding.fail(f"translating from there: {output[-300:]}")
        finding.figures["rejected with one line"] = 2 - len(finding.failures)
    return finding


def two_at_once(work: Path) -> Finding:
    """Start a second training in a folder that is in use."""
    finding = Finding("two trainings in the same run folder")
    corpus, run = TEXT.write(work / "corpus"), work / "run"
    first = train(run, corpus, 1_000_000)
    while first.poll() is None and not RunFolder(run).metrics():  # until it has made updates
        time.sleep(0.05)
    code, output = run_in_process(*training(run, corpus, 1_000_000))
    finding.record_message(output, run)
    if code != 2:
        finding.fail(f"the second ended with {code}: {output[-300:]}")
    first.send_signal(signal.SIGINT)
    output = output_of(first)
    if first.returncode != 130 or "resume with translucid train --resume" not in output:
        finding.fail(f"Ctrl-C ended the first with {first.returncode}: {output[-300:]}")
    finding.figures["rejected"] = int(code == 2)
    return finding


def lost_workers(work: Path, count: int, steps: int = 300, seed: int = 1) -> Finding:
    """Repeatedly kill one of two processes that train one model; torchrun restarts both."""
    finding = Finding("one of two training processes killed, both restarted by torchrun --max-restarts")
    generator = random.Random(seed)
    corpus, uninterrupted, run = TEXT.write(work / "corpus"), work / "whole", work / "run"
    output_of(train(uninterrupted, corpus, steps, processes=2))
    # One more than are killed: a thread of gloo itself may end a process that joins (pytorch/gloo, issue 514).
    job = train(run, corpus, steps, processes=2, restarts=count + 1)
    killed: set[int] = set()
    deadline = time.monotonic() + 300
    while len(killed) < count and job.poll() is None and time.monotonic() < deadline:
        _wait(job, generator.uniform(0.1, 0.5))
        workers = [pid for pid in _children(job.pid) if pid not in killed]
        if len(workers) == 2 and (run / "state" / "checkpoint.safetensors").exists():
            victim = generator.choice(workers)
            killed.add(victim)
            os.kill(victim, signal.SIGKILL)
    output = output_of(job)
    if job.returncode:
        finding.fail(f"exit code {job.returncode}: {output[-4000:]}")
    else:
        finding.failures += differences(uninterrupted, run)
    finding.record_message(output, run)
    finding.figures = {"processes killed": len(killed)}
    return finding


def _children(parent: int) -> list[int]:
    """Return the child processes of a process."""
    children = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            after_name = file.read_text(errors="replace").rpartition(")")[2].split()  # state, parent, …
            if int(after_name[1]) == parent:
                children.append(int(file.parent.name))
    return children


def damages(work: Path, count: int, kind: Kind = TEXT, *, seed: int = 1) -> Finding:
    """Damage a file of an interrupted run and resume: the result must be the same, or one clear error line."""
    finding = Finding(
        f"a file of a run on {kind.name} damaged (a bit flipped, cut short, emptied, removed), then resumed"
    )
    torch.set_num_threads(1)
    generator = random.Random(seed)
    corpus, uninterrupted, interrupted = kind.write(work / "corpus", kind.few), work / "whole", work / "begun"
    _train_here(uninterrupted, corpus, 3, kind)
    _train_here(interrupted, corpus, 1, kind)
    _train_here(interrupted, corpus, 2, kind)
    files, refused, mended = [*kind.stored, *KEPT, *NOTED], 0, 0
    for number in range(count):
        run = work / "damaged"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(interrupted, run)
        name = files[number % len(files)]
        # A bit that is flipped in the configuration may make another number: that can't be told from an edit.
        how = _damage(run / name, generator, HOW[3:] if name == "config.yaml" else HOW)
        try:
            output = _train_here(run, corpus, 3, kind)
        except UserError as error:
            refused += 1
            if "\n" in str(error) or str(run) not in str(error):
                finding.fail(f"{name} {how}: {error}")
            message = str(error).replace(str(run), "RUN")
            if message not in finding.messages and len(finding.messages) < 12:
                finding.messages.append(message)
            continue
        except Exception as error:
            finding.fail(f"{name} {how}: {type(error).__name__}: {error}")
            continue
        mended += 1
        if name == "model.safetensors":  # the best model can't be restored, but must not stay damaged
            if "The next validation writes another." not in output:
                finding.fail(f"{name} {how}: nothing said")
            RunFolder(run).check_model()
            continue
        # A metrics file that was damaged has lost rows; the rest of the run must still be the same.
        remaining = [
            difference
            for difference in differences(uninterrupted, run)
            if (difference, name) != ("metrics.jsonl", "metrics.jsonl")
        ]
        if remaining:
            finding.fail(f"{name} {how}: {len(remaining)} differences, as in {remaining[0]}")
    finding.figures = {"damages": count, "rejected with one line": refused, "resumed to the same result": mended}
    return finding


def _train_here(run: Path, corpus: list[str], steps: int, kind: Kind) -> str:
    log, folder = io.StringIO(), RunFolder(run)
    if folder.exists:
        configuration = folder.configuration()
        options = configuration.training.model_copy(update={"max_steps": steps})
        configuration = configuration.model_copy(update={"training": options})
    else:
        files = {f"data.{option[2:]}": [file] for option, file in zip(corpus[::2], corpus[1::2], strict=True)}
        short = ["training.validate_every=1", f"training.max_steps={steps}"]
        configuration = resolve(preset=kind.model, assignments=[*kind.settings, *short], overrides=files)
    run_experiment(configuration, run, resume=True, device="cpu", console=Console(file=log))
    return log.getvalue()


def _damage(file: Path, generator: random.Random, kinds: Sequence[str]) -> str:
    content = bytearray(file.read_bytes())
    how = generator.choice(kinds)
    offset = generator.randrange(len(content))
    if how == "flipped":
        content[offset] ^= 1 << generator.randrange(8)
    elif how == "cut short":
        del content[offset:]
    elif how == "emptied":
        content.clear()
    file.write_bytes(content)
    if how == "removed":
        file.unlink()
    return f"{how} at byte {offset}"
