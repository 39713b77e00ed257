"""Integrated gradients, by Captum."""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.ground.stopping import between_steps
from translucid.inspection.explain.case import ForcedCase
from translucid.inspection.maps import forced_log_probs

TOKENS = 256
"""Tokens, source and target, on the way that are read together; at least one source is."""


def integrated_gradients(case: ForcedCase, steps: int = 32) -> Tensor:
    """Return the share of each part of the source in each target word's log-probability [target words, parts].

    The gradient to the embedded source, averaged on the way from a source in which nothing is (Sundararajan et al.
    2017, arXiv 1703.01365, equation 1); the shares of a target word add up to what the log-probability gains on that
    way.
    """
    from captum.attr import IntegratedGradients

    model, (baseline, source) = case.model, case.way()
    target = torch.tensor([case.target_ids], device=case.device)
    everywhere = torch.ones(source.shape[:2], dtype=torch.bool, device=case.device)

    def log_prob(embedded: Tensor, first: int, after: int) -> Tensor:
        """Of the target tokens `first` to before `after`, [n]; what comes later has no part in it."""
        between_steps()
        memory = model.read(embedded, everywhere.expand(len(embedded), -1))
        return forced_log_probs(model, memory, target[:, :after].expand(len(embedded), -1))[:, first:].sum(1)

    method = IntegratedGradients(log_prob)
    together = max(1, TOKENS // (source.size(1) + len(case.target_ids)))
    rows = []
    with torch.backends.cudnn.flags(enabled=False):  # whose recurrent layers have gradients in training mode only
        for span in case.target_spans:
            found = method.attribute(
                source, baseline, additional_forward_args=span, n_steps=steps, internal_batch_size=together
            )
            rows.append(case.by_part(found[0].sum(-1).detach()))
    return torch.stack(rows).float().cpu()
