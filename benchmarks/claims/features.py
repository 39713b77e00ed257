"""Claim 24: what features mean, measured by labels that are known.

    translucid features RUN --text RUN/phrasebook/train.tsv         makes the dictionary of each run
    python benchmarks/claims/features.py RUN [RUN ...] [--sentences 2000] [--quick]

On labeled test sentences of the phrasebook: for each value of a label, the F1 of the best feature, neuron, channel of a
head before W^O, and of a linear probe, beside the F1 of *always*. Each is chosen on one half of the sentences and
measured on the other. Runs are seeds: the table has the means of their figures.

--quick takes 400 sentences; its figures mean nothing and are written beside the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from common import DOCS, table, write

from translucid.api.translator import Translator
from translucid.circuits.dictionary import Dictionary
from translucid.circuits.labels import KINDS, MIN_POSITIVES, LabeledPair, Meaning, Meanings, mean_f1, measure_labels
from translucid.corpora.phrasebook import generate
from translucid.ground.console import Console

COMMAND = "python benchmarks/claims/features.py RUN ..."
SITES = {"source": "source", "read": "target, read", "written": "target, written"}
LISTED = 16
"""The number of single values on the page."""
Key = tuple[str, str, str]


def labeled(sentences: int) -> list[LabeledPair]:
    pairs = []
    for phrase in generate(sentences, split="test", labels=True):
        assert phrase.labels is not None
        pairs.append(LabeledPair(phrase.source, phrase.target, phrase.labels.source, phrase.labels.target))
    return pairs


def key_of(row: Meaning) -> Key:
    return row.site, row.label, row.value


def value_rows(runs: Sequence[Meanings]) -> Iterable[list[str]]:
    """Yield a row for each of the values that features tell best, compared with *always*, and that all runs have."""
    by_run = [{key_of(row): row for row in run.rows} for run in runs]
    values = [[rows[key] for rows in by_run] for key in by_run[0] if all(key in rows for rows in by_run)]
    values.sort(key=lambda rows: mean_f1(rows, "always") - mean_f1(rows, "feature"))
    for rows in values[:LISTED]:
        key, first = key_of(rows[0]), rows[0]
        cells = [f"{SITES[key[0]]}: {key[1]} {key[2]}", f"{first.positives:,}", f"{first.always:.2f}"]
        for kind in KINDS:
            scores = [row.units[kind].f1 for row in rows]
            cells.append(f"{fmean(scores):.2f}" + (f" ({min(scores):.2f})" if kind == "feature" else ""))
        yield cells


def summary_rows(runs: Sequence[Meanings]) -> Iterable[list[str]]:
    """Yield a row for each site and label: means over values and runs, and how often features beat neurons."""
    everything = [row for run in runs for row in run.rows]
    for site, title in SITES.items():
        for label in dict.fromkeys(row.label for row in runs[0].rows if row.site == site):
            rows = [row for row in everything if row.site == site and row.label == label]
            yield summary_row(f"{title}: {label}", rows, len(runs))
    yield summary_row("all", everything, len(runs))


def summary_row(title: str, rows: Sequence[Meaning], runs: int) -> list[str]:
    means = [mean_f1(rows, kind) for kind in ("always", *KINDS)]
    better = sum(row.units["feature"].f1 > row.units["neuron"].f1 for row in rows)
    cells = [title, f"{len(rows) / runs:.0f}", *(f"{mean:.2f}" for mean in means)]
    return [*cells, f"{better} of {len(rows)}"]


def page(names: Sequence[str], runs: Sequence[Meanings], sentences: int) -> str:
    rows = runs[0].rows
    candidates = {site: next(row for row in rows if row.site == site).units for site in SITES}
    counts = []
    for site, title in SITES.items():
        counts.append([title, *(f"{candidates[site][kind].candidates:,}" for kind in KINDS[:3])])
    clear = ", ".join(f"{len(run.features):,}" for run in runs)
    summary = ["label", "values", "always", *KINDS, "feature better than neuron"]
    return f"""# Claim 24: what features mean

    {COMMAND}

{sentences:,} labeled test sentences of the phrasebook; runs: {", ".join(names)}. F1 of the best unit for each value of
a label, among the words that have the label (of a sense, among the uses of its word). Units and thresholds are chosen
on one half of the sentences; the F1 is that on the other. Every value has at least {MIN_POSITIVES} words in each half.
*Target, read*: where the decoder reads the word; *written*: where it predicts it. A probe is ridge regression on all
numbers of the input of the best sublayer. Candidates:

{table(["where", "features", "neurons", "channels"], counts)}
A channel counts with either sign. Features with a clear label (among all words, F1 at least 0.5, and 0.2 better than
*always*): {clear}.

Means over the values of a label and over runs:

{table(summary, summary_rows(runs))}
The {LISTED} values that features tell best, compared with *always*, with the words of the second half; of features also
the lowest F1 of a run. `translucid features RUN --labels FILE` shows all values.

{table(["value", "words", "always", *KINDS], value_rows(runs))}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="400 sentences, figures not written to docs")
    arguments = parser.parse_args()
    sentences = 400 if arguments.quick else arguments.sentences
    console, pairs, results = Console(stderr=True), labeled(sentences), []
    for run in arguments.runs:
        console.rule(run.name)
        translator, dictionary = Translator.load(run, "cpu", "torch"), Dictionary.load(run)
        results.append(measure_labels(translator, dictionary, pairs, console=console))
    text = page([run.name for run in arguments.runs], results, sentences)
    write("24-features.md", text, Path("runs/claims/features") if arguments.quick else DOCS)


if __name__ == "__main__":
    main()
