"""Claim 9: contextual word embeddings distinguish senses, static ones do not (Peters et al. 2018, tables 4 and 5).

    python benchmarks/claims/senses.py [--data ../shared/data/imdb] [--runs runs/claims/senses] [--run RUN ..] [--quick]

`senses.tsv` has 554 occurrences of ten words in IMDb reviews (Maas et al. 2011), each with its sense. One annotator
labelled each occurrence in its context, without guidelines, before looking at any vector. One occurrence per review was
sampled at random, with at most 30 per sense. Titles, idioms ("by a long shot"), other senses and unclear cases were
left out. As the reviews are not part of this project, a row identifies its review by file and line, the position by the
offset in the file's review, and the review by the first digits of its SHA-256.

A bidirectional language model trains on 20,000 other reviews. Each occurrence gets the sense of its nearest neighbour
among the other occurrences of its word, or of the majority of its five nearest. A static vector is the same wherever
the word occurs, so for a fair comparison we use the model's static vectors of the surrounding words.

--run scores existing runs of either kind instead of training; they may have been trained on the labelled reviews.
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
from common import DOCS, facts, table, train_once, write
from numpy.typing import NDArray

from translucid.api.embedder import Embedder, bare
from translucid.data.readers.corpus import Pair
from translucid.ground.atomic import write_atomically
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.run_folder import RunFolder

LABELS = Path(__file__).with_name("senses.tsv")
COMMAND = "python benchmarks/claims/senses.py"
REVIEWS, VALIDATED = 20_000, 300
AROUND = 100
"""Words on either side that the model reads."""
WINDOW = 5
"""Words on either side whose static vectors are put together."""
BESIDE = 2
"""Words on either side whose static vectors stand one after the other."""
RESAMPLED = 2_000
_ENDS = re.compile(r"[.!?][\"')\]]*$")

Vectors = NDArray[np.float32]
Hits = dict[str, dict[str, NDArray[np.bool_]]]
"""Of each way and each word, whether the occurrences got their sense."""


class Occurrence(NamedTuple):
    """A word in a review, and its sense."""

    word: str
    sense: str
    words: list[str]
    """Of the review, as many as are read."""
    place: int
    """The word's."""


def read(data: Path, name: str) -> Iterator[str]:
    """Yield the reviews of a file as they are."""
    with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["text"] for line in lines)


def plain(review: str) -> str:
    """Return a review without its markup, on one line."""
    return " ".join(re.sub(r"<br\s*/?>", " ", review).split())


def occurrences(reviews: Mapping[str, Sequence[str]]) -> tuple[list[Occurrence], set[str]]:
    """Return all labelled occurrences, and their reviews."""
    found, asked = [], set()
    for row in LABELS.read_text().splitlines()[1:]:
        word, sense, file, line, offset, check = row.split("\t")
        review, start = reviews[file][int(line) - 1], int(offset)
        end = start + len(word)
        if sha256(review.encode()).hexdigest()[:12] != check or review[start:end].lower() != word:
            raise SystemExit(f"{file}.jsonl.gz, line {line}: another review than the one that was labelled")
        found.append(placed(word, sense, review[:start], review[start:end], review[end:]))
        asked.add(plain(review))
    return found, asked


def placed(word: str, sense: str, before: str, written: str, after: str) -> Occurrence:
    """Return an occurrence with the words around it; other characters attached to the word are removed."""
    left, right = (re.sub(r"<br\s*/?>", " ", side) for side in (before, after))
    words, place = f"{left}{written}{right}".split(), len(f"{left}{written}".split()) - 1
    if bare(words[place]) != word:
        words, place = f"{left} {written} {right}".split(), len(left.split())
    first = max(0, place - AROUND)
    return Occurrence(word, sense, words[first : place + 1 + AROUND], place - first)


def others(one: Occurrence, width: int | None) -> list[int]:
    """Return the positions of the words around a word, a number on either side or its whole sentence."""
    count = len(one.words)
    if width is not None:
        first, last = max(0, one.place - width), min(count - 1, one.place + width)
    else:
        first = last = one.place
        while first and not _ENDS.search(one.words[first - 1]):
            first -= 1
        while last < count - 1 and not _ENDS.search(one.words[last]):
            last += 1
    return [at for at in range(first, last + 1) if at != one.place]


