"""Claim 9: contextual word embeddings distinguish senses, static ones do not (Peters et al. 2018, tables 4 and 5).

    python benchmarks/claims/senses.py [--data data/imdb] [--runs runs/claims/senses] [--run RUN ..] [--quick]

`senses.tsv` has 554 occurrences of ten words in IMDb reviews (Maas et al. 2011), each with its sense. One annotator
labeled each occurrence in its context, without guidelines, before looking at any vector. One occurrence per review was
sampled at random, with at most 30 per sense. Titles, idioms ("by a long shot"), other senses and unclear cases were
left out. As the reviews are not part of this project, a row identifies its review by file and line, the position by the
offset in the file's review, and the review by the first digits of its SHA-256.

A bidirectional language model trains on 20,000 other reviews. Each occurrence gets the sense of its nearest neighbor
among the other occurrences of its word, or of the majority of its five nearest. A static vector is the same wherever
the word occurs, so for a fair comparison we use the model's static vectors of the surrounding words.

--run scores existing runs of either kind instead of training; they may have been trained on the labeled reviews.
--quick trains almost nothing. Figures of both are written beside the runs, not into the docs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from common import DATA, DOCS, facts, table, train_once, write
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.ground.atomic import write_atomically
from translucid.language.embedder import Embedder, bare
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.run_folder import RunFolder

LABELS = Path(__file__).with_name("senses.tsv")
COMMAND = "python benchmarks/claims/senses.py"
REVIEWS, VALIDATED = 20_000, 300
AROUND = 100
"""Words on either side that the model reads."""
WINDOW = 5
"""Words on either side whose static vectors are averaged."""
BESIDE = 2
"""Words on either side whose static vectors are concatenated."""
RESAMPLED = 2_000
_ENDS = re.compile(r"[.!?][\"')\]]*$")

Vectors = NDArray[np.float32]
Hits = dict[str, dict[str, NDArray[np.bool_]]]
"""For each method and word, whether each occurrence gets its sense."""


class Occurrence(NamedTuple):
    """A word in a review, and its sense."""

    word: str
    sense: str
    words: list[str]
    """The words of the review that the model reads."""
    place: int
    """The position of the word in `words`."""


def read(data: Path, name: str) -> Iterator[str]:
    """Yield the reviews of a file as they are."""
    with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["text"] for line in lines)


def plain(review: str) -> str:
    """Return a review without its markup, on one line."""
    return " ".join(re.sub(r"<br\s*/?>", " ", review).split())


def occurrences(reviews: Mapping[str, Sequence[str]]) -> tuple[list[Occurrence], set[str]]:
    """Return all labeled occurrences, and their reviews."""
    labeled, labeled_reviews = [], set()
    for row in LABELS.read_text().splitlines()[1:]:
        word, sense, file, line, offset, check = row.split("\t")
        review, start = reviews[file][int(line) - 1], int(offset)
        end = start + len(word)
        if sha256(review.encode()).hexdigest()[:12] != check or review[start:end].lower() != word:
            raise SystemExit(f"{file}.jsonl.gz, line {line}: another review than the one that was labeled")
        labeled.append(make_occurrence(word, sense, review[:start], review[start:end], review[end:]))
        labeled_reviews.add(plain(review))
    return labeled, labeled_reviews


def make_occurrence(word: str, sense: str, before: str, form: str, after: str) -> Occurrence:
    """Return an occurrence with the words around it; other characters attached to the word are removed."""
    left, right = (re.sub(r"<br\s*/?>", " ", side) for side in (before, after))
    words, position = f"{left}{form}{right}".split(), len(f"{left}{form}".split()) - 1
    if bare(words[position]) != word:
        words, position = f"{left} {form} {right}".split(), len(left.split())
    first = max(0, position - AROUND)
    return Occurrence(word, sense, words[first : position + 1 + AROUND], position - first)


def context_positions(occurrence: Occurrence, width: int | None) -> list[int]:
    """Return the positions of the words around a word, a number on either side or its whole sentence."""
    count = len(occurrence.words)
    if width is not None:
        first, last = max(0, occurrence.place - width), min(count - 1, occurrence.place + width)
    else:
        first = last = occurrence.place
        while first and not _ENDS.search(occurrence.words[first - 1]):
            first -= 1
        while last < count - 1 and not _ENDS.search(occurrence.words[last]):
            last += 1
    return [i for i in range(first, last + 1) if i != occurrence.place]


def vectors(embedder: Embedder, labeled: Sequence[Occurrence]) -> dict[str, Vectors]:
    """Return the vectors of occurrences [occurrences, D] for each method."""
    texts = [" ".join(occurrence.words) for occurrence in labeled]
    static = embedder.embed(texts, 0)
    zeros = np.zeros(static[0].shape[1], np.float32)

    def mean(width: int | None) -> Vectors:
        means = []
        for embedded, occurrence in zip(static, labeled, strict=True):
            neighbors = embedded[context_positions(occurrence, width)]
            means.append(neighbors.mean(0) if len(neighbors) else zeros)
        return np.stack(means)

    def concatenated(embedded: Vectors, occurrence: Occurrence) -> Vectors:
        padded = np.pad(embedded, ((BESIDE, BESIDE), (0, 0)))  # zeros beyond both ends of the review
        around = padded[occurrence.place : occurrence.place + 2 * BESIDE + 1]
        return np.delete(around, BESIDE, axis=0).ravel()  # without the word itself

    by_method = {"window": mean(WINDOW), "sentence": mean(None)}
    by_method["beside"] = np.stack(
        [concatenated(embedded, occurrence) for embedded, occurrence in zip(static, labeled, strict=True)]
    )
    for layer in range(1, len(embedder.widths)):
        states = embedder.embed(texts, layer)
        by_method[f"layer {layer}"] = np.stack(
            [embedded[occurrence.place] for embedded, occurrence in zip(states, labeled, strict=True)]
        )
    return by_method


def nearest_have_sense(embedded: Vectors, senses: Sequence[str], k: int) -> NDArray[np.bool_]:
    """Return for each occurrence whether the majority of its k nearest has its sense; the nearest breaks ties."""
    unit = embedded / np.maximum(np.linalg.norm(embedded, axis=1, keepdims=True), 1e-12)
    alike = unit @ unit.T
    np.fill_diagonal(alike, -np.inf)
    nearest = np.argsort(-alike, axis=1, kind="stable")[:, :k]
    hits = []
    for row, sense in zip(nearest, senses, strict=True):
        majority, _ = Counter(senses[n] for n in row).most_common(1)[0]
        hits.append(majority == sense)
    return np.array(hits)


def by_luck(senses: Sequence[str]) -> tuple[float, float]:
    """Return the accuracy of a random neighbor, and that of the most frequent sense."""
    counts, n = Counter(senses).values(), len(senses)
    return sum(count * (count - 1) for count in counts) / (n * (n - 1)), max(counts) / n


def resampled(hits: Hits) -> dict[str, NDArray[np.float64]]:
    """Return for each method bootstrap samples of the mean accuracy over words."""
    draw, words = np.random.default_rng(1), next(iter(hits.values()))
    indices = {word: draw.integers(len(by_word), size=(RESAMPLED, len(by_word))) for word, by_word in words.items()}
    samples = {}
    for method, by_word in hits.items():
        word_samples = [by_word[word][indices[word]].mean(1) for word in words]
        samples[method] = np.mean(word_samples, axis=0)
    return samples


def cell(mean: float, samples: NDArray[np.float64]) -> str:
    """Format an accuracy or a difference in percent, with its 95 % interval."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def score(run: Path, labeled: Sequence[Occurrence]) -> tuple[Hits, Hits]:
    """Return the hits of the nearest neighbor, and of five."""
    embedder, nearest, five = Embedder.load(run), {}, {}  # type: ignore[var-annotated]
    for word in dict.fromkeys(occurrence.word for occurrence in labeled):
        of_word = [occurrence for occurrence in labeled if occurrence.word == word]
        senses = [occurrence.sense for occurrence in of_word]
        for method, embedded in vectors(embedder, of_word).items():
            nearest.setdefault(method, {})[word] = nearest_have_sense(embedded, senses, 1)
            five.setdefault(method, {})[word] = nearest_have_sense(embedded, senses, 5)
    return nearest, five


