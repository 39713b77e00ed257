"""Write the pages of claims 8 and 10 from the results so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt

from benchmarks.claims.common import mean_interval, show, table, write
from benchmarks.claims.labeled import Record

NAMES = {
    "begun": "pre-trained language model",
    "guessed": "pre-trained, with pseudo-labels",
    "guesses": "pseudo-labels",
    "scratch": "from scratch, better of two settings",
    "nb-svm": "NB-SVM on bigrams",
    "logistic": "logistic regression on bigrams",
    "backwards": "backward language model",
    "both": "both directions",
}
CURVES = "begun", "scratch", "guessed", "guesses", "nb-svm", "logistic"
TRICKS = {
    "begun": "all three",
    "one rate": "one learning rate for all layers",
    "no triangle": "inverse square root schedule instead of slanted triangular",
    "no unfreezing": "all layers trained from the start",
    "no tricks": "none of the three",
    "nearly frozen": "learning rates a hundredth lower from layer to layer",
}
COMMAND = "python -m benchmarks.claims.labels --language RUN BACKWARDS"


def scores(records: Sequence[Record], task: str, method: str, labels: int | None = None) -> list[float]:
    """Return the accuracy of each seed; from scratch, the better of two settings."""
    best: dict[int, float] = {}
    for record in records:
        same = record["way"].removesuffix(" slowly") == method and labels in (None, record["labels"])
        if record["task"] == task and same:
            best[record["seed"]] = max(record["accuracy"], best.get(record["seed"], 0.0))
    return [best[seed] for seed in sorted(best)]


def cell(values: Sequence[float]) -> str:
    """Format the mean over seeds with its interval."""
    return show(*mean_interval(values)) if values else ""


def write_labels(records: Sequence[Record], updates: int, docs: Path) -> None:
    """Write claim 8 from the available results; `updates`: of the language model."""
    results = [
        record for record in records if record["task"] == "imdb" and record["way"].removesuffix(" slowly") in CURVES
    ]
    counts = sorted({record["labels"] for record in results})
    parts = ["# Claim 8: pre-training a language model saves labels\n"]
    if counts:
        methods = [method for method in CURVES if scores(results, "imdb", method)]
        draw(results, methods, counts, docs / "8-labels.png")
        rows = []
        for count in counts:
            cells = [cell(scores(results, "imdb", method, count)) for method in methods]
            rows.append([f"{count:,}", *cells])
        parts.append(
            f"""Film reviews have two balanced labels; {results[0]["held out"]:,} held-out reviews are for testing only.
The language model has {updates:,} updates. ± is the 95 % interval over seeds; each seed has different reviews and
initial weights. Without ± there is one seed.

![accuracy by number of labels](8-labels.png)

{table(["labels", *(NAMES[method] for method in methods)], rows)}"""
        )
    most = max(counts, default=0)
    further = [
        [NAMES[method], cell(scores(records, "imdb", method, most)), cell(scores(records, "imdb-test", method, most))]
        for method in NAMES
    ]
    if scores(records, "imdb", "both", most) or scores(records, "imdb-test", "begun", most):
        parts.append(
            f"""## With {most:,} labels

{table(["%", "held out", "test"], [row for row in further if any(row[1:])])}"""
        )
    if questions := [record for record in records if record["task"] == "trec6"]:
        first = questions[0]
        rows = [
            [NAMES[method], cell(scores(records, "trec6", method))]
            for method in NAMES
            if scores(records, "trec6", method)
        ]
        parts.append(
            f"""## Question classification

TREC-6: six labels, {first["labels"]:,} training questions, {first["held out"]:,} held out, without duplicates.

{table(["method", "accuracy, %"], rows)}"""
        )
    if records:
        write("8-labels.md", "\n".join([*parts, f"To reproduce: `{COMMAND}`\n"]), docs)


def draw(records: Sequence[Record], methods: Sequence[str], counts: Sequence[int], file: Path) -> None:
    """Plot the accuracy by the number of labels; the range over seeds is shaded."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for method in methods:
        known = [count for count in counts if scores(records, "imdb", method, count)]
        values = [scores(records, "imdb", method, count) for count in known]
        (line,) = axes.plot(known, [fmean(accuracies) for accuracies in values], marker="o", label=NAMES[method])
        axes.fill_between(known, [*map(min, values)], [*map(max, values)], alpha=0.15, color=line.get_color())
    axes.set(xscale="log", xlabel="labels", ylabel="accuracy on held-out reviews, %", title="IMDb")
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def write_tricks(records: Sequence[Record], labels: int, updates: int, docs: Path) -> None:
    """Write claim 10 if it has results."""
    by_method = {method: scores(records, "imdb", method, labels) for method in TRICKS}
    base = by_method["begun"]
    rows = []
    for method, values in by_method.items():
        if values:
            pairs = [accuracy - reference for accuracy, reference in zip(values, base, strict=False)]
            rows.append([TRICKS[method], cell(values), "" if method == "begun" else f"{fmean(pairs):+.1f}"])
    if len(rows) > 1:
        held_out = next(record["held out"] for record in records if record["task"] == "imdb")
        page = f"""# Claim 10: three techniques for fine-tuning

A film review classifier is initialized from a language model ({updates:,} updates) and trained on {labels:,} labels,
with and without the three techniques of Howard and Ruder 2018 (sections 3.2 and 3.3). There are {held_out:,} held-out
reviews and {len(base)} seeds; each seed samples different reviews, the same for all rows. ± is the 95 % interval over
seeds. In the last row each layer has a hundredth of the learning rate of the layer above, so that almost only the top
layers train.

{table(["fine-tuned with", "accuracy, %", "difference"], rows)}
To reproduce: `{COMMAND} --part tricks`
"""
        write("10-tricks.md", page, docs)
