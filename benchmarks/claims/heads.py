"""Claim 15: most attention heads can be removed (Michel et al. 2019, arXiv 1905.10650).

    translucid demo --out runs/demo
    translucid train runs/demo/config.yaml --out runs/demo-2 --set training.seed=2
    python benchmarks/claims/heads.py runs/demo runs/demo-2 [--tatoeba runs/eng-fra tatoeba-many/eng-fra]

Importance is measured on validation pairs, BLEU on test pairs, by greedy search. Heads are switched off in the order of
their importance by gradient, by gradient with each layer's values divided by their norm (as in the paper), by ablation,
and in random order; by ablation also with the mean output of a head over the validation pairs in its place. In the
other table, one head is off at a time.

For --tatoeba, give a run and the common prefix of its files (.dev.tsv.gz, .test.tsv.gz). --quick uses 10 pairs
and one random order; its page is written beside the first run.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from common import DOCS, table, write
from rich.progress import track
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from bitext.pair import Pair
from translucid.api.evaluation.heads import criterion_of, score_curve
from translucid.api.evaluation.scoring import translated
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import read_pairs
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.console import Console
from translucid.inspection.ablation import Ablation, head_names, mean_outputs
from translucid.inspection.head_importance import CurvePoint, ablation_importance, gradient_importance

GREEDY = DecodingOptions(beam=1)
LOG = Console(stderr=True)
QUIET = Console(quiet=True)
SIGNIFICANT = 0.01
LOST = 1.0
"""BLEU points whose loss is accepted."""


class Size(NamedTuple):
    """The numbers of validation pairs, test pairs and random orders."""

    valid: int
    test: int
    random_orders: int


Curves = dict[str, list[CurvePoint]]


class Measured(NamedTuple):
    """The results of one run."""

    name: str
    heads: int
    curves: Curves
    """BLEU by the order in which heads are switched off; that of random orders is their mean."""
    spread: list[float]
    """The standard deviation over random orders at each point."""
    alone: dict[str, tuple[float, bool]]
    """For each head, the difference in BLEU with only this head off, and whether it is significant."""


def orders_of(translator: Translator, pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Return the names of all heads by the measure of importance, the least important first."""
    model, maps, device = translator.model, translator.inspector.heads, translator.device
    ids = [pair.ids for pair in translator.pipeline.pairs(pairs)]
    by_gradient = gradient_importance(model, maps, ids, device)
    by_ablation = ablation_importance(model, maps, ids, device)
    means = mean_outputs(model, head_names(maps), ids, device)
    with_means = ablation_importance(model, maps, ids, device, means=means)
    measures = {
        "gradient": by_gradient,
        "gradient by layer": divided_by_norms(by_gradient),
        "ablation": by_ablation,
        "ablation, mean": with_means,
    }
    return {name: sorted(values, key=values.__getitem__) for name, values in measures.items()}


def divided_by_norms(importance: Mapping[str, float]) -> dict[str, float]:
    """Divide the importance of heads by the Euclidean norm of that of all heads of the same attention."""
    squares: dict[str, float] = {}
    for name, value in importance.items():
        attention = name.rpartition(".head.")[0]
        squares[attention] = squares.get(attention, 0) + value**2
    return {name: value / squares[name.rpartition(".head.")[0]] ** 0.5 for name, value in importance.items()}


def measured(name: str, run: Path, valid: Sequence[Pair], test: Sequence[Pair], size: Size) -> Measured:
    translator = Translator.load(run, "cpu", "torch")
    valid, test = valid[: size.valid], test[: size.test]
    orders = orders_of(translator, valid)
    ids = [pair.ids for pair in translator.pipeline.pairs(valid)]
    means = mean_outputs(translator.model, head_names(translator.inspector.heads), ids, translator.device)
    curves: Curves = {}
    criterion = criterion_of(translator, test)
    for order, heads in orders.items():
        LOG.rule(f"{name}: {order}")
        of_order = means if order == "ablation, mean" else None
        curves[order] = score_curve(translator, test, heads, GREEDY, criterion=criterion, means=of_order, console=LOG)
    at_random = []
    for seed in range(size.random_orders):
        LOG.rule(f"{name}: random order {seed + 1}")
        heads = head_names(translator.inspector.heads)
        Random(seed).shuffle(heads)
        curve = score_curve(translator, test, heads, GREEDY, criterion=criterion, console=LOG)
        at_random.append([point.score for point in curve])
    points, spread = [], []
    for first, values in zip(curves["gradient"], zip(*at_random, strict=True), strict=True):
        points.append(CurvePoint(first.off, statistics.fmean(values)))
        spread.append(statistics.stdev(values) if len(values) > 1 else 0.0)
    curves["random"] = points
    return Measured(name, len(orders["gradient"]), curves, spread, one_off(name, translator, test))


