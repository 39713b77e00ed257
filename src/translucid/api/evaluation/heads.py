"""Heads of a translator that are switched off: the importance of each, and the score without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bitext.pair import Pair
from translucid.data.document_context import document_sources
from translucid.data.readers.corpus import targets_of
from translucid.evaluation.metrics import Criterion, without_blank
from translucid.ground.errors import UserError
from translucid.inspection.ablation import Ablation, head_names, mean_outputs

if TYPE_CHECKING:
    from translucid.api.translator import Translator
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.ground.console import Console
    from translucid.inspection.ablation import Means
    from translucid.inspection.head_importance import CurvePoint, HeadReport

STEPS = 10
"""The number of steps of a curve for a model with more heads."""


def head_report(
    translator: Translator,
    pairs: Sequence[Pair],
    options: DecodingOptions | None = None,
    *,
    mean: bool = False,
    console: Console,
) -> HeadReport:
    """Return the importance of all heads, where they look, and BLEU or chrF with the least important ones off.

    Args:
        translator: a translator with all heads on.
        pairs: sources with references. Those that are too long for the model in one piece count for the score only.
        options: how to search; the run's own settings by default.
        mean: whether the mean of each head's output over the pairs replaces it, instead of 0.
        console: shows the progress.

    Raises:
        UserError: the model has no attention, or `mean` does not apply to it; there are no pairs; or several runs are
            averaged.
    """
    from translucid.ground.console import progress_bar  # it imports Rich, which changes Python's random state
    from translucid.inspection.head_importance import (
        HeadImportance,
        HeadReport,
        ablation_importance,
        gradient_importance,
        least_important_first,
    )
    from translucid.inspection.inspected import attention_shares

    names = head_names(translator.inspector.heads)
    if not names:
        fix = "Train one that has: translucid models."
        raise UserError("the model has no attention, so it has no heads", file=translator.run, fix=fix)
    translator.with_interventions(Ablation(tuple(names)))  # refuses an ensemble
    engine, maps = translator.torch_engine, translator.inspector.heads
    fitting, ids = [], []
    for pair, encoded in zip(pairs, translator.pipeline.pairs(pairs), strict=True):
        if encoded.longest <= translator.pipeline.longest:
            fitting.append(pair)
            ids.append(encoded.ids)
    if not ids:
        raise UserError("there are no pairs that the model takes in one piece", fix="Give others.")
    means = mean_outputs(engine.model, names, ids, engine.device) if mean else {}
    prefix = len(translator.tokenizer.target_opening)
    with progress_bar(console, "gradients", len(ids)) as advance:
        by_gradient = gradient_importance(engine.model, maps, ids, engine.device, prefix, advance)
    with progress_bar(console, "each head off", len(ids) * (len(names) + 1)) as advance:
        by_ablation = ablation_importance(engine.model, maps, ids, engine.device, prefix, means, advance)
    with progress_bar(console, "attention", len(ids)) as advance:
        shares = attention_shares(translator.inspector.inspect_all(fitting, advance))
    heads = [HeadImportance(name, by_gradient[name], by_ablation[name]) for name in names]
    curves = {}
    criterion = criterion_of(translator, pairs)
    for order, ordered in least_important_first(heads).items():
        curves[order] = score_curve(
            translator, pairs, ordered, options, criterion=criterion, means=means, console=console
        )
    return HeadReport(len(ids), heads, curves, criterion.name, shares)


def criterion_of(translator: Translator, pairs: Sequence[Pair]) -> Criterion:
    """Return the criterion for translations of some sources with references."""
    return Criterion(without_blank([targets_of(pairs)]), translator.languages[1])


def score_curve(
    translator: Translator,
    pairs: Sequence[Pair],
    order: Sequence[str],
    options: DecodingOptions | None = None,
    *,
    criterion: Criterion,
    means: Means | None = None,
    console: Console,
) -> list[CurvePoint]:
    """Return the scores with more and more heads off, from none to all.

    Args:
        translator: a translator with all heads on.
        pairs: sources with references.
        order: the names of all heads, in the order in which they are switched off.
        options: how to search; the run's own settings by default.
        criterion: scores the translations; those with all heads decide on its metric.
        means: vectors that replace the outputs of heads, as in `Ablation`; by default they are 0.
        console: shows the progress.
    """
    from translucid.ground.console import progress_bar
    from translucid.inspection.head_importance import CurvePoint

    counts = off_counts(len(order))
    points: list[CurvePoint] = []
    with progress_bar(console, "translating with heads off", len(counts) * len(pairs)) as advance:
        for count in counts:
            off = translator.with_interventions(Ablation(tuple(order[:count]), means or {}))
            texts = _texts(off, pairs, options, advance)
            score = criterion.score(texts) if points else criterion.choose_metric(texts)
            points.append(CurvePoint(count, score))
    return points


def off_counts(heads: int) -> list[int]:
    """Return how many heads are off at each point of a curve: from none to all, in about `STEPS` steps."""
    step = max(1, round(heads / STEPS))
    return [*range(0, heads, step), heads]


def _texts(
    translator: Translator,
    pairs: Sequence[Pair],
    options: DecodingOptions | None,
    on_done: Callable[[int], None],
) -> list[str]:
    sources = document_sources(pairs, translator.context)
    translations = translator.stream(sources, options, split=False, on_done=on_done)
    return [translation.text for translation in translations]