def configured(quick: bool) -> Configuration:
    overrides: dict[str, Any] = {"data.tokenizer.normalization": "nmt_nfkc_cf", "training.max_minutes": 25.0}
    if quick:
        overrides |= {
            "training.max_steps": 20,
            "data.tokenizer.vocabulary": 1000,
            "model.width": 32,
            "model.hidden": 64,
        }
    return resolve(preset="lm-bilstm", overrides=overrides)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA / "imdb")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/senses"))
    parser.add_argument("--run", type=Path, action="append", default=[], help="score this run instead; repeatable")
    parser.add_argument("--quick", action="store_true", help="300 reviews, 20 updates, a quarter of the occurrences")
    arguments = parser.parse_args()
    if not (arguments.data / "unlabeled.jsonl.gz").exists():
        raise SystemExit(f"{arguments.data}: the reviews of IMDb are not there; name their folder with --data")
    reviews = {name: list(read(arguments.data, name)) for name in ("train", "unlabeled")}
    labeled, left_out = occurrences(reviews)
    runs, docs, count, validated = arguments.runs, DOCS, REVIEWS, VALIDATED
    if arguments.quick:
        runs = docs = arguments.runs / "quick"
        count, validated, labeled = 300, 20, labeled[::4]
    if arguments.run:
        runs = docs = runs / "given"
        trained, opening = arguments.run, ""
    else:
        texts = [plain(review) for file_reviews in reviews.values() for review in file_reviews]
        Random(1).shuffle(texts)
        train = [Pair(text, "") for text in texts if text not in left_out][:count]
        valid = [Pair(plain(review), "") for review in islice(read(arguments.data, "val"), validated)]
        trained = [runs / "bilstm"]
        opening = learned(train_once(trained[0], configured(arguments.quick), train, valid), count)
    sections, figures = [], {}
    for run in trained:
        nearest, five = score(run, labeled)
        name = f"## {run}\n\n" if arguments.run else ""
        sections.append(f"{name}{section(nearest, five, labeled)}")
        figures[str(run)] = {}
        for method, by_word in nearest.items():
            accuracies = {
                word: [float(hits.mean()), float(five[method][word].mean())] for word, hits in by_word.items()
            }
            figures[str(run)][method] = accuracies
    runs.mkdir(parents=True, exist_ok=True)
    write_atomically(runs / "figures.json", json.dumps(figures, indent=1).encode())
    write("9-senses.md", page(opening, sections, labeled), docs)


