"""Is an explanation true? Take away what it says matters, or all the rest, and see what happens."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from translucid.inspection.explain.case import Case, Perturbed
from translucid.inspection.explain.explanation import Explanation, explain


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


def why_record(case: Case, method: str) -> dict[str, Any]:
    """Return an explanation as plain values, and its test of faithfulness beside that of a random one."""
    why = explain(case, method, samples=200)
    return {
        "method": method,
        "source": why.source,
        "target": why.target,
        "importance": [[round(x, 4) for x in line] for line in why.importance.tolist()],
        "fit": [round(x, 3) for x in why.fit],
        "faithfulness": faithfulness(case, why)._asdict(),
        "random": faithfulness(case, explain(case, "random"))._asdict(),
    }
