"""Claim 27: where idle attention goes, and what it hides.

    python benchmarks/claims/sinks.py RUN [RUN ...] [--texts FILE] [--sentences 500] [--quick]

For each run, on its own validation pairs (an imported run: on the texts, one a line, with its own translations): the
shares of attention on tokens without content, for each kind of attention beside uniform attention; how much they decide
the similarity of the heads of a layer; and, by gold links of the phrasebook for runs of the demo and otherwise by links
that statistics find, the alignment error rate of the best reading of all weights and of those on content words. Several
runs of the same name apart from a final number, such as `tiny-1` and `tiny-2`, are seeds: their figures are averaged.

--quick takes 50 pairs; its figures mean nothing and are written beside the results.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch
from common import DOCS, table, write
from torch import Tensor

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.evaluation.alignment_error import Gold
from translucid.ground.console import Console
from translucid.inspection.alignment import candidates, choose
from translucid.inspection.inspected import AttentionShares, Inspected, attention_shares
from translucid.inspection.statistical_alignment import statistical_links
from translucid.runs.corpus_files import pairs_of

COMMAND = "python benchmarks/claims/sinks.py RUN ..."
KINDS = {"encoder.self": "encoder", "decoder.self": "decoder", "decoder.cross": "cross-attention"}
STATISTICS = 20_000
"""The number of training pairs from which links are found, besides the compared pairs."""


class Measured(NamedTuple):
    """The figures of a run."""

    shares: Mapping[str, AttentionShares]
    similarity: tuple[float, float]
    """The mean cosine between cross-attention heads of a layer: all weights, and those on content words."""
    error_rates: tuple[float, float]
    """By the best reading of all weights, and by the best of those on content words."""


def measure(run: Path, sentences: int, texts: Path | None) -> Measured:
    translator = Translator.load(run, "cpu", "torch")
    gold: Sequence[Gold] = []
    if not translator.configuration.data.valid:
        if texts is None:
            raise SystemExit(f"{run} is imported: give --texts FILE")
        sources = texts.read_text(encoding="utf-8").splitlines()[:sentences]
        translations = translator.translate(sources, split=False)
        valid = [Pair(source, translation.text) for source, translation in zip(sources, translations, strict=True)]
    elif (run / "phrasebook").exists():
        phrases = list(generate(sentences, split="test"))
        valid = [Pair(phrase.source, phrase.target) for phrase in phrases]
        gold = [Gold(frozenset(phrase.alignment), frozenset(phrase.alignment)) for phrase in phrases]
    else:
        data = translator.configuration.data
        valid = list(itertools.islice(pairs_of(data, *data.valid), sentences))
        train = list(itertools.islice(pairs_of(data, *data.train), STATISTICS))
        gold = statistical_links([*valid, *train], len(valid))
    inspected = list(translator.inspector.inspect_all(valid))
    return Measured(attention_shares(inspected), similarity(inspected), error_rates(inspected, gold))


def similarity(inspected: Iterable[Inspected]) -> tuple[float, float]:
    sums = torch.zeros(2, dtype=torch.float64)
    count = 0
    for sentence in inspected:
        for name, weights in sentence.maps.items():
            if not name.endswith(".cross") or len(weights) < 2:
                continue
            content = weights * sentence.content
            sums += torch.tensor([mean_cosine(weights), mean_cosine(content)])
            count += 1
    both = (sums / max(count, 1)).tolist()
    return both[0], both[1]


def mean_cosine(weights: Tensor) -> float:
    """Return the mean cosine between the maps [H, T, S] of each two heads, each map as one vector."""
    vectors = torch.nn.functional.normalize(weights.flatten(1).double(), dim=1)
    first, second = torch.triu_indices(len(vectors), len(vectors), 1)
    return (vectors @ vectors.T)[first, second].mean().item()


def error_rates(inspected: Sequence[Inspected], gold: Sequence[Gold]) -> tuple[float, float]:
    if not gold:
        return math.nan, math.nan
    readings = [options for options in candidates(inspected[0]) if not options.learned]
    best = {}
    for method in ("weights", "content"):
        scores = choose(inspected, gold, [options for options in readings if options.method == method])
        best[method] = next(iter(scores.values())).error_rate
    return best["weights"], best["content"]


def mean_of(rows: Iterable[Sequence[float]]) -> list[float]:
    """Return the means of figures over heads or seeds."""
    return [fmean(values) for values in zip(*rows, strict=True)]


def share_rows(name: str, runs: Sequence[Measured]) -> Iterable[list[str]]:
    for kind, label in KINDS.items():
        if kind not in runs[0].shares:
            continue
        titles: dict[str, list[Sequence[float]]] = {"mean of heads": [], "head with most": [], "uniform": []}
        for run in runs:
            heads = heads_of(run.shares, kind)
            titles["mean of heads"].append(mean_of(heads))
            titles["head with most"].append(max(heads, key=lambda shares: shares.ends + shares.punctuation))
            titles["uniform"].append(run.shares[kind])
        for title, seeds in titles.items():
            *shares, entropy = mean_of(seeds)
            percentages = [f"{100 * share:.0f}" for share in shares]
            yield [f"{name}, {label}, {title}", *percentages, f"{entropy:.2f}"]


def heads_of(shares: Mapping[str, AttentionShares], kind: str) -> list[AttentionShares]:
    """Return the shares of the heads of a kind of attention in all layers, such as `decoder.cross`."""
    side, attention = kind.split(".")
    return [share for head, share in shares.items() if re.match(rf"{side}\.\d+\.{attention}\.", head)]


def page(results: Mapping[str, Sequence[Measured]], sentences: int) -> str:
    shares, effects = [], []
    for name, runs in results.items():
        shares += share_rows(name, runs)
        means = mean_of([(*run.similarity, *run.error_rates) for run in runs])
        cells = ["–" if math.isnan(figure) else f"{figure:.3f}" for figure in means]
        effects.append([name, str(len(runs)), *cells])
    return f"""# Claim 27: where idle attention goes

    {COMMAND}

Shares of attention in per cent, on {sentences} validation pairs of each run with their references (of an imported run,
texts with its own translations). *Ends* are the end token and, in the decoder's self-attention, the start token;
*itself* is the query's own position. The head with most is that with the largest share on ends and punctuation
together. Uniform attention has the same keys.

{table(["run, attention, heads", "ends", "punctuation", "language tokens", "itself", "entropy (nats)"], shares)}
What leaving out the columns without content changes: the mean cosine between the cross-attention maps of the heads of
a layer, and the alignment error rate of the best reading (gold links on the phrasebook, elsewhere links by statistics
from {STATISTICS:,} training pairs):

{
        table(
            ["run", "seeds", "cosine, all", "cosine, content", "error rate, all", "error rate, content"],
            effects,
        )
    }"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--texts", type=Path, help="texts for imported runs, one a line")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="50 pairs, figures not written to docs")
    arguments = parser.parse_args()
    sentences = 50 if arguments.quick else arguments.sentences
    results: dict[str, list[Measured]] = defaultdict(list)
    for run in arguments.runs:
        Console(stderr=True).rule(run.name)
        results[re.sub(r"-?\d+$", "", run.name)].append(measure(run, sentences, arguments.texts))
    write("27-sinks.md", page(results, sentences), Path("runs/claims/sinks") if arguments.quick else DOCS)


if __name__ == "__main__":
    main()
