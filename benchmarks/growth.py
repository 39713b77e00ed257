"""How time and memory grow with sentence length, batch size, beam, vocabulary and corpus.

    python benchmarks/growth.py [--quick]

Each point is measured in a separate process; memory is the growth of its peak. The model has the architecture of the
preset `tiny` and fresh weights, and outputs have a fixed length. The script prints a table of each factor, writes the
first and last points between the markers of docs/benchmarks.md, and plots all of them in docs/pictures/growth.png.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Any

from translucid.kernels.machine import cores, processor

DOCS = Path(__file__).resolve().parents[1] / "docs"
Point = tuple[float, float]
"""Seconds and MiB."""


def model_of(vocabulary: int = 10_000) -> Any:
    import torch

    from translucid.kernels.devices import tune_cpu
    from translucid.models.transformer import Transformer
    from translucid.runs.configuration import resolve

    tune_cpu()
    torch.manual_seed(1)
    return Transformer(vocabulary, vocabulary, resolve(preset="tiny").model).eval()


def attention(length: int, *, plain: bool) -> Callable[[], object]:
    """Return a training step with one pair of this length; `plain` keeps all attention weights."""
    import torch

    from translucid.attention.points import recording_weights

    model = model_of(1000)
    ids = torch.randint(4, 1000, (1, length))

    def step() -> None:
        with recording_weights(model) if plain else nullcontext():
            model.features(model.encode(ids), ids).sum().backward()

    return step


def search(sentences: int = 64, beam: int = 5, vocabulary: int = 10_000, length: int = 20) -> Callable[[], object]:
    """Return our own search with sources and outputs of 20 tokens."""
    import torch

    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.decoding.search import search

    model = model_of(vocabulary)
    source = torch.cat([torch.randint(4, vocabulary, (sentences, length)), torch.full((sentences, 1), 3)], 1)
    options = DecodingOptions(beam=beam, min_length=length, max_length_ratio=0, max_length_extra=length, max_loops=0)
    return lambda: search(model, source, options)


def corpus(pairs: int) -> Callable[[], object]:
    """Return the work before the first update: reading a corpus, filtering, encoding to disk, planning batches."""
    import random

    from translucid.data.filtering import Filter
    from translucid.data.readers.corpus import read_pairs
    from translucid.data.stores.store import CorpusStore
    from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
    from translucid.training.data_loader import PairDataLoader

    words = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in "aeiou" for c in ("n", "s", "ra", "le", "to")]
    generator = random.Random(1)
    file = Path(tempfile.mkdtemp()) / "pairs.tsv"
    with file.open("w") as out:
        for _ in range(pairs):
            source = " ".join(generator.choices(words, k=10))
            out.write(f"{source}\t{source[::-1]}\n")
    tokenizer = Tokenizer.learn(list(read_pairs(str(file)))[:5000], TokenizerOptions(vocabulary=500), seed=1)
    text = list(read_pairs(str(file)))

    def prepare() -> int:
        store = CorpusStore(Path(tempfile.mkdtemp()) / "corpus")
        store.build([text], tokenizer, Filter(), identity="", max_tokens=256)
        stored = store.open("")
        return PairDataLoader(stored.pairs, stored.sizes, max_tokens=256, batch_tokens=4096, seed=1).size(0)

    return prepare


FACTORS: dict[str, tuple[str, list[Any], dict[str, Callable[[Any], Callable[[], object]]]]] = {
    "tokens per sentence": (
        "one training step with one pair",
        [10, 30, 100, 300, 1000, 2000],
        {"fused": lambda n: attention(n, plain=False), "weights kept": lambda n: attention(n, plain=True)},
    ),
    "sentences per batch": ("beam search, beam 5", [1, 4, 16, 64, 256], {"": lambda n: search(sentences=n)}),
    "beam": ("beam search, 64 sentences", [1, 2, 5, 10, 20], {"": lambda n: search(beam=n)}),
    "vocabulary size": (
        "beam search, 64 sentences, beam 5",
        [1000, 4000, 16000, 64000],
        {"": lambda n: search(vocabulary=n)},
    ),
    "sentence pairs": (
        "reading, filtering, encoding, planning batches",
        [10_000, 30_000, 100_000, 300_000],
        {"": corpus},
    ),
}


def peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def point(factor: str, variant: str, value: Any, out: Any) -> None:
    """Measure one point, in a separate process."""
    action = FACTORS[factor][2][variant](value)
    before, started = peak_mib(), time.perf_counter()
    action()
    once = time.perf_counter() - started
    memory = peak_mib() - before
    times = [once]
    while sum(times) < 1.5 and len(times) < 20:
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    out.put((min(times), memory))


def measure(factor: str, variant: str, value: Any) -> Point:
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=point, args=(factor, variant, value, out))
    process.start()
    measurement: Point = out.get()
    process.join()
    return measurement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="print only the two smallest points of each")
    quick = parser.parse_args().quick
    summary = ["| factor | from | to | ms | MiB |", "| --- | ---: | ---: | ---: | ---: |"]
    points: dict[str, dict[str, list[Point]]] = {}
    for factor, (what, values, variants) in FACTORS.items():
        values = values[:2] if quick else values
        points[factor] = {}
        for name in variants:
            points[factor][name] = [measure(factor, name, value) for value in values]
        head = [f"{name} {unit}".strip() for name in variants for unit in ("ms", "MiB")]
        rows = [f"| {factor} | " + " | ".join(head) + " |", "| ---: |" + " ---: |" * len(head)]
        for i, value in enumerate(values):
            cells = [f"{number:,.0f}" for name in variants for number in scaled(points[factor][name][i])]
            rows.append(f"| {value:,} | " + " | ".join(cells) + " |")
        print(f"By {factor}: {what}\n\n" + "\n".join(rows) + "\n")
        for name, measured in points[factor].items():
            (ms, mib), (last_ms, last_mib) = scaled(measured[0]), scaled(measured[-1])
            label = ", ".join(filter(None, (factor, name)))
            ends = f"{values[0]:,} | {values[-1]:,} | {ms:,.0f} → {last_ms:,.0f} | {mib:,.0f} → {last_mib:,.0f}"
            summary.append(f"| {label} ({what}) | {ends} |")
    if quick:
        return
    page = DOCS / "benchmarks.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- growth -->\n")
    _, end, after = rest.partition("<!-- end of growth -->")
    machine = f"Measured on {cores()} cores of {processor()}, {date.today():%B %Y}.\n"
    page.write_text("\n".join([before + begin, machine, *summary, "", end + after]), encoding="utf-8")
    draw(points)


def scaled(point: Point) -> tuple[float, float]:
    return 1000 * point[0], point[1]


def draw(points: dict[str, dict[str, list[Point]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5.5), layout="constrained")
    axes = figure.subplots(2, len(points))
    for column, (factor, variants) in enumerate(points.items()):
        for row, (index, unit) in enumerate(((0, "seconds"), (1, "MiB"))):
            axis = axes[row][column]
            for name, variant_points in variants.items():
                values = [max(measurement[index], 1e-3) for measurement in variant_points]
                axis.plot(FACTORS[factor][1], values, marker="o", label=name or None)
            axis.set(xscale="log", yscale="log", ylabel=unit, xlabel=factor)
            axis.grid(alpha=0.3)
            if len(variants) > 1:
                axis.legend(fontsize=8)
    figure.savefig(DOCS / "pictures" / "growth.png", dpi=90)


if __name__ == "__main__":
    main()