def one_off(name: str, translator: Translator, test: Sequence[Pair]) -> dict[str, tuple[float, bool]]:
    """Return the difference in BLEU with each head off, and whether a paired bootstrap finds it significant."""
    sources, references = [pair.source for pair in test], [[pair.target for pair in test]]
    systems = [("whole", translated(translator, sources, GREEDY, split=False, console=QUIET))]
    for head in track(head_names(translator.inspector.heads), f"{name}: one head off", console=LOG):
        ablated = translator.with_interventions(Ablation((head,)))
        systems.append((head, translated(ablated, sources, GREEDY, split=False, console=QUIET)))
    _, scores = PairedTest(systems, {"BLEU": BLEU()}, references, test_type="bs", n_samples=1000)()
    baseline, *ablated_scores = scores["BLEU"]
    differences = {}
    for (head, _), result in zip(systems[1:], ablated_scores, strict=True):
        significant = result.p_value is not None and result.p_value < SIGNIFICANT
        differences[head] = (result.score - baseline.score, significant)
    return differences


def can_go(points: Sequence[CurvePoint]) -> int:
    """Return the most heads that can be off while all points up to there lose less than `LOST` BLEU."""
    most = 0
    for point in points:
        if points[0].score - point.score >= LOST:
            break
        most = point.off
    return most


def phrasebook(split: str, count: int) -> list[Pair]:
    return [Pair(phrase.source, phrase.target) for phrase in generate(count, split=split)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="runs of the demo with different seeds")
    parser.add_argument("--tatoeba", nargs=2, metavar=("RUN", "FILES"), help="a run and the prefix of its files")
    parser.add_argument("--quick", action="store_true", help="10 pairs, page not written to docs")
    arguments = parser.parse_args()
    docs, size = DOCS, Size(200, 500, 5)
    if arguments.quick:
        docs, size = arguments.runs[0], Size(10, 10, 1)
    valid, test = phrasebook("valid", size.valid), phrasebook("test", size.test)
    results = []
    for run in arguments.runs:
        seed = Translator.load(run, "cpu", "torch").configuration.training.seed
        results.append(measured(f"Phrasebook, seed {seed}", run, valid, test, size))
    if arguments.tatoeba:
        run, files = arguments.tatoeba
        sets = [list(read_pairs(f"{files}.{split}.tsv.gz")) for split in ("dev", "test")]
        results.append(measured("Tatoeba, English-French", Path(run), *sets, size))
    write("15-heads.md", page(results, size), docs)


def page(results: Sequence[Measured], size: Size) -> str:
    orders = [*results[0].curves]
    alone, without, curves = [], [], ""
    for result in results:
        differences = [difference for difference, _ in result.alone.values()]
        worse = sum(significant for difference, significant in result.alone.values() if difference < 0)
        below = sum(difference > -LOST for difference in differences)
        worst = min(result.alone, key=lambda head: result.alone[head][0])
        figures = f"{len(differences)}", f"{worse}", f"{below}", f"{min(differences):.1f} ({worst})"
        alone.append([result.name, *figures])
        most = [f"{can_go(points)}" for points in result.curves.values()]
        without.append([result.name, f"{result.heads}", *most])
        curves += f"\n{result.name}: BLEU\n\n{curve_table(result)}"
    return f"""# Claim 15: most attention heads can go

Michel et al. (2019) find that most heads of a trained Transformer can be switched off one at a time without a
significant loss, and 20 to 40 % of them together. Importance is measured on {size.valid} validation pairs, BLEU on
{size.test} test pairs, by greedy search. A head that is off has the output 0, or, with *mean*, its mean over the
validation pairs. *Gradient by layer* divides the gradients of each attention by their norm, as the paper does. *Random*
is the mean of {size.random_orders} orders, ± their standard deviation.

The models of the phrasebook have the demo's size (2 + 2 layers with 4 heads each, pre-norm), that of Tatoeba is the
preset `small` (3 + 3 layers with 4 heads each, post-norm) after 45 minutes. Those of the paper have 6 + 6 layers with
16 heads each.

## One head off

Significantly worse: p < {SIGNIFICANT}, paired bootstrap.

{table(["", "heads", "significantly worse", f"less than {LOST:.0f} BLEU worse", "worst head"], alone)}
## Several heads off

The most heads that can be off with a loss of less than {LOST:.0f} BLEU, by the order in which they are switched off:

{table(["", "heads", *orders], without)}{curves}
To reproduce: `translucid demo --out runs/demo`, `translucid train runs/demo/config.yaml --out runs/demo-2 --set
training.seed=2`, `python benchmarks/claims/heads.py runs/demo runs/demo-2 --tatoeba runs/eng-fra
tatoeba-many/eng-fra`
"""


def curve_table(result: Measured) -> str:
    rows = []
    for i, first in enumerate(result.curves["gradient"]):
        scores = [f"{points[i].score:.1f}" for points in result.curves.values()]
        scores[-1] += f" ± {result.spread[i]:.1f}"
        rows.append([f"{result.heads - first.off}", *scores])
    return table(["heads left", *result.curves], rows)


if __name__ == "__main__":
    main()