def vectors(embedder: Embedder, asked: Sequence[Occurrence]) -> dict[str, Vectors]:
    """Return the vectors of occurrences [occurrences, D] for each method."""
    texts = [" ".join(one.words) for one in asked]
    static = embedder.embed(texts, 0)
    nothing = np.zeros(static[0].shape[1], np.float32)

    def mean(width: int | None) -> Vectors:
        around = (each[others(one, width)] for each, one in zip(static, asked, strict=True))
        return np.stack([each.mean(0) if len(each) else nothing for each in around])

    def beside(each: Vectors, one: Occurrence) -> Vectors:
        places = [one.place + step for step in range(-BESIDE, BESIDE + 1) if step]
        return np.concatenate([each[at] if 0 <= at < len(each) else nothing for at in places])

    found = {"window": mean(WINDOW), "sentence": mean(None)}
    found["beside"] = np.stack([beside(each, one) for each, one in zip(static, asked, strict=True)])
    for layer in range(1, len(embedder.widths)):
        states = embedder.embed(texts, layer)
        found[f"layer {layer}"] = np.stack([each[one.place] for each, one in zip(states, asked, strict=True)])
    return found


def told_apart(given: Vectors, senses: Sequence[str], k: int) -> NDArray[np.bool_]:
    """Return for each occurrence whether the majority of its k nearest has its sense; the nearest breaks ties."""
    unit = given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-12)
    alike = unit @ unit.T
    np.fill_diagonal(alike, -np.inf)
    nearest = np.argsort(-alike, axis=1, kind="stable")[:, :k]
    return np.array(
        [Counter(senses[n] for n in row).most_common(1)[0][0] == own for row, own in zip(nearest, senses, strict=True)]
    )


def by_luck(senses: Sequence[str]) -> tuple[float, float]:
    """Return the accuracy of a random neighbour, and that of the most frequent sense."""
    counts, n = Counter(senses).values(), len(senses)
    return sum(count * (count - 1) for count in counts) / (n * (n - 1)), max(counts) / n


def resampled(hits: Hits) -> dict[str, NDArray[np.float64]]:
    """Return for each method bootstrap samples of the mean accuracy over words."""
    draw, words = np.random.default_rng(1), next(iter(hits.values()))
    drawn = {word: draw.integers(len(each), size=(RESAMPLED, len(each))) for word, each in words.items()}
    return {way: np.mean([each[word][drawn[word]].mean(1) for word in words], axis=0) for way, each in hits.items()}


