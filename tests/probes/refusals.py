"""Rejected commands leave every file of the run folder unchanged, byte for byte."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.probes.common import Finding, run_in_process, training
from tests.probes.kinds import TEXT

LOCK = ".lock"
"""The lock file, which is always empty."""


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mode and the bytes of every file below a folder, by path."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != LOCK)
    return {str(file.relative_to(folder)): (file.stat().st_mode, file.read_bytes()) for file in files}


def refused_commands(run: Path, work: Path, corpus: list[str]) -> Iterator[list[str]]:
    """Yield commands that must be rejected, for `run`, a copy of `work/whole`, which was trained on a corpus."""
    different, bad, long, broken = (work / f"{name}.tsv" for name in ("other", "bad", "long", "broken"))
    pairs = Path(corpus[1]).read_text(encoding="utf-8")
    different.write_text(pairs.split("\n", 1)[1], encoding="utf-8")
    bad.write_text(pairs + "one column\n", encoding="utf-8")
    long.write_text(f"{'very ' * 300}long\t{'muy ' * 300}largo\n" * 100, encoding="utf-8")
    broken.write_bytes(pairs.encode() + b"\xff\t\xff\n")
    out, valid = ["--out", str(run)], corpus[2:]
    resume = ["train", "--resume", *out]
    anew = ["train", "--overwrite", *out, *valid]
    for text in (different, bad, broken):
        yield [*resume, "--train", str(text), *valid]
        yield [*resume, "--train", str(text), *valid, "--set", "training.learning_rate=0.5"]
    yield [*resume, "--set", "training.seed=7"]
    yield [*resume, "--set", "training.learning_rate=0.5", "model.width=64"]
    yield [*resume, "--set", "training.learnin_rate=0.5"]
    yield [*resume, "--train", "nowhere.tsv"]
    yield [*resume, "--model", "base", *corpus]
    yield [*resume, "--device", "abacus"]
    yield ["train", *out, *corpus]
    for text in (bad, broken, Path("nowhere.tsv")):
        yield [*anew, "--train", str(text)]
    yield [*anew, "--train", str(long), "--set", "data.tokenizer.vocabulary=40", "data.max_tokens=50"]
    yield [*anew, "--train", str(different), "--set", "data.tokenizer.vocabulary=1000000"]
    yield [*anew, "--train", str(different), "--set", "model.width=7"]
    for start in ("nowhere", str(_damaged(work / "whole", work / "damaged"))):
        yield [*anew, "--train", str(different), "--init-from", start]
    yield [*anew, "--train", str(different), "--init-from", str(run), "--set", "model.width=24"]
    yield ["tune", "speed", str(run), "--train", "nowhere.tsv"]
    yield ["tune", "speed", str(run), "--valid", str(bad)]
    yield ["evaluate", str(run), "--test", str(bad)]
    yield ["tune", "reading", str(run), str(different)]
    yield ["export", str(run), str(work)]
    yield ["translate", str(run), "I sing", "--output", str(run / "config.yaml")]


def _damaged(run: Path, copy: Path) -> Path:
    """Return a copy of a run whose weights are cut short."""
    shutil.copytree(run, copy, dirs_exist_ok=True)
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    return copy


def nothing_changes(work: Path, most: int | None = None) -> Finding:
    """Run each of these commands on a run, with and without its encoded corpus; `most` limits their number."""
    finding = Finding("rejected commands leave every file of the run folder unchanged, byte for byte")
    corpus, intact, run = TEXT.write(work / "corpus"), work / "whole", work / "run"
    _, output = run_in_process(*training(intact, corpus, 4))
    if not (intact / "model.safetensors").exists():
        finding.fail(output[-300:])
        return finding
    attempts = 0
    commands = list(refused_commands(run, work, corpus))
    for number, command in enumerate(commands[:most]):
        for encoded in (True, False):
            if not encoded and command[0] != "train":
                continue
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(intact, run)
            if not encoded:
                shutil.rmtree(run / "state" / "corpus")
            before = contents(run)
            code, output = run_in_process(*command)
            attempts += 1
            description = f"{number}: {' '.join(command[:6])}"
            if code != 2 or "Traceback" in output:
                finding.fail(f"{description}: exit code {code}: {output[-200:]}")
            after = contents(run)
            if after != before:
                changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
                finding.fail(f"{description}: changed {sorted(changed)}")
            finding.record_message(output.replace(str(work), "WORK"), run)
    finding.figures["refused commands"] = attempts
    return finding
