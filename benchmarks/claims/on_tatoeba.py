"""Every preset for the same number of minutes on Tatoeba: the table of presets, and claims 1, 3 and 4.

    python benchmarks/claims/on_tatoeba.py tatoeba-eng-spa/ [--minutes 10] [--quick]

The folder contains train.tsv, dev.tsv and test.tsv. Sources of more than 15 words are rare in this corpus, so half of
those among the training pairs are held out as an additional test set. Runs are cached in runs/claims/tatoeba; an
interrupted command resumes. Use a quiet machine: the budget is in minutes.

--quick trains each preset for half a minute, to check that everything runs; its figures mean nothing and are written
beside the runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from common import DOCS, facts, scored, show, table, train_once, translations, write
from rich.console import Console

from bitext.pair import Pair
from translucid.data.readers.corpus import read_pairs
from translucid.runs.configuration import resolve
from translucid.runs.presets import all_presets

NAMES = [name for name in all_presets() if name.startswith(("rnn", "attention"))] + ["small"]
LONG = 15
"""The number of words above which a sentence is long."""
COMMAND = "python benchmarks/claims/on_tatoeba.py tatoeba-eng-spa/"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, help="the folder with train.tsv, dev.tsv and test.tsv")
    parser.add_argument("--minutes", type=float, default=10, help="training minutes per preset")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/tatoeba"))
    parser.add_argument("--quick", action="store_true", help="half a minute each, figures not written to docs")
    arguments = parser.parse_args()
    minutes, runs, docs = arguments.minutes, arguments.runs, DOCS
    if arguments.quick:
        minutes, runs, docs = 0.5, arguments.runs / "quick", arguments.runs / "quick"
    train, dev, test = (list(read_pairs(arguments.corpus / f"{split}.tsv")) for split in ("train", "dev", "test"))
    long = [pair for pair in train if words(pair) > LONG][::2]
    train = [pair for pair in train if pair not in set(long)]
    long += [pair for pair in test if words(pair) > LONG]

    results: dict[str, dict[str, Any]] = {}
    for name in NAMES:
        Console(stderr=True).rule(name)
        overrides = {"training.max_minutes": minutes, "training.max_steps": None, "training.validate_every": 250}
        run = train_once(runs / name, resolve(preset=name, overrides=overrides), train, dev)
        hypotheses = {beam: translations(run, test, beam) for beam in (1, 2, 5, 10)}
        results[name] = {
            **facts(run),
            "beams": {beam: scored(texts, test) for beam, texts in hypotheses.items()},
            "long": scored(translations(run, long, 5), long),
        }
    write("presets.md", presets_page(results, minutes, len(test), len(long)), docs)
    write("1-beam-search.md", beam_page(results), docs)
    write("3-scores-tatoeba.md", score_page(results), docs)
    write("4-time-to-quality.md", time_page(results), docs)
    draw_curves(results, docs / "4-time-to-quality.png")


def words(pair: Pair) -> int:
    """Count the words of a source."""
    return len(pair.source.split())


def presets_page(results: dict[str, dict[str, Any]], minutes: float, test: int, long: int) -> str:
    """Return the page that compares every preset."""
    rows = []
    for name, r in results.items():
        bleu, half, chrf = r["beams"][5]
        rows.append(
            [
                name,
                show(bleu, half),
                f"{chrf:.1f}",
                show(*r["long"][:2]),
                f"{r['long'][2]:.1f}",
                f"{r['parameters'] / 1e6:.1f}M",
                f"{r['tokens_per_second']:,.0f}",
                f"{r['steps']:,}",
                f"{r['minutes']:.1f}",
            ]
        )
    head = ["preset", "BLEU", "chrF", "BLEU, long", "chrF, long", "parameters", "tokens/s", "updates", "minutes"]
    return f"""# Every preset, {minutes:g} minutes each

Tatoeba English–Spanish, {test:,} test sentences, beam 5, cased sacreBLEU; *long*: {long:,} sources of more than {LONG}
words, which are rare in the corpus: those of the test set, and half of those among the training pairs, held out. One
seed; ± is the 95 % bootstrap interval over the test sentences, not over seeds.

{table(head, rows)}
To reproduce: `{COMMAND}`
"""


def beam_page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page of claim 1."""
    rows, gains = [], []
    for name, result in results.items():
        scores = result["beams"]
        rows.append([name, *(show(*scores[beam][:2]) for beam in (1, 2, 5, 10))])
        gains.append(scores[5][0] - scores[1][0])
    better = sum(gain > 0 for gain in gains)
    return f"""# Claim 1: beam search beats greedy search without more training

BLEU on the Tatoeba test set by beam size. A beam of 5 is better than greedy search for {better} of {len(gains)} models.
It gains {min(gains):+.1f} to {max(gains):+.1f} BLEU.

{table(["model", "greedy", "beam 2", "beam 5", "beam 10"], rows)}
± is the 95 % bootstrap interval over the test sentences. To reproduce: `{COMMAND}`
"""


def score_page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page of claim 3 on real text."""
    names = [name for name in results if "luong" in name or "bahdanau" in name]
    rows = [
        [
            name,
            show(*results[name]["beams"][5][:2]),
            f"{results[name]['validations'][-1]['loss']:.3f}",
            f"{results[name]['tokens_per_second']:,.0f}",
            f"{results[name]['steps']:,}",
        ]
        for name in names
    ]
    return f"""# Claim 3, on Tatoeba: attention scores with equal training time

{table(["model", "BLEU", "validation loss", "tokens/s", "updates"], rows)}
One seed; ± is the 95 % bootstrap interval over the test sentences. To reproduce: `{COMMAND}`
"""


def minutes_to(level: float, curve: Sequence[tuple[float, float]]) -> str:
    """Return the minutes until BLEU first reaches a level, or a dash."""
    for minute, bleu in curve:
        if bleu >= level:
            return f"{minute:.1f}"
    return "–"


def time_page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page of claim 4."""
    levels = [5, 10, 15, 20, 25, 30]
    rows = []
    for name, r in results.items():
        curve = [(row["seconds"] / 60, row["bleu"]) for row in r["validations"]]
        reached = [minutes_to(level, curve) for level in levels]
        rows.append([name, *reached, f"{max(bleu for _, bleu in curve):.1f}"])
    return f"""# Claim 4: the Transformer trains faster to the same quality than the RNN with attention

Minutes on two cores until greedy BLEU on 500 development sentences first reaches a level, with a validation every 250
updates. The last column is the best BLEU.

{table(["model", *(f"BLEU {level}" for level in levels), "best"], rows)}
![BLEU over minutes](4-time-to-quality.png)

To reproduce: `{COMMAND}`
"""


def draw_curves(results: dict[str, dict[str, Any]], file: Path) -> None:
    """Plot BLEU over minutes, one line per model."""
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for name, r in results.items():
        curve = [(row["seconds"] / 60, row["bleu"]) for row in r["validations"]]
        axes.plot(*zip(*curve, strict=True), label=name, marker=".", linewidth=3 if name == "small" else 1.5)
    axes.set(xlabel="minutes of two cores", ylabel="greedy BLEU, 500 development sentences")
    axes.set_title("BLEU over minutes of training, Tatoeba English–Spanish")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
