"""The faithfulness of explanations: how probabilities change without the important parts, and with only those."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from translucid.inspection.explain.case import Explained
from translucid.inspection.explain.contrast import Contrast
from translucid.inspection.explain.explanation import Explanation, explain
from translucid.inspection.inspected import plain, rounded

RANDOM_SUBSETS = 32
"""The number of random subsets of the parts over which the baseline is averaged."""


class Faithfulness(NamedTuple):
    """Decreases of a target word's log-probability, in nats, averaged over the target words."""

    comprehensiveness: float
    """The decrease when the important parts of the source are left out; a faithful explanation has a high one."""
    sufficiency: float
    """The decrease when only they are left; a faithful explanation has a low one."""


def part_count(share: float, parts: int) -> int:
    """Return the number of parts in a share of them, at least one."""
    return max(1, round(share * parts))


def faithfulness(case: Explained, explanation: Explanation, k: int = 1) -> Faithfulness:
    """Measure the faithfulness with the k most important parts of the source (DeYoung et al. 2020, arXiv 1911.03429).

    The two measures are those of section 4.2, as differences of log-probabilities.
    """
    words, parts = len(case.target_words), len(case.source_words)
    indices = explanation.importance.topk(min(k, parts), dim=1).indices
    important = torch.zeros(words, parts, dtype=torch.bool).scatter_(1, indices, value=True)
    full = case.log_probs(torch.ones(1, parts, dtype=torch.bool))[0]
    # Row i keeps the parts that are important for target word i, so only the diagonal counts.
    erased, isolated = case.log_probs(~important).diagonal(), case.log_probs(important).diagonal()
    return Faithfulness((full - erased).mean().item(), (full - isolated).mean().item())


def random_faithfulness(case: Explained, k: int = 1, subsets: int = RANDOM_SUBSETS, seed: int = 1) -> Faithfulness:
    """Measure the faithfulness of k random parts of the source: the baseline that an explanation has to exceed.

    A single random subset may happen to be the best one. The baseline is the mean over `subsets` random subsets, or
    over all subsets of k parts if there are no more than that.

    Args:
        case: the case.
        k: the number of parts in each subset.
        subsets: the maximum number of subsets.
        seed: the seed of the random subsets.
    """
    parts = len(case.source_words)
    chosen = _random_subsets(parts, min(k, parts), subsets, seed)  # [n, parts]
    full = case.log_probs(torch.ones(1, parts, dtype=torch.bool))[0]
    erased, isolated = case.log_probs(~chosen), case.log_probs(chosen)  # [n, target words]
    return Faithfulness((full - erased).mean().item(), (full - isolated).mean().item())


def compare_with_random(case: Explained, explanation: Explanation, k: int = 1) -> dict[str, Faithfulness]:
    """Return the faithfulness of an explanation by the name of its method, and the baseline as `random`."""
    return {explanation.method: faithfulness(case, explanation, k), "random": random_faithfulness(case, k)}


def _random_subsets(parts: int, k: int, limit: int, seed: int) -> Tensor:
    """Return subsets of k of the parts as a boolean mask [n, parts]: all of them, or `limit` random ones."""
    if math.comb(parts, k) <= limit:
        indices = torch.tensor(list(itertools.combinations(range(parts), k)))
    else:
        generator = torch.Generator().manual_seed(seed)
        indices = torch.rand(limit, parts, generator=generator).topk(k, dim=1).indices
    return torch.zeros(len(indices), parts, dtype=torch.bool).scatter_(1, indices, value=True)


def explanation_record(case: Explained, method: str) -> dict[str, Any]:
    """Return an explanation as plain values, with its faithfulness and that of the random baseline."""
    explanation = explain(case, method, samples=200)
    row = {
        "method": method,
        "source": explanation.source,
        "context": explanation.context,
        "target": explanation.target,
        "importance": plain(explanation.importance, 4),
        "fit": rounded(explanation.fit, 3),
        "faithfulness": faithfulness(case, explanation)._asdict(),
        "random": random_faithfulness(case)._asdict(),
    }
    if isinstance(case, Contrast):
        row["contrast"] = case.to_json()
    return row