def learned(run: RunFolder, count: int) -> str:
    """Describe the model."""
    stats = facts(run)
    size, perplexity = stats["parameters"] / 1e6, stats["validations"][-1]["perplexity_word"]
    return (
        f"The model: `lm-bilstm`, {size:.1f}M parameters, {count:,} other reviews, {stats['steps']:,} updates in "
        f"{stats['minutes']:.0f} minutes on one thread,\nperplexity {perplexity:.0f} per word. One training run.\n\n"
    )


def section(nearest: Hits, five: Hits, labeled: Sequence[Occurrence]) -> str:
    """Return the tables of one run."""
    layers = [method for method in nearest if method.startswith("layer")]
    senses: dict[str, list[str]] = {}
    for occurrence in labeled:
        senses.setdefault(occurrence.word, []).append(occurrence.sense)
    luck = {word: by_luck(labels) for word, labels in senses.items()}
    chance, commonest = map(fmean, zip(*luck.values(), strict=True))
    rows = []
    for word in senses:
        of_word = {method: {word: hits[word]} for method, hits in nearest.items()}
        samples = resampled(of_word)
        listed = ", ".join(f"{sense} {n}" for sense, n in sorted(Counter(senses[word]).items()))
        cells = [
            cell(float(of_word[method][word].mean()), samples[method]) for method in ("window", "sentence", *layers)
        ]
        rows.append([f"{word}: {listed}", f"{100 * luck[word][0]:.1f}", f"{100 * luck[word][1]:.1f}", *cells])
    kinds = {
        "window": f"static, mean of {WINDOW} words on either side",
        "sentence": "static, mean of the sentence",
        "beside": f"static, {BESIDE} words on either side, concatenated",
        **{layer: f"contextual, {layer}" for layer in layers},
    }
    hits, samples = {1: nearest, 5: five}, {1: resampled(nearest), 5: resampled(five)}
    share = {}
    for k, by_method in hits.items():
        for method, by_word in by_method.items():
            share[method, k] = fmean(float(is_hit.mean()) for is_hit in by_word.values())
    means = [
        ["chance, equal to the word's own static vector", f"{100 * chance:.1f}", ""],
        ["most frequent sense", f"{100 * commonest:.1f}", f"{100 * commonest:.1f}"],
    ]
    for method, name in kinds.items():
        means.append([name, *(cell(share[method, k], samples[k][method]) for k in hits)])
    ahead = []
    for method in ("window", "sentence", "beside"):
        advantages = [
            cell(share[layer, k] - share[method, k], samples[k][layer] - samples[k][method])
            for k in hits
            for layer in layers
        ]
        ahead.append([kinds[method], *advantages])
    of = [f"{layer}, {which}" for which in ("nearest", "five nearest") for layer in layers]
    return f"""{table(["mean over words", "nearest", "majority of five"], means)}
Advantage of the contextual vectors in points over:

{table(["", *of], ahead)}
By word, nearest neighbor:

{table(["word: senses, occurrences", "chance", "most frequent", "window", "sentence", *layers], rows)}"""


def page(opening: str, sections: Sequence[str], samples: Sequence[Occurrence]) -> str:
    """Return the page of claim 9."""
    words, joined = len({occurrence.word for occurrence in samples}), "\n".join(sections)
    return f"""# Claim 9: contextual word embeddings and word senses

{len(samples)} occurrences of {words} words in IMDb reviews, each with a manual sense label. An occurrence gets the
sense of its nearest neighbor (cosine) among the other occurrences of the word, or of the majority of its five nearest.
Accuracy in percent, with bootstrap 95 % intervals over occurrences.

Contextual vectors use {AROUND} words on either side. A static vector of the word itself is the same everywhere, so the
static vectors here are the model's embeddings of the surrounding words.

{opening}{joined}
To reproduce: `{COMMAND}`
"""


if __name__ == "__main__":
    main()
