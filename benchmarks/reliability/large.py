"""Corpora larger than memory: time and memory until the first update, by the number of pairs.

    python -m benchmarks.reliability.large --pairs 1000000 5000000 20000000

Each pair joins two random phrasebook sentences, so there are hundreds of millions of different ones.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from translucid.corpora.phrasebook import generate
from translucid.runs.run_folder import RunFolder

UPDATES = 20


def write_pairs(file: Path, count: int, seed: int = 1) -> None:
    """Write `count` pairs with 14 words on average."""
    single = [(p.source, p.target) for p in generate(20_000, max_words=12)]
    generator = random.Random(seed)
    with file.open("w", encoding="utf-8") as out:
        for start in range(0, count, 10_000):
            samples = zip(*(generator.choices(single, k=min(10_000, count - start)) for _ in range(2)), strict=True)
            out.writelines(f"{a} {c}\t{b} {d}\n" for (a, b), (c, d) in samples)


def measured(*arguments: str) -> tuple[float, float, float, str]:
    """Run the command; return its seconds, peak memory and peak private memory in MiB, and output."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "translucid", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    resident = private = 0.0
    while process.poll() is None:
        memory_now = _memory(process.pid)
        resident, private = max(resident, memory_now[0]), max(private, memory_now[1])
        time.sleep(0.2)
    output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(output)
    return time.perf_counter() - started, resident, private, output


def _memory(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process in MiB, and the part that is not backed by files."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # the process has ended
        return 0.0, 0.0
    sizes = {}
    for line in lines:
        name, rest = line.split(":", 1)
        if "kB" in rest:
            sizes[name] = float(rest.split()[0]) / 1024
    return sizes.get("VmRSS", 0.0), sizes.get("RssAnon", 0.0)


def measure(work: Path, pairs: int) -> dict[str, Any]:
    """Train one update on a fresh corpus, then resume for a few; the resumed run encodes nothing."""
    file, run = work / "pairs.tsv", work / "run"
    shutil.rmtree(run, ignore_errors=True)
    write_pairs(file, pairs)
    settings = ["training.max_steps=1", "training.validate_sentences=20", "data.tokenizer.sample=200000"]
    settings += ["data.subword_dropout=0", "training.cooldown=0"]
    files = ["--train", str(file), "--out", str(run)]
    seconds, resident, private, _ = measured("train", "--no-tune", *files, "--model", "demo", "--set", *settings)
    again, resident_again, private_again, _ = measured(
        "train", "--no-tune", "--resume", *files, "--set", f"training.max_steps={1 + UPDATES}"
    )
    assert RunFolder(run).load_state()[1]["place"]["step"] == 1 + UPDATES  # type: ignore[index]
    size = sum(part.stat().st_size for part in RunFolder(run).corpus_folder.iterdir())
    file_size = file.stat().st_size
    shutil.rmtree(run)
    file.unlink()
    return {
        "pairs": pairs,
        "text_mib": file_size / 2**20,
        "encoded_mib": size / 2**20,
        "seconds": seconds,
        "seconds_per_million": seconds / pairs * 1e6,
        "peak_mib": resident,
        "peak_private_mib": private,
        "again_seconds": again,
        "again_peak_mib": resident_again,
        "again_peak_private_mib": private_again,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the measurements as Markdown."""
    lines = [
        "| pairs | text | encoded | time to the first update | per million pairs | peak memory, private memory |"
        f" resumed run with {UPDATES} updates | peak memory, private memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: row["pairs"]):
        lines.append(
            "| {pairs:,} | {text_mib:,.0f} MiB | {encoded_mib:,.0f} MiB | {seconds:,.0f} s "
            "| {seconds_per_million:.1f} s | {peak_mib:,.0f} MiB, {peak_private_mib:,.0f} MiB | {again_seconds:.1f} s "
            "| {again_peak_mib:,.0f} MiB, {again_peak_private_mib:,.0f} MiB |".format(**row)
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 5_000_000, 20_000_000])
    parser.add_argument("--work", type=Path, help="a folder with free space: 10 GB for 20 million pairs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        rows = [measure(Path(work), pairs) for pairs in arguments.pairs]
    print(json.dumps(rows, indent=1))
    print(table(rows))


if __name__ == "__main__":
    main()
