"""Every trial at full length, and docs/reliability.md with what came of it: `make reliability`.

    python -m benchmarks.reliability [--quick] [--only training hostile] [--large 1000000 5000000 20000000]

About an hour and a half on two cores, half of it for the corpora of millions of pairs; --quick is a few minutes.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.reliability.hostile.runner import run_all

from benchmarks.reliability import batch, large, scaling, serving, training
from benchmarks.reliability.common import Finding, said_by, translucid
from benchmarks.reliability.page import page

DOCS = Path(__file__).resolve().parents[2] / "docs"
PARTS = ["training", "batch", "serving", "hostile", "scaling", "large"]


def findings(work: Path, quick: bool, parts: list[str]) -> Iterator[Finding]:
    """Run the trials one after the other."""
    trials: list[tuple[str, Callable[[], Finding]]] = [
        ("training", lambda: training.kills(work / "kills", 3 if quick else 50)),
        ("training", lambda: training.lost_workers(work / "workers", 1 if quick else 5)),
        ("training", lambda: training.full_disk(work / "disk")),
        ("training", lambda: training.read_only(work / "read-only")),
        ("training", lambda: training.two_at_once(work / "two")),
        ("training", lambda: training.damages(work / "damages", 33 if quick else 550)),
        ("batch", lambda: killed_jobs(work / "batch", model(work), 4 if quick else 40)),
        ("serving", lambda: serving.under_load(model(work), 0.2 if quick else 10)),
    ]
    for part, trial in trials:
        if part in parts:
            yield trial()
    if "hostile" in parts:
        for tally in run_all(1000 if quick else 100_000, 1):
            figures = {"tried": tally.tried, "refused with one line": tally.refused, "harmless": tally.accepted}
            yield Finding(f"hostile input: {tally.target.replace('_', ' ')}", figures, tally.failures)


def model(work: Path) -> Path:
    """Return a small translator, trained when it is first asked for."""
    run = work / "model"
    if not (run / "model.safetensors").exists():
        said_by(translucid("demo", "--out", run))
    return run


def killed_jobs(work: Path, run: Path, kills: int) -> Finding:
    """Kill translation jobs of one process and of two."""
    finding = Finding("translation jobs of 20,000 lines killed (SIGKILL), then given again")
    for workers in (1, 2):
        (work / str(workers)).mkdir(parents=True)
        counts = batch.run(work / str(workers), run, kills=kills // 2, workers=workers)
        finding.failures += [f"{counts[what]} {what}" for what in batch.WRONG if counts[what]]
        for name in ("kills", "jobs", "lost", "duplicated", "out_of_order"):
            finding.figures[name] = int(finding.figures.get(name, 0)) + counts[name]
    return finding


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="each trial a few times; nothing is written to docs")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some of the trials")
    parser.add_argument("--large", nargs="+", type=int, default=[1_000_000, 5_000_000, 20_000_000], help="pairs")
    parser.add_argument("--work", type=Path, help="where there is room: 10 GB")
    given = parser.parse_args()
    started, found, tables = time.monotonic(), [], {}
    with tempfile.TemporaryDirectory(dir=given.work) as folder:
        work = Path(folder)
        for finding in findings(work, given.quick, given.only):
            found.append(finding)
            print(json.dumps(asdict(finding), ensure_ascii=False), file=sys.stderr, flush=True)
        if "scaling" in given.only and not given.quick:
            tables["scaling"] = scaling.table(scaling.measure(work / "scaling", 1))
        if "large" in given.only:
            sizes = [20_000] if given.quick else given.large
            (work / "large").mkdir()
            tables["large"] = large.table([large.measure(work / "large", size) for size in sizes])
    written = page(found, tables, time.monotonic() - started)
    if not given.quick and given.only == PARTS:
        (DOCS / "reliability.md").write_text(written, encoding="utf-8")
    print(written)
    sys.exit(any(finding.failures for finding in found))


if __name__ == "__main__":
    main()
