"""Is an explanation true? Take away what it says matters, or all the rest, and see what happens."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from translucid.inspection.explain.case import Case, Perturbed
from translucid.inspection.explain.explanation import Explanation, explain

RANDOM_SUBSETS = 32
"""Random choices of parts over which the baseline is averaged; where there are no more in all, it takes them all."""


class Faithfulness(NamedTuple):
    """Falls of a target word's log-probability, in nats, averaged over the target words."""

    comprehensiveness: float
    """When the parts of the source said to matter are left out; high is faithful."""
    sufficiency: float
    """When only they are left; low is faithful."""


def part_count(share: float, parts: int) -> int:
    """Return how many of the parts are a share of them, at least one."""
    return max(1, round(share * parts))


def faithfulness(case: Perturbed, explanation: Explanation, k: int = 1) -> Faithfulness:
    """Measure both with the k most important parts of the source (DeYoung et al. 2020, arXiv 1911.03429).

    The measures are theirs (section 4.2), as differences of log-probabilities.
    """
    words = len(case.target_words)
    k = min(k, len(case.source_words))
    best = explanation.importance.topk(k, dim=1).indices
    only = torch.zeros(words, len(case.source_words), dtype=torch.bool).scatter_(1, best, value=True)
    whole = case.log_probs(torch.ones(1, len(case.source_words), dtype=torch.bool))[0]
    without, alone = (case.log_probs(keep).diagonal() for keep in (~only, only))
    return Faithfulness((whole - without).mean().item(), (whole - alone).mean().item())


def random_faithfulness(case: Perturbed, k: int = 1, subsets: int = RANDOM_SUBSETS, seed: int = 1) -> Faithfulness:
    """Measure both with k parts of the source chosen at random: the baseline that an explanation has to beat.

    One random choice may happen to be the best one. The baseline is the mean over `subsets` choices, or over all
    choices of k parts if there are no more than that.

    Args:
        case: what is explained.
        k: parts in each choice.
        subsets: choices, at most.
        seed: of the choices.
    """
    parts = len(case.source_words)
    only = _random_subsets(parts, min(k, parts), subsets, seed)  # [n, parts]
    whole = case.log_probs(torch.ones(1, parts, dtype=torch.bool))[0]
    without, alone = case.log_probs(~only), case.log_probs(only)  # [n, target words]
    return Faithfulness((whole - without).mean().item(), (whole - alone).mean().item())


def compare_with_random(case: Perturbed, explanation: Explanation, k: int = 1) -> dict[str, Faithfulness]:
    """Return the faithfulness of an explanation by the name of its method, and the baseline as `random`."""
    return {explanation.method: faithfulness(case, explanation, k), "random": random_faithfulness(case, k)}


def _random_subsets(parts: int, k: int, most: int, seed: int) -> Tensor:
    """Return subsets of k of the parts as a boolean mask [n, parts]: all of them, or `most` random ones."""
    if math.comb(parts, k) <= most:
        chosen = torch.tensor(list(itertools.combinations(range(parts), k)))
    else:
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.rand(most, parts, generator=generator).topk(k, dim=1).indices
    return torch.zeros(len(chosen), parts, dtype=torch.bool).scatter_(1, chosen, value=True)


def why_record(case: Case, method: str) -> dict[str, Any]:
    """Return an explanation as plain values, and its test of faithfulness beside the random baseline."""
    why = explain(case, method, samples=200)
    return {
        "method": method,
        "source": why.source,
        "target": why.target,
        "importance": [[round(x, 4) for x in line] for line in why.importance.tolist()],
        "fit": [round(x, 3) for x in why.fit],
        "faithfulness": faithfulness(case, why)._asdict(),
        "random": random_faithfulness(case)._asdict(),
    }