def cell(mean: float, samples: NDArray[np.float64]) -> str:
    """Format an accuracy or a difference in percent, with its 95 % interval."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def score(run: Path, asked: Sequence[Occurrence]) -> tuple[Hits, Hits]:
    """Return the hits of the nearest neighbour, and of five."""
    embedder, one, five = Embedder.load(run), {}, {}  # type: ignore[var-annotated]
    for word in dict.fromkeys(each.word for each in asked):
        own = [each for each in asked if each.word == word]
        senses = [each.sense for each in own]
        for way, given in vectors(embedder, own).items():
            one.setdefault(way, {})[word] = told_apart(given, senses, 1)
            five.setdefault(way, {})[word] = told_apart(given, senses, 5)
    return one, five


def configured(quick: bool) -> Configuration:
    overrides: dict[str, Any] = {"data.tokenizer.normalisation": "nmt_nfkc_cf", "training.max_minutes": 25.0}
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
    parser.add_argument("--data", type=Path, default=Path("../shared/data/imdb"))
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/senses"))
    parser.add_argument("--run", type=Path, action="append", default=[], help="score this run instead; repeatable")
    parser.add_argument("--quick", action="store_true", help="300 reviews, 20 updates, a quarter of the occurrences")
    given = parser.parse_args()
    if not (given.data / "unlabelled.jsonl.gz").exists():
        raise SystemExit(f"{given.data}: the reviews of IMDb are not there; name their folder with --data")
    reviews = {name: list(read(given.data, name)) for name in ("train", "unlabelled")}
    asked, left_out = occurrences(reviews)
    runs, docs, count, validated = given.runs, DOCS, REVIEWS, VALIDATED
    if given.quick:
        runs = docs = given.runs / "quick"
        count, validated, asked = 300, 20, asked[::4]
    if given.run:
        runs = docs = runs / "given"
        trained, opening = given.run, ""
    else:
        texts = [plain(review) for each in reviews.values() for review in each]
        Random(1).shuffle(texts)
        train = [Pair(text, "") for text in texts if text not in left_out][:count]
        valid = [Pair(plain(review), "") for review in islice(read(given.data, "val"), validated)]
        trained = [runs / "bilstm"]
        opening = learned(train_once(trained[0], configured(given.quick), train, valid), count)
    sections, kept = [], {}
    for run in trained:
        one, five = score(run, asked)
        name = f"## {run}\n\n" if given.run else ""
        sections.append(f"{name}{section(one, five, asked)}")
        kept[str(run)] = {
            way: {word: [float(hits.mean()), float(five[way][word].mean())] for word, hits in each.items()}
            for way, each in one.items()
        }
    runs.mkdir(parents=True, exist_ok=True)
    write_atomically(runs / "figures.json", json.dumps(kept, indent=1).encode())
    write("9-senses.md", page(opening, sections, asked), docs)


def learned(run: RunFolder, count: int) -> str:
    """Describe the model."""
    known = facts(run)
    size, perplexity = known["parameters"] / 1e6, known["validations"][-1]["perplexity_word"]
    return (
        f"The model: `lm-bilstm`, {size:.1f}M parameters, {count:,} other reviews, {known['steps']:,} updates in "
        f"{known['minutes']:.0f} minutes on one thread,\nperplexity {perplexity:.0f} per word. One training run.\n\n"
    )


def section(one: Hits, five: Hits, asked: Sequence[Occurrence]) -> str:
    """The tables of one run."""
    layers = [way for way in one if way.startswith("layer")]
    words = list(dict.fromkeys(each.word for each in asked))
    senses = {word: [each.sense for each in asked if each.word == word] for word in words}
    luck = {word: by_luck(each) for word, each in senses.items()}
    chance, commonest = (fmean(each[n] for each in luck.values()) for n in (0, 1))
    rows = []
    for word in words:
        own = {way: {word: hits[word]} for way, hits in one.items()}
        samples = resampled(own)
        listed = ", ".join(f"{sense} {n}" for sense, n in sorted(Counter(senses[word]).items()))
        shown = [cell(float(own[way][word].mean()), samples[way]) for way in ("window", "sentence", *layers)]
        rows.append([f"{word}: {listed}", f"{100 * luck[word][0]:.1f}", f"{100 * luck[word][1]:.1f}", *shown])
    kinds = {
        "window": f"static, mean of {WINDOW} words on either side",
        "sentence": "static, mean of the sentence",
        "beside": f"static, {BESIDE} words on either side, concatenated",
        **{layer: f"contextual, {layer}" for layer in layers},
    }
    hits, samples = {1: one, 5: five}, {1: resampled(one), 5: resampled(five)}
    share = {(way, k): fmean(float(each.mean()) for each in hits[k][way].values()) for way in one for k in hits}
    means = [
        ["chance, equal to the word's own static vector", f"{100 * chance:.1f}", ""],
        ["most frequent sense", f"{100 * commonest:.1f}", f"{100 * commonest:.1f}"],
        *([name, *(cell(share[way, k], samples[k][way]) for k in hits)] for way, name in kinds.items()),
    ]
    ahead = [
        [
            kinds[way],
            *(
                cell(share[layer, k] - share[way, k], samples[k][layer] - samples[k][way])
                for k in hits
                for layer in layers
            ),
        ]
        for way in ("window", "sentence", "beside")
    ]
    of = [f"{layer}, {which}" for which in ("nearest", "five nearest") for layer in layers]
    return f"""{table(["mean over words", "nearest", "majority of five"], means)}
Advantage of the contextual vectors in points over:

{table(["", *of], ahead)}
By word, nearest neighbour:

{table(["word: senses, occurrences", "chance", "most frequent", "window", "sentence", *layers], rows)}"""


def page(opening: str, sections: Sequence[str], asked: Sequence[Occurrence]) -> str:
    """Claim 9."""
    words, joined = len({each.word for each in asked}), "\n".join(sections)
    return f"""# Claim 9: contextual word embeddings and word senses

{len(asked)} occurrences of {words} words in IMDb reviews, with a sense label by hand for each. An occurrence gets the
sense of its nearest neighbour (cosine) among the other occurrences of the word, or of the majority of its five nearest.
Accuracy in percent, with bootstrap 95 % intervals over occurrences.

Contextual vectors see {AROUND} words on either side. A static vector of the word itself is the same everywhere, so the
static vectors here are the model's embeddings of the surrounding words.

{opening}{joined}
To reproduce: `{COMMAND}`
"""


if __name__ == "__main__":
    main()
