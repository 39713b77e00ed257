"""Translation memories of a million generated segments: speed, size, and recall.

    python benchmarks/memory.py [--segments 1000000] [--looked-up 1000] [--compared 200]

Two corpora: the phrasebook, whose 1,700 words each occur in very many segments, and segments of 3 to 30 words sampled
from 200,000 by Zipf's law. For half of the queries, the memory contains a segment with one word changed; the other half
is from the generator's other split. Each memory is written and read in separate processes, which report their peak
memory. Times are CPU time, so other load does not count. The matches are compared with those of rapidfuzz over all
segments.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from bitext.memory.match import Folded
from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.corpora.phrasebook import generate

LEAST = 0.7


def phrasebook(count: int, split: str) -> Iterator[Pair]:
    return (Pair(pair.source, pair.target) for pair in generate(count, split=split, seed=1, min_words=3, max_words=30))  # type: ignore[arg-type]


def zipf(count: int, split: str) -> Iterator[Pair]:
    generator = np.random.default_rng(len(split))
    syllables = [a + b for a in "bdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "os")]
    names = random.Random(1)
    words = sorted({"".join(names.choices(syllables, k=names.choice((1, 2, 2, 3, 3, 4)))) for _ in range(400_000)})
    names.shuffle(words)
    weights = 1 / np.arange(1, 200_001)
    for _ in range(0, count, 10_000):
        lengths = generator.integers(3, 31, min(count, 10_000))
        word_ids = generator.choice(len(weights), lengths.sum(), p=weights / weights.sum())
        for sentence in np.split(word_ids, np.cumsum(lengths)[:-1]):
            text = " ".join(words[i] for i in sentence)
            yield Pair(text, text[::-1])


CORPORA: dict[str, Callable[[int, str], Iterator[Pair]]] = {"phrasebook": phrasebook, "Zipf": zipf}


def memory_mib() -> float:
    """Return the peak of this process; that of `getrusage` may be its parent's."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**10


def write(file: Path, corpus: str, count: int) -> dict[str, float]:
    before = memory_mib()
    seconds = 0.0
    pairs = CORPORA[corpus](count, "train")

    def timed() -> Iterator[Pair]:
        nonlocal seconds
        while True:
            started = time.process_time()
            pair = next(pairs, None)
            seconds += time.process_time() - started
            if pair is None:
                return
            yield pair

    started = time.process_time()
    added = TranslationMemory.make(file, timed(), "generated")
    cpu_seconds = time.process_time() - started - seconds
    size = file.stat().st_size / 2**20
    return {"segments": added.new, "seconds": cpu_seconds, "MiB": size, "peak MiB of memory": memory_mib() - before}


def lookup_texts(file: Path, corpus: str, count: int) -> list[str]:
    generator = random.Random(2)
    with TranslationMemory.open(file, immutable=True) as memory:
        numbers = generator.sample(range(1, len(memory) + 1), count // 2)
        segments = [memory._entry(number).source.split() for number in numbers]
    for words in segments:
        words[generator.randrange(len(words))] = "changed"
    return [" ".join(words) for words in segments] + [pair.source for pair in CORPORA[corpus](count // 2, "test")]


def look_up(file: Path, texts: list[str]) -> dict[str, float]:
    before = memory_mib()
    milliseconds = []
    with TranslationMemory.open(file, immutable=True) as memory:
        count_matched = 0
        for text in texts:
            started = time.process_time()
            count_matched += bool(memory.matches(text))
            milliseconds.append(1000 * (time.process_time() - started))
        started = time.process_time()
        for text in texts:
            memory.exact(text)
        exact = 1000 * (time.process_time() - started) / len(texts)
    cut = statistics.quantiles(milliseconds, n=100)
    times = {"mean": statistics.mean(milliseconds), "median": cut[49], "99 %": cut[98], "longest": max(milliseconds)}
    results = {f"{name}, ms": value for name, value in times.items()} | {"exact alone, ms": exact}
    return results | {"peak MiB of memory": memory_mib() - before, "with a match": count_matched}


def compared(file: Path, texts: list[str]) -> tuple[int, int]:
    """Count the texts with a match of at least 70 % by rapidfuzz, and those for which the memory finds one as good."""
    with TranslationMemory.open(file, immutable=True) as memory:
        keys = [row[0] for row in memory._database.execute("SELECT key FROM segments")]
        expected = right = 0
        for text in texts:
            key = Folded(text).key
            similarity = Levenshtein.normalized_similarity
            best = process.extractOne(key, keys, scorer=similarity, score_cutoff=LEAST)
            if best is None:
                continue
            expected += 1
            scores = [similarity(key, Folded(match.entry.source).key) for match in memory.matches(text)]
            right += max(scores, default=0) >= best[1] - 1e-9
    return expected, right


def in_new_process(what: Callable[..., Any], *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(what, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--segments", type=int, default=1_000_000)
    parser.add_argument("--looked-up", type=int, default=1000)
    parser.add_argument("--compared", type=int, default=200)
    arguments = parser.parse_args()
    rows: dict[str, list[str]] = {}
    for corpus in CORPORA:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "index.memory"
            written = in_new_process(write, file, corpus, arguments.segments)
            texts = lookup_texts(file, corpus, arguments.looked_up)
            lookup = in_new_process(look_up, file, texts)
            expected, right = compared(file, random.Random(3).sample(texts, arguments.compared))
        cells = {f"written: {name}": f"{value:,.0f}" for name, value in written.items()}
        cells |= {f"looked up: {name}": f"{value:,.2f}".removesuffix(".00") for name, value in lookup.items()}
        cells[f"best matches of 70 % among {arguments.compared}, and found"] = f"{expected}, {right}"
        for name, value in cells.items():
            rows.setdefault(name, []).append(value)
    print(f"| | {' | '.join(CORPORA)} |\n| --- {'| ---: ' * len(CORPORA)}|")
    for name, values in rows.items():
        print(f"| {name} | {' | '.join(values)} |")


if __name__ == "__main__":
    main()
