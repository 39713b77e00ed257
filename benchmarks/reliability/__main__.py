"""Run every trial at full length and write docs/reports/reliability.md: `make reliability`.

    python -m benchmarks.reliability [--quick] [--only training hostile] [--large 1000000 5000000 20000000]

This takes about an hour and a half on two cores. The results of each part are stored in docs/reports/reliability.json;
--only repeats some parts and writes the page with the stored results of the others. --quick takes a few minutes and
writes nothing.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.reliability import captions, interference, large, live, mixed, scaling, serving, siege
from benchmarks.reliability.page import RECORD, machine, write_page
from tests.probes import killed_jobs, killed_server, outputs, refusals, training
from tests.probes.common import Finding, output_of, train, translucid
from tests.probes.grown import SEEDS, faults
from tests.probes.hostile.runner import SHARES, run_all
from tests.probes.kinds import IMAGES, LABELS, LANGUAGE, TUNED
from translucid import __version__
from translucid.ground.atomic import write_atomically

PARTS = [
    "training",
    "refusals",
    "outputs",
    "kinds",
    "starts",
    "batch",
    "documents",
    "serving",
    "mixed",
    "siege",
    "interference",
    "hostile",
    "growth",
]
PARTS += ["images", "scaling", "large"]


def trials(part: str, work: Path, quick: bool) -> Iterator[Finding]:
    """Run the trials of a part, one after another."""
    if part == "training":
        yield training.kills(work / "kills", *((3, 120) if quick else (50, 5000)))
        yield training.lost_workers(work / "workers", 1 if quick else 5)
        yield training.full_disk(work / "disk")
        yield training.read_only(work / "read-only")
        yield training.two_at_once(work / "two")
        yield training.damages(work / "damages", 33 if quick else 550)
    elif part == "refusals":
        yield refusals.nothing_changes(work / "refusals", 8 if quick else None)
    elif part == "outputs":
        yield outputs.nothing_else_is_replaced(work / "outputs", 3 if quick else None)
    elif part == "kinds":
        for kind in (LANGUAGE, LABELS):
            yield training.kills(work / f"kills of {kind.name}", *((2, 60) if quick else (20, 2000)), kind)
            yield training.damages(work / f"damages of {kind.name}", 16 if quick else 200, kind)
    elif part == "starts":
        yield starts_killed(work, *((2, 40) if quick else (10, 200)))
    elif part == "batch":
        yield jobs_killed(work / "batch", model(work), 4 if quick else 40, 20_000)
    elif part == "documents":
        yield jobs_killed(work / "documents", model(work), 4 if quick else 20, 20_000, killed_jobs.document)
        yield from hostile(["documents"], quick)
    elif part == "serving":
        yield serving.under_load(model(work), 0.2 if quick else 5)
    elif part == "mixed":
        for engine, minutes in (("auto", 10), ("torch", 3)):
            yield mixed.mixed(model(work), work, 0.3 if quick else minutes, engine=engine)
    elif part == "siege":
        for engine in ("auto", "torch"):
            yield from siege.under_attack(model(work), work, 5 if quick else 10, engine=engine)
        yield live.live_attacked(model(work), work, 10 if quick else 120)
    elif part == "interference":
        yield from interference.all_trials(model(work), work, 5 if quick else 30)
        yield killed_server.kills(work / "killed server", model(work), 3 if quick else 100)
    elif part == "growth":
        yield growing_documents(list(SEEDS)[:2] if quick else list(SEEDS))
    elif part == "hostile":
        yield from hostile([target for target in SHARES if target not in ("documents", "images")], quick)
    elif part == "images":
        corpus = IMAGES.write(work / "scenes", 340 if quick else 1500)
        yield training.kills(work / "image-kills", *((3, 60) if quick else (50, 1000)), IMAGES, corpus=corpus)
        yield training.damages(work / "image-damages", 20 if quick else 400, IMAGES)
        kills, size = (2, 1000) if quick else (20, 3000)
        yield jobs_killed(work / "image-batch", captioner(work, corpus), kills, size, killed_jobs.pictures)
        yield captions.captions(captioner(work, corpus), work, 0.2 if quick else 5)
        yield from hostile(["images"], quick)


def hostile(targets: list[str], quick: bool) -> Iterator[Finding]:
    """Try hostile input for some of the targets."""
    count = (1000 if quick else 100_000) * sum(SHARES[target] for target in targets)
    for tally in run_all(round(count), 1, targets):
        figures = {"tried": tally.tried, "rejected with one line": tally.refused, "harmless": tally.accepted}
        yield Finding(f"hostile input: {tally.target.replace('_', ' ')}", figures, tally.failures)


def growing_documents(names: Sequence[str]) -> Finding:
    """Make each string of small documents long, repeat each part, put each part into itself, and all to 1 MB."""
    finding = Finding("strings of a document made long, parts repeated, parts within themselves: work, memory, output")
    for name in names:
        finding.failures += [f"{name}: {fault}" for fault in faults(name)]
    finding.figures = {"documents": len(names)}
    return finding


def tables(part: str, work: Path, quick: bool, sizes: list[int]) -> str | None:
    """Return the table of a part, if it has one."""
    if part == "scaling":
        return scaling.table(scaling.measure(work / part, 0.2 if quick else 1))
    if part == "large":
        (work / part).mkdir()
        if quick:
            sizes = [20_000]
        return large.table([large.measure(work / part, size) for size in sizes])
    return None


def starts_killed(work: Path, kills: int, steps: int) -> Finding:
    """Kill a fine-tuning run, and resume it each time."""
    finding = training.kills(work / "starts", kills, steps, TUNED)
    finding.trial = "fine-tuning killed (SIGKILL) at random moments, then resumed to its end"
    return finding


def model(work: Path) -> Path:
    """Return a small translation model, trained on first use."""
    run = work / "model"
    if not (run / "model.safetensors").exists():
        output_of(translucid("demo", "--out", run))
    return run


def captioner(work: Path, corpus: list[str]) -> Path:
    """Return a small captioner, trained on first use."""
    run = work / "captioner"
    if not (run / "model.safetensors").exists():
        output_of(train(run, corpus, 60, IMAGES))
    return run


def jobs_killed(
    work: Path, run: Path, kills: int, lines: int, make_job: Callable[..., killed_jobs.Job] = killed_jobs.texts
) -> Finding:
    """Kill jobs with one process and with two."""
    whats = {killed_jobs.texts: "translation", killed_jobs.document: "document", killed_jobs.pictures: "caption"}
    finding = Finding(f"{whats[make_job]} jobs of {lines:,} lines killed (SIGKILL), then run again")
    for workers in (1, 2):
        (work / str(workers)).mkdir(parents=True)
        counts = killed_jobs.run(
            work / str(workers), run, kills=kills // 2, lines=lines, workers=workers, make_job=make_job
        )
        finding.failures += [f"{counts[what]} {what}" for what in killed_jobs.WRONG if counts[what]]
        for name in ("kills", "jobs", "lost", "duplicated", "out_of_order"):
            finding.figures[name] = int(finding.figures.get(name, 0)) + counts[name]
    return finding


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="run each trial a few times, and write nothing to docs")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="only these parts")
    parser.add_argument("--large", nargs="+", type=int, default=[1_000_000, 5_000_000, 20_000_000], help="corpus sizes")
    parser.add_argument("--model", type=Path, help="a run of `translucid demo`; by default one is trained")
    parser.add_argument("--work", type=Path, help="a folder with 10 GB of free space")
    arguments = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() and not arguments.quick else {}
    failed = False
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        if arguments.model:
            shutil.copytree(arguments.model, Path(folder) / "model")
        for part in arguments.only:
            started, findings = time.monotonic(), []
            for finding in trials(part, Path(folder), arguments.quick):
                findings.append(asdict(finding))
                failed |= bool(finding.failures)
                print(json.dumps(findings[-1], ensure_ascii=False), file=sys.stderr, flush=True)
            table = tables(part, Path(folder), arguments.quick, arguments.large)
            seconds = round(time.monotonic() - started)
            facts = {"seconds": seconds, "machine": machine(), "version": __version__}
            record[part] = {"findings": findings, "table": table, **facts}
            if not arguments.quick:
                write_atomically(RECORD, json.dumps(record, indent=1, ensure_ascii=False).encode())
    if not arguments.quick:
        write_page(PARTS)
    sys.exit(failed)


if __name__ == "__main__":
    main()
