"""Train on short sentences and translate long ones: claims 2, 3 and 5 on the phrasebook.

    python benchmarks/claims/long_sentences.py [--seeds 2] [--quick]

Every model trains on the same sentences of at most 15 words with the same number of updates. It is tested on sentences
of up to 60 words, in buckets of 100. Runs are cached in runs/claims/phrasebook; an interrupted command resumes. The
budget is in updates, so that a busy machine gives the same results.

--quick trains each model with one seed for 60 updates, to check that everything runs; its figures mean nothing and are
written beside the runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
from common import DOCS, facts, scored, show, table, train_once, translations, write
from rich.console import Console

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.runs.configuration import resolve

LONGEST = 15
"""The number of words of the longest training sentence."""
BUCKETS = [(2, 5), (6, 10), (11, 15), (16, 20), (21, 25), (26, 30), (31, 40), (41, 50), (51, 60)]
EACH = 100
"""The number of sentences in each bucket."""
COMMAND = "python benchmarks/claims/long_sentences.py"

RECURRENT = {"kind": "recurrent", "width": 128, "dropout": 0.1}
TRANSFORMER = {"kind": "transformer", "width": 128, "heads": 4, "feed_forward": 512, "encoder_layers": 2}
TRANSFORMER |= {"decoder_layers": 2, "dropout": 0.1}
MODELS: dict[str, dict[str, Any]] = {
    "none": {**RECURRENT, "attention": "none"},
    "bahdanau": {**RECURRENT, "attention": "bahdanau", "cell": "gru"},
    "luong-dot": {**RECURRENT, "attention": "luong-dot"},
    "luong-scaled-dot": {**RECURRENT, "attention": "luong-scaled-dot"},
    "luong-general": {**RECURRENT, "attention": "luong-general"},
    "luong-concat": {**RECURRENT, "attention": "luong-concat"},
    "luong-local": {**RECURRENT, "attention": "luong-general", "window": 5},
    "transformer, sinusoidal": {**TRANSFORMER, "positions": "sinusoidal"},
    "transformer, learned": {**TRANSFORMER, "positions": "learned"},
    "transformer, none": {**TRANSFORMER, "positions": "none"},
}
"""Model options by name; all models have width 128."""
LENGTHS = ["none", "bahdanau", "luong-dot", *(name for name in MODELS if name.startswith("transformer"))]
SCORES = [name for name in MODELS if name.startswith(("bahdanau", "luong"))]
POSITIONS = [name for name in MODELS if name.startswith("transformer")]

Results = dict[str, list[dict[str, Any]]]
"""The results of each seed by model: facts of the run, and `bleu` and `half` its interval's width for each bucket."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/phrasebook"))
    parser.add_argument("--quick", action="store_true", help="60 updates with one seed, figures not written to docs")
    arguments = parser.parse_args()
    seeds, updates, runs, docs = arguments.seeds, arguments.updates, arguments.runs, DOCS
    if arguments.quick:
        seeds, updates, runs, docs = 1, 60, arguments.runs / "quick", arguments.runs / "quick"
    train = sentences("train", 40_000, 2, LONGEST)
    valid = sentences("valid", 300, 2, LONGEST)
    tests = [sentences("test", EACH, *bucket) for bucket in BUCKETS]

    results: Results = {name: [] for name in MODELS}
    for seed in range(1, seeds + 1):
        for name, model in MODELS.items():
            Console(stderr=True).rule(f"{name}, seed {seed}")
            run = train_once(runs / f"{name.replace(', ', '-')}-{seed}", configured(model, updates, seed), train, valid)
            hypotheses = translations(run, [pair for test in tests for pair in test], beam=5)
            scores = [scored(hypotheses[i * EACH : (i + 1) * EACH], test) for i, test in enumerate(tests)]
            halves = {"bleu": [bleu for bleu, _, _ in scores], "half": [half for _, half, _ in scores]}
            results[name].append({**facts(run), **halves})
    write("2-long-sentences.md", length_page(results, seeds, updates), docs)
    write("3-scores-phrasebook.md", score_page(results, seeds), docs)
    write("5-positions.md", position_page(results, seeds), docs)
    draw(results, LENGTHS, "Trained on sentences of up to 15 words", docs / "2-long-sentences.png")
    draw(results, POSITIONS, "The Transformer with each kind of position", docs / "5-positions.png")


