"""How well the confidence of a translation separates good ones from bad ones.

    python -m benchmarks.confidence RUN --valid dev.tsv --test test.tsv
    python -m benchmarks.confidence RUN --hallucinations test.tsv
    python -m benchmarks.confidence --mlqe ../shared/data/mlqe

With a run: for each set of features, an estimator is fitted to the translations of the validation pairs, as `translucid
tune confidence` does, and tested on the test pairs. A translation is good with a chrF of at least 40 against the
reference. `lift` says how many times the expected share of bad translations is among the fifth with the lowest
confidence (1 is chance, 5 the maximum). The calibration error follows Guo et al. 2017, with 15 bins; `floor` is the
mean error of a perfectly calibrated confidence on as many translations, which is not zero because bins are small.
`time` is the CPU time of translation with quality estimation relative to translation only.

With --hallucinations: how often a run after `tune confidence` reports detached attention, and its mean confidence, on
test sentences after the first 600 (on which the measure was chosen), on random letters, on three sentences joined into
one, and in forced decoding of the translation of another sentence of similar length.

With MLQE (Fomicheva et al. 2020): Pearson correlation with human scores of 1,000 translations per language pair, for
the mean log-probability and for a ridge regression on the log-probability features, which the same code fits to the
7,000 training translations.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import string
import tempfile
import time
from pathlib import Path

import numpy as np

from translucid.api.fitting.confidence_fitting import fit_confidence
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs
from translucid.data.text_pipeline import Piece
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.stages import Part
from translucid.evaluation.confidence import KINDS, Figures, Kind, Measurements, feature_matrix, lift
from translucid.evaluation.metrics import sentence_chrf
from translucid.ground.console import Console
from translucid.ground.special import SPECIAL
from translucid.language.text_classifier import calibration_error

PAIRS = "en-de", "en-zh", "ro-en", "et-en", "ne-en", "si-en"
RIDGE = 10.0
"""Penalty of the weights of standardized features."""
CHOSEN_ON = 600
"""Test sentences on which the measure of detached attention was chosen."""
ROUNDS = 3
"""The number of rounds; the fastest one counts."""


def of_run(run: Path, valid: str, test: str, sentences: int, passes: int) -> None:
    """Print the table of a run."""
    pairs = list(read_pairs(test))[:sentences]
    sources = [pair.source for pair in pairs]
    print("| features | time | lift | calibration error | floor | AUC | bad | kept by `tune` |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for kind in (None, *(kind for kind in KINDS if kind != "dropout" or passes)):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "run"
            shutil.copytree(run, folder, ignore=shutil.ignore_patterns("state", "events*", ".lock", "confidence.json"))
            dropout_passes = passes if kind == "dropout" else 0
            fitted = fit_confidence(
                folder,
                console=Console(stderr=True),
                valid=[valid],
                kind=kind,
                passes=dropout_passes,
                sentences=sentences,
            )
            if kind is None:
                chosen_kind = fitted.estimator.kind
                continue
            t = Translator.load(folder, "cpu")
            translations = list(t.stream(sources, split=False))
            translating = min(_seconds(lambda t=t: list(t.stream(sources, split=False))) for _ in range(ROUNDS))
            estimating = min(
                _seconds(lambda t=t, translations=translations: t.quality.confidences(translations))
                for _ in range(ROUNDS)
            )
            values = []
            for confidence in t.quality.confidences(translations):
                # It is None if there was nothing to translate; a copy is right.
                values.append(1.0 if confidence is None else confidence)
            confidences = np.array(values)
            good = (
                np.array(
                    sentence_chrf([translation.text for translation in translations], [pair.target for pair in pairs])
                )
                >= 40
            )
            chance = np.random.default_rng(1)
            floor = np.mean(
                [calibration_error(confidences, chance.random(len(confidences)) < confidences) for _ in range(100)]
            )
            print(
                f"| {kind} | {1 + estimating / translating:.2f} × | {lift(confidences, ~good):.2f} "
                f"| {calibration_error(confidences, good):.3f} | {floor:.3f} | {_auc(confidences, good):.3f} "
                f"| {(~good).mean():.1%} | {'yes' if kind == chosen_kind else ''} |",
                flush=True,
            )


def _seconds(work) -> float:  # type: ignore[no-untyped-def]
    started = time.process_time()
    work()
    return time.process_time() - started


def _auc(confidences: Figures, good: Figures) -> float:
    """Return the probability that a good translation has a higher confidence than a bad one."""
    differences = confidences[good][:, None] - confidences[~good]
    return float((differences > 0).mean() + 0.5 * (differences == 0).mean())


def of_hallucinations(run: Path, test: str, count: int = 300) -> None:
    """Print the table of detached attention."""
    t = Translator.load(run, "cpu")
    fitted = t.quality.estimator
    assert fitted and fitted.detached, "run translucid tune confidence first"
    sources = [pair.source for pair in read_pairs(test)][CHOSEN_ON:][:count]
    chance = random.Random(2)
    letters = []
    for length in chance.choices(range(3, 11), k=count):
        words = ("".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 9))) for _ in range(length))
        letters.append(" ".join(words))
    threes = [" ".join(sources[i : i + 3]) for i in range(0, len(sources) - 2, 3)]
    parts_of_test = _parts(t, sources)
    order = sorted(parts_of_test, key=lambda part: (len(part[0].ids), len(part[1].tokens)))
    exchanged = [
        (piece, _forced(t, piece, hypothesis.tokens))
        for (piece, _), (_, hypothesis) in zip(order, order[7:] + order[:7], strict=True)
    ]
    print("| input | sentences | reported as detached | mean confidence |")
    print("|---|--:|--:|--:|")
    kinds = {"test sentences": parts_of_test, "random letters": _parts(t, letters), "three in one": _parts(t, threes)}
    for name, parts in {**kinds, "another's translation, forced": exchanged}.items():
        features = t.quality.observed(parts, ["attention"])
        reported = np.mean([bool(fitted.detached.about(sentence_features)) for sentence_features in features])
        confidence = fitted(t.quality.observed(parts, [fitted.kind], fitted.passes)).mean()
        print(f"| {name} | {len(parts)} | {reported:.1%} | {confidence:.2f} |", flush=True)


def _parts(t: Translator, sources: list[str]) -> list[Part]:
    return [translation.parts[0] for translation in t.stream(sources, split=False) if len(translation.parts) == 1]


def _forced(t: Translator, piece: Piece, tokens: list[int]) -> Hypothesis:
    """Return an output with the log-probabilities of forced decoding."""
    (log_probs,) = t.engine.forced([(piece.ids, [*tokens, SPECIAL.end])])
    return Hypothesis(tokens, sum(log_probs), sum(log_probs), list(log_probs))


def of_mlqe(folder: Path) -> None:
    """Print the table of MLQE."""
    names = KINDS["tokens"]
    print("| pair | mean log-probability | ridge of the features |")
    print("|---|--:|--:|")
    for pair in PAIRS:
        (x, scores), (held_out, truth) = (
            _read(folder / f"{pair}.{part}.jsonl.gz", "tokens") for part in ("train", "dev")
        )
        mean, deviation = x.mean(0), x.std(0)
        x, scaled = (x - mean) / deviation, (held_out - mean) / deviation
        weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(len(names)), x.T @ (scores - scores.mean()))
        alone = np.corrcoef(held_out[:, list(names).index("mean")], truth)[0, 1]
        print(f"| {pair} | {alone:.3f} | {np.corrcoef(scaled @ weights, truth)[0, 1]:.3f} |", flush=True)


def _read(file: Path, kind: Kind) -> tuple[Figures, Figures]:
    """Return features [n, k] and scores [n] (`z_mean`)."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    measurements = []
    for row in rows:
        log_probs = np.array(row["log_probs"], np.float64)
        measurements.append(
            Measurements(row["source"], row["translation"], len(log_probs), float(log_probs.sum()), log_probs)
        )
    return feature_matrix(measurements, KINDS[kind]), np.array([row["z_mean"] for row in rows], np.float64)


def main() -> None:
    """Run the chosen benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--valid")
    parser.add_argument("--test")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--dropout-passes", type=int, default=0)
    parser.add_argument("--hallucinations", metavar="FILES")
    parser.add_argument("--mlqe", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.run and arguments.hallucinations:
        of_hallucinations(arguments.run, arguments.hallucinations)
    elif arguments.run:
        of_run(arguments.run, arguments.valid, arguments.test, arguments.sentences, arguments.dropout_passes)
    if arguments.mlqe:
        of_mlqe(arguments.mlqe)


if __name__ == "__main__":
    main()
