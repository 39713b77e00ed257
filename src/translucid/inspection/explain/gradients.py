"""Integrated gradients, by Captum."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from translucid.ground.cancellation import between_steps
from translucid.inspection.explain.case import InterpolationPath

TOKENS = 256
"""Tokens, source and target, on the way that are read together; at least one source is."""


class Integrable(Protocol):
    """What is asked of something to be explained by gradients."""

    target_spans: list[tuple[int, int]]
    """Of each target word, its tokens."""

    def way(self) -> InterpolationPath:
        """Return where integrated gradients begin and end."""

    def along(self, embedded: Tensor, first: int, after: int) -> Tensor:
        """Return the log-probability [n] of the target tokens `first` to before `after`, given embedded sources."""

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum what belongs to source positions [.., S] to parts [.., parts]."""


def integrated_gradients(case: Integrable, steps: int = 32) -> Tensor:
    """Return the share of each part of the source in each target word's log-probability [target words, parts].

    The gradient to the embedded source, averaged on the way from a source in which nothing is (Sundararajan et al.
    2017, arXiv 1703.01365, equation 1); the shares of a target word add up to what the log-probability gains on that
    way.
    """
    from captum.attr import IntegratedGradients

    baseline, source = case.way()

    def log_prob(embedded: Tensor, first: int, after: int) -> Tensor:
        between_steps()
        return case.along(embedded, first, after)

    method = IntegratedGradients(log_prob)
    together = max(1, TOKENS // (source.size(1) + case.target_spans[-1][1] + 1))
    rows = []
    for span in case.target_spans:
        found = method.attribute(
            source, baseline, additional_forward_args=span, n_steps=steps, internal_batch_size=together
        )
        rows.append(case.by_part(found[0].sum(-1).detach()))
    return torch.stack(rows).float().cpu()
