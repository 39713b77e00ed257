"""Claim 14: does the source contribution show that a translation is detached from its source?

    python benchmarks/claims/detached.py --run "phrasebook, seed 1" runs/demo valid.tsv test.tsv [--run ...]

The translations of a run are compared with detached ones: the same texts in another order, as translations of other
sentences of similar length; the same texts, as translations of sources in which half of the words are missing, or stand
twice; and what the model writes for random letters, the only ones that it has chosen itself. A detector is a number
that is higher for detached translations. Its limit is the 99th percentile over the run's translations of validation
sentences. Detectors `by length` are residuals of a regression on the logarithms of both lengths, fitted there too.

--quick uses 50 sentences, and writes the page to runs/quick.
"""

from __future__ import annotations

import argparse
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np
from common import DOCS, table, write
from numpy.typing import NDArray

from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs
from translucid.evaluation.confidence import logistic
from translucid.inspection.inspected import Inspected

COUNT = 1000
"""The maximum number of sentences."""
APART = 7
"""The distance of two sentences, ordered by length, whose translations are exchanged."""
LIMIT = 0.99
SEED = 3
KINDS = {
    "others": "another's",
    "dropped": "words dropped",
    "repeated": "words repeated",
    "letters": "random letters",
}

COMMAND = "python benchmarks/claims/detached.py --run NAME RUN VALID TEST [--run ...]"
INTRO = f"""# Claim 14: does the source contribution show detached translations?

A translation that is detached from its source should come from the target prefix, not from the source: the source
contribution (ALTI+, Ferrando et al. 2022, arXiv 2205.11631; [contributions](../inspection.md#contributions)) should
be low.

Detached translations are: **another's**, the model's translation of another sentence of similar length; **words
dropped** and **words repeated**, its translation of a source in which half of the words are then missing or stand
twice, all three by forced decoding; and **random letters**, what the model itself writes for such a source. Each
figure is the AUROC against the model's translations of test sentences; in brackets, how many per cent are over a
limit that 1 % of the translations of validation sentences exceed. *False alarms* are the translations of test
sentences over the limit, in per cent. *By length* is the residual of a regression on the logarithms of both lengths.
*Coverage* is the mean over source pieces of their largest contribution to a target piece, *focus* the same for target
pieces. *Learned* is a logistic regression on source contribution, coverage, focus, the contribution of the end token
and the lengths, fitted to the validation sentences with translations of other sentences.

    {COMMAND}

"""

Pairs: TypeAlias = list[tuple[str, str]]
Detector: TypeAlias = Callable[[Inspected], float]
Numbers: TypeAlias = NDArray[np.float64]


def source_contribution(inspected: Inspected) -> float:
    """Return the mean part of the target pieces that does not come from the source."""
    return 1 - float(inspected.with_contributions.source_contribution[:-1].nanmean())


def uncovered(inspected: Inspected) -> float:
    """Return 1 minus the mean over source pieces of their largest contribution to a target piece."""
    return 1 - float(inspected.with_contributions.source[:-1, :-1].nan_to_num(0).amax(0).mean())


def unfocused(inspected: Inspected) -> float:
    """Return 1 minus the mean over target pieces of the largest contribution of a source piece."""
    return 1 - float(inspected.with_contributions.source[:-1].nan_to_num(0).amax(1).mean())


def end_token(inspected: Inspected) -> float:
    """Return the mean contribution of the source's end token."""
    return float(inspected.with_contributions.source[:-1, -1].nan_to_num(0).mean())


def improbability(inspected: Inspected) -> float:
    """Return -log p of the target, divided by the number of pieces."""
    return -sum(inspected.log_probs) / len(inspected.log_probs)


def attention_entropy(inspected: Inspected) -> float:
    """Return the mean entropy of the attention of target pieces."""
    weights = inspected.cross()[:-1]
    return float(-(weights * weights.clamp(min=1e-12).log()).sum(1).mean())


def by_length(detector: Detector, usual: Sequence[Inspected]) -> Detector:
    """Return a detector corrected for what the lengths explain."""
    rows = np.array([lengths(inspected) for inspected in usual])
    weights = np.linalg.lstsq(rows, np.array([detector(inspected) for inspected in usual]), rcond=None)[0]
    return lambda inspected: detector(inspected) - float(lengths(inspected) @ weights)


def entropy_by_source_length(usual: Sequence[Inspected]) -> Detector:
    """Return the detector of the warning: a regression on the length of the source."""
    rows = np.array([lengths(inspected)[:2] for inspected in usual])
    weights = np.linalg.lstsq(rows, np.array([attention_entropy(inspected) for inspected in usual]), rcond=None)[0]
    return lambda inspected: attention_entropy(inspected) - float(lengths(inspected)[:2] @ weights)


def lengths(inspected: Inspected) -> Numbers:
    """Return 1 and the logarithms of the lengths."""
    return np.array([1.0, np.log(len(inspected.source)), np.log(len(inspected.target))])


def summed(detectors: Sequence[Detector], usual: Sequence[Inspected]) -> Detector:
    """Return the sum of detectors, each divided by its standard deviation."""
    deviations = [np.std(list(map(detector, usual))) for detector in detectors]
    return lambda inspected: sum(
        detector(inspected) / float(deviation) for detector, deviation in zip(detectors, deviations, strict=True)
    )