def sentences(split: str, count: int, shortest: int, longest: int) -> list[Pair]:
    """Return phrasebook pairs of a split, of these lengths in words."""
    phrases = generate(count, split=split, min_words=shortest, max_words=longest)  # type: ignore[arg-type]
    return [Pair(phrase.source, phrase.target) for phrase in phrases]


def configured(model: dict[str, Any], updates: int, seed: int) -> Any:
    """Return the configuration of one run."""
    return resolve(
        overrides={
            "model": model,
            "data.tokenizer.vocabulary": 1500,
            "training.seed": seed,
            "training.batch_tokens": 2048,
            "training.learning_rate": 0.004,
            "training.warmup": 200,
            "training.cooldown": 0.4,
            "training.averaging": 0.99,
            "training.validate_every": 400,
            "training.patience": None,
            "training.max_steps": updates,
        }
    )


def by_bucket(results: Results, names: Sequence[str]) -> str:
    """Return a table of BLEU by length."""
    head = ["source words", *names]
    rows = []
    for i, (shortest, longest) in enumerate(BUCKETS):
        cells = [cell(results[name], i) for name in names]
        mark = "" if longest <= LONGEST else " *"
        rows.append([f"{shortest}–{longest}{mark}", *cells])
    return table(head, rows)


def cell(runs: Sequence[dict[str, Any]], bucket: int) -> str:
    """Format the mean BLEU of a bucket with its interval: over sentences, or over seeds if that is wider."""
    over_seeds = [run["bleu"][bucket] for run in runs]
    half = max(mean(run["half"][bucket] for run in runs), (max(over_seeds) - min(over_seeds)) / 2)
    return show(mean(over_seeds), half)


def note(seeds: int) -> str:
    """Return what the intervals mean, and the command that reproduces the page."""
    return f"""\\* longer than all training sentences. Mean over {seeds} seeds; ± is the 95 % bootstrap interval
over sentences, or the range over seeds if that is wider.

To reproduce: `{COMMAND}`
"""


def length_page(results: Results, seeds: int, updates: int) -> str:
    """Return the page of claim 2."""
    return f"""# Claim 2: attention helps with long sentences

Every model trains on the same 40,000 phrasebook sentences of 2 to {LONGEST} words, with {updates:,} updates of at most
2,048 tokens. It then translates sentences of up to 60 words, {EACH} per bucket. BLEU, beam 5:

{by_bucket(results, LENGTHS)}
![BLEU by length](2-long-sentences.png)

{note(seeds)}"""


def score_page(results: Results, seeds: int) -> str:
    """Return the page of claim 3."""
    rows = []
    for name in SCORES:
        runs = results[name]
        # The first three buckets have at most LONGEST words.
        short = " / ".join(f"{mean(run['bleu'][:3]):.1f}" for run in runs)
        long = " / ".join(f"{mean(run['bleu'][3:]):.1f}" for run in runs)
        loss = " / ".join(f"{run['validations'][-1]['loss']:.3f}" for run in runs)
        rows.append([name, short, long, loss])
    head = ["attention", "BLEU, up to 15 words", "BLEU, 16 to 60 words", "validation loss"]
    return f"""# Claim 3, on the phrasebook: Luong's dot variants against concat

The number of updates is the same for all. BLEU is the mean over the buckets of [claim 2](2-long-sentences.md), for each
seed.

{table(head, rows)}
To reproduce: `{COMMAND}`
"""


def position_page(results: Results, seeds: int) -> str:
    """Return the page of claim 5."""
    return f"""# Claim 5: sinusoidal, learned and no positions

The setting is the same as for [claim 2](2-long-sentences.md). BLEU, beam 5:

{by_bucket(results, POSITIONS)}
![BLEU by length](5-positions.png)

{note(seeds)}"""


def draw(results: Results, names: Sequence[str], title: str, file: Path) -> None:
    """Plot BLEU by length, one line per model, with the range over seeds shaded."""
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    middle = [(shortest + longest) / 2 for shortest, longest in BUCKETS]
    for name in names:
        runs = [run["bleu"] for run in results[name]]
        means = [mean(values) for values in zip(*runs, strict=True)]
        (line,) = axes.plot(middle, means, marker="o", label=name)
        lows, highs = zip(*((min(values), max(values)) for values in zip(*runs, strict=True)), strict=True)
        axes.fill_between(middle, lows, highs, alpha=0.15, color=line.get_color())
    axes.axvline(LONGEST + 0.5, color="gray", linestyle="--")
    axes.text(LONGEST + 1, 3, "longer than in training →", color="gray")
    axes.set(xlabel="source words", ylabel="BLEU", ylim=(0, 100), title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
