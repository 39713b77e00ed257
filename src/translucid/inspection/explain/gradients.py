"""Integrated gradients, computed by Captum."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from translucid.ground.cancellation import between_steps
from translucid.inspection.explain.case import InterpolationPath

TOKENS = 256
"""The most tokens, source and target, in a batch of interpolated sources; every batch has at least one source."""


class Integrable(Protocol):
    """A case that integrated gradients can explain."""

    target_spans: list[tuple[int, int]]
    """The first token of each target word, and the token after its last."""

    def interpolation_path(self) -> InterpolationPath:
        """Return the path of integrated gradients."""

    def along(self, embedded: Tensor, first: int, after: int) -> Tensor:
        """Return the log-probability [n] of the target tokens from `first` to before `after` for embedded sources."""

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum values of source positions [.., S] over each part [.., parts]."""


def integrated_gradients(case: Integrable, steps: int = 32) -> Tensor:
    """Return the share of each part of the source in each target word's log-probability [target words, parts].

    They are the gradient with respect to the embedded source, averaged along the path from the baseline (Sundararajan
    et al. 2017, arXiv 1703.01365, equation 1). The shares of a target word sum to the increase of its log-probability
    along the path.
    """
    from captum.attr import IntegratedGradients

    baseline, source = case.interpolation_path()

    def log_prob(embedded: Tensor, first: int, after: int) -> Tensor:
        between_steps()
        return case.along(embedded, first, after)

    method = IntegratedGradients(log_prob)
    batch = max(1, TOKENS // (source.size(1) + case.target_spans[-1][1] + 1))
    rows = []
    for span in case.target_spans:
        attributions = method.attribute(  # [1, S, D]
            source, baseline, additional_forward_args=span, n_steps=steps, internal_batch_size=batch
        )
        rows.append(case.by_part(attributions[0].sum(-1).detach()))
    return torch.stack(rows).float().cpu()