def learned(detectors: Sequence[Detector], usual: Sequence[Inspected], detached: Sequence[Inspected]) -> Detector:
    """Return a logistic regression on detectors and lengths, fitted to translations of validation sentences."""

    def features(inspected: Inspected) -> Numbers:
        return np.array([*(detector(inspected) for detector in detectors), *lengths(inspected)[1:]])

    rows = np.array([features(inspected) for inspected in [*usual, *detached]])
    mean, deviation = rows.mean(0), rows.std(0)
    truth = np.repeat([0.0, 1.0], [len(usual), len(detached)])
    *weights, _ = logistic((rows - mean) / deviation, truth, 1.0)
    return lambda inspected: float((features(inspected) - mean) / deviation @ np.array(weights))


def detectors_of(valid: Mapping[str, list[Inspected]]) -> dict[str, Detector]:
    """Return the detectors by name, fitted to translations of validation sentences."""
    usual = valid["own"]
    contributions = [source_contribution, uncovered, unfocused, end_token]
    source, coverage = by_length(source_contribution, usual), by_length(uncovered, usual)
    entropy = entropy_by_source_length(usual)
    return {
        "source contribution (low)": source_contribution,
        "the same by length": source,
        "log-probability (low)": improbability,
        "attention entropy": attention_entropy,
        "attention entropy by source length: the warning": entropy,
        "the warning's and source contribution by length, summed": summed([entropy, source], usual),
        "these two and coverage by length, summed": summed([entropy, source, coverage], usual),
        "coverage (low), by length": coverage,
        "focus (low), by length": by_length(unfocused, usual),
        "contributions, learned": learned(contributions, usual, valid["others"]),
    }


def inspect_translations(translator: Translator, file: str, count: int) -> dict[str, list[Inspected]]:
    """Return translations of a file's sources and detached ones, by forced decoding."""
    random = Random(SEED)
    sources = list(dict.fromkeys(pair.source for pair in read_pairs(file)))
    sources = [source for source in random.sample(sources, len(sources)) if len(source.split()) >= 3][:count]
    translations = translated(translator, sources)
    ordered = sorted(translations, key=lambda pair: (len(pair[0].split()), len(pair[1].split())))
    shifted = ordered[APART:] + ordered[:APART]
    exchanged = [(source, target) for (source, _), (_, target) in zip(ordered, shifted, strict=True)]
    pairs = {
        "own": translations,
        "others": exchanged,
        "dropped": [(without_half(source, random), target) for source, target in translations],
        "repeated": [(half_twice(source, random), target) for source, target in translations],
        "letters": translated(translator, [letters_like(source, random) for source in sources]),
    }
    return {kind: list(translator.inspector.inspect_all(texts, contributions=True)) for kind, texts in pairs.items()}


def translated(translator: Translator, sources: Sequence[str]) -> Pairs:
    """Return sources with their translations; empty translations are left out."""
    pairs = [(translation.source, translation.text) for translation in translator.stream(sources, split=False)]
    return [pair for pair in pairs if pair[1].strip()]


def without_half(source: str, random: Random) -> str:
    """Return a source without half of its words."""
    words = source.split()
    positions = sorted(random.sample(range(len(words)), max(1, len(words) // 2)))
    return " ".join(words[i] for i in positions)


def half_twice(source: str, random: Random) -> str:
    """Return a source in which half of the words are repeated."""
    words = source.split()
    repeated = set(random.sample(range(len(words)), max(1, len(words) // 2)))
    texts = []
    for i, word in enumerate(words):
        texts.append(f"{word} {word}" if i in repeated else word)
    return " ".join(texts)


def letters_like(source: str, random: Random) -> str:
    """Return random letters, as many words as a source has."""
    words = []
    for _ in source.split():
        words.append("".join(random.choices(string.ascii_lowercase, k=random.randint(2, 9))))
    return " ".join(words)


def auroc(detached: Numbers, usual: Numbers) -> float:
    """Return the probability that a detached translation has the higher number."""
    differences = detached[:, None] - usual
    return float((differences > 0).mean() + 0.5 * (differences == 0).mean())


def rows_of(valid: Mapping[str, list[Inspected]], test: Mapping[str, list[Inspected]]) -> list[list[str]]:
    """Return a row for each detector: AUROC and, in brackets, the share over the limit, for each kind; false alarms."""
    rows = []
    for name, detector in detectors_of(valid).items():
        limit = np.quantile([detector(inspected) for inspected in valid["own"]], LIMIT)
        usual = np.array([detector(inspected) for inspected in test["own"]])
        row = [name]
        for kind in KINDS:
            detached = np.array([detector(inspected) for inspected in test[kind]])
            row.append(f"{auroc(detached, usual):.3f} ({100 * (detached > limit).mean():.0f})")
        rows.append([*row, f"{100 * (usual > limit).mean():.1f}"])
    return rows


def main() -> None:
    """Measure the runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs=4, action="append", required=True, metavar=("NAME", "RUN", "VALID", "TEST"))
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    count = 50 if arguments.quick else COUNT
    text = INTRO
    for name, run, valid, test in arguments.run:
        translator = Translator.load(run, "cpu", "torch")
        results = inspect_translations(translator, valid, count), inspect_translations(translator, test, count)
        undefined = sum(bool(inspected.with_contributions.undefined) for inspected in results[1]["own"])
        sizes = f"{len(results[0]['own']):,} validation and {len(results[1]['own']):,} test sentences"
        text += f"## {name[0].upper()}{name[1:]}\n\n{sizes}; {undefined} translations with undefined contributions.\n\n"
        text += table(["detector", *KINDS.values(), "false alarms"], rows_of(*results)) + "\n"
    write("14-detached.md", text.rstrip() + "\n", Path("runs/quick") if arguments.quick else DOCS)


if __name__ == "__main__":
    main()
