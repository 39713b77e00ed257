"""The pages of claims 8 and 10, written from what has been found so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt

from benchmarks.claims.common import mean_interval, show, table, write
from benchmarks.claims.labelled import Record

NAMES = {
    "begun": "begun with the language model",
    "guessed": "begun with it, guessed labels too",
    "guesses": "the guessed labels",
    "scratch": "from scratch, the better of two settings",
    "nb-svm": "NB-SVM on bigrams",
    "logistic": "logistic regression on bigrams",
    "backwards": "begun with the one that reads backwards",
    "both": "both directions together",
}
CURVES = "begun", "scratch", "guessed", "guesses", "nb-svm", "logistic"
TRICKS = {
    "begun": "all three",
    "one rate": "one rate for all layers",
    "no triangle": "inverse square root for the slanted triangle",
    "no unfreezing": "all layers from the start",
    "no tricks": "none of the three",
    "nearly frozen": "rates a hundredth lower from layer to layer",
}
COMMAND = "python -m benchmarks.claims.labels --language RUN BACKWARDS"


def scores(records: Sequence[Record], task: str, way: str, labels: int | None = None) -> list[float]:
    """Return the accuracy of each seed; of settings from scratch the better ones count."""
    best: dict[int, float] = {}
    for record in records:
        same = record["way"].removesuffix(" slowly") == way and labels in (None, record["labels"])
        if record["task"] == task and same:
            best[record["seed"]] = max(record["accuracy"], best.get(record["seed"], 0.0))
    return [best[seed] for seed in sorted(best)]


def cell(values: Sequence[float]) -> str:
    """Write the mean over seeds with its interval."""
    return show(*mean_interval(values)) if values else ""


def write_labels(records: Sequence[Record], updates: int, docs: Path) -> None:
    """Write claim 8, as far as there is anything to say; `updates`: of the language model."""
    found = [
        record for record in records if record["task"] == "imdb" and record["way"].removesuffix(" slowly") in CURVES
    ]
    counts = sorted({record["labels"] for record in found})
    parts = ["# Claim 8: a language model saves labels\n"]
    if counts:
        ways = [way for way in CURVES if scores(found, "imdb", way)]
        draw(found, ways, counts, docs / "8-labels.png")
        rows = [[f"{count:,}", *(cell(scores(found, "imdb", way, count)) for way in ways)] for count in counts]
        parts.append(
            f"""Films' reviews, two labels, as many of each; {found[0]["held out"]:,} held-out reviews, on which nothing
was chosen. The language model has had {updates:,} updates. ± is the 95 % interval over seeds, each of which draws
other reviews and other weights; without it, there was one.

![accuracy by number of labels](8-labels.png)

{table(["labels", *(NAMES[way] for way in ways)], rows)}"""
        )
    most = max(counts, default=0)
    further = [
        [NAMES[way], cell(scores(records, "imdb", way, most)), cell(scores(records, "imdb-test", way, most))]
        for way in NAMES
    ]
    if scores(records, "imdb", "both", most) or scores(records, "imdb-test", "begun", most):
        parts.append(
            f"""## With {most:,} labels

{table(["%", "held out", "test"], [row for row in further if any(row[1:])])}"""
        )
    if questions := [record for record in records if record["task"] == "trec6"]:
        asked = questions[0]
        rows = [[NAMES[way], cell(scores(records, "trec6", way))] for way in NAMES if scores(records, "trec6", way)]
        parts.append(
            f"""## What a question asks for

TREC-6: six labels, {asked["labels"]:,} questions to learn from, {asked["held out"]:,} held out, no question twice.

{table(["way", "accuracy, %"], rows)}"""
        )
    if records:
        write("8-labels.md", "\n".join([*parts, f"Again: `{COMMAND}`\n"]), docs)


def draw(records: Sequence[Record], ways: Sequence[str], counts: Sequence[int], file: Path) -> None:
    """Draw the accuracy by the number of labels; what the seeds span is shaded."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for way in ways:
        known = [count for count in counts if scores(records, "imdb", way, count)]
        values = [scores(records, "imdb", way, count) for count in known]
        (line,) = axes.plot(known, [fmean(each) for each in values], marker="o", label=NAMES[way])
        axes.fill_between(known, [*map(min, values)], [*map(max, values)], alpha=0.15, color=line.get_color())
    axes.set(xscale="log", xlabel="labels", ylabel="accuracy on held-out reviews, %", title="IMDb")
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def write_tricks(records: Sequence[Record], labels: int, updates: int, docs: Path) -> None:
    """Write claim 10, if there is anything to say."""
    found = {way: scores(records, "imdb", way, labels) for way in TRICKS}
    whole = found["begun"]
    rows = []
    for way, values in found.items():
        if values:
            pairs = [one - other for one, other in zip(values, whole, strict=False)]
            rows.append([TRICKS[way], cell(values), "" if way == "begun" else f"{fmean(pairs):+.1f}"])
    if len(rows) > 1:
        held_out = next(record["held out"] for record in records if record["task"] == "imdb")
        page = f"""# Claim 10: three tricks of fine-tuning

A classifier of films' reviews that begins with a language model of {updates:,} updates learns from
{labels:,} labels, with and without the three tricks of Howard and Ruder 2018 (sections 3.2 and 3.3);
{held_out:,} held-out reviews, {len(whole)} seeds, each of which draws other reviews, the same for all rows. ± is the
95 % interval over seeds. In the last row each layer has a hundredth of the rate of the layer above it, so that hardly
more than the uppermost blocks learns.

{table(["fine-tuned with", "accuracy, %", "difference"], rows)}
Again: `{COMMAND} --part tricks`
"""
        write("10-tricks.md", page, docs)
