"""Shared by the scripts of all toolkits: the corpus as ids, batches, timing, and one line of JSON as the result.

Ids are the same for every toolkit: 0 end, 1 unknown, 2 start, then pieces, and padding last. "Target tokens" are target
pieces and the end token, without padding.
"""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

WORK = Path(os.environ["PEERS_WORK"])
"""Environments, data and models; set by run.py."""
DATA = WORK / "data"
END, UNKNOWN, START = 0, 1, 2

Pair = tuple[list[int], list[int]]


PEAK, WARMUP, SENTENCES = 0.002, 400, 500
"""Learning curves of the other toolkits: the rate, the updates up to it, and the validation sentences translated."""


class Size:
    """A Transformer's shape and the target tokens of a batch."""

    def __init__(self, layers: int, width: int, feed_forward: int, heads: int, dropout: float, tokens: int) -> None:
        self.layers, self.width, self.feed_forward, self.heads = layers, width, feed_forward, heads
        self.dropout, self.tokens = dropout, tokens


SIZES = {"tiny": Size(4, 128, 256, 4, 0.3, 4096), "base": Size(6, 512, 2048, 8, 0.1, 2048)}


def vocabulary() -> list[str]:
    """Return the pieces in the order of their ids, padding last."""
    return (DATA / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]


def pieces(split: str, language: str) -> list[list[str]]:
    """Return the sentences of a split as pieces."""
    return [line.split() for line in (DATA / f"{split}.bpe.{language}").open(encoding="utf-8")]


def text(row: Sequence[str]) -> str:
    """Join the pieces of a sentence to text."""
    return "".join(row).replace("\u2581", " ").strip()


def load_pairs(split: str, longest: int = 100) -> list[Pair]:
    """Return source and target ids, each with the end token."""
    ids = {piece: i for i, piece in enumerate(vocabulary())}

    def encode(sentence: list[str]) -> list[int]:
        return [ids.get(piece, UNKNOWN) for piece in sentence] + [END]

    pairs = zip(map(encode, pieces(split, "en")), map(encode, pieces(split, "de")), strict=True)
    return [pair for pair in pairs if max(map(len, pair)) <= longest]


def random_batches(pairs: Sequence[Pair], tokens: int) -> Iterator[list[Pair]]:
    """Yield shuffled batches as in tutorials: a fixed number of sentences, with about this many target tokens."""
    size = max(1, round(tokens / statistics.fmean(len(target) for _, target in pairs)))
    generator, order = random.Random(1), list(pairs)
    while True:
        generator.shuffle(order)
        for first in range(0, len(order) - size + 1, size):
            yield order[first : first + size]


def like_length_batches(pairs: Sequence[Pair], tokens: int) -> Iterator[list[Pair]]:
    """Sort by length, fill batches up to this many target tokens, and shuffle the batches."""
    generator = random.Random(1)
    while True:
        batches: list[list[Pair]] = [[]]
        count = 0
        for pair in sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), generator.random())):
            if batches[-1] and count + len(pair[1]) > tokens:
                batches.append([])
                count = 0
            batches[-1].append(pair)
            count += len(pair[1])
        generator.shuffle(batches)
        yield from batches


BATCHES = {"random": random_batches, "like length": like_length_batches}


def measure(step: Callable[[list[Pair]], None], batches: Iterator[list[Pair]], seconds: float) -> dict[str, Any]:
    """Take three warm-up steps, then steps for this many seconds; the time includes making batches."""
    for _ in range(3):
        step(next(batches))
    tokens, updates, started = 0, 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        batch = next(batches)
        step(batch)
        tokens += sum(len(target) for _, target in batch)
        updates += 1
    return {"tokens_per_second": tokens / elapsed, "updates": updates, "peak_mib": peak_mib()}


def peak_mib(*, children: bool = False) -> int:
    """Return the peak memory of this process, or of its children."""
    processes = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
    return resource.getrusage(processes).ru_maxrss // 1024


def versions(*names: str) -> dict[str, str]:
    """Return the versions of installed packages."""
    return {"python": sys.version.split()[0], **{name: metadata.version(name) for name in names}}


def report(**fields: Any) -> None:
    """Print the result, which run.py reads."""
    print("RESULT " + json.dumps(fields), flush=True)
