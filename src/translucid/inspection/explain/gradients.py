"""Integrated gradients, by Captum."""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.ground.special import SPECIAL
from translucid.ground.stopping import between_steps
from translucid.inspection.explain.case import Case
from translucid.inspection.maps import forced_log_probs

TOKENS = 256
"""Tokens, source and target, in the sentences on the way that are read together; at least one sentence is."""


def integrated_gradients(case: Case, steps: int = 32) -> Tensor:
    """Return the share of each source word in each target word's log-probability [target words, source words].

    The gradient to the embedded source, averaged on the way from a source of unknown words (Sundararajan et al. 2017,
    arXiv 1703.01365, equation 1); the shares of a target word add up to what the log-probability gains on that way.
    """
    from captum.attr import IntegratedGradients

    model = case.model
    source = torch.tensor([case.source_ids], device=case.device)
    target = torch.tensor([case.target_ids], device=case.device)
    unknown = torch.full_like(source, SPECIAL.unknown)  # no word in particular
    unknown[:, -1] = source[:, -1]
    with torch.no_grad():
        embedded, baseline = (model.source_embedding(ids) for ids in (source, unknown))
    everywhere = torch.ones_like(source, dtype=torch.bool)

    def log_prob(embedded: Tensor, first: int, after: int) -> Tensor:
        """Of the target tokens `first` to before `after`, [n]; what comes later has no part in it."""
        between_steps()
        memory = model.read(embedded, everywhere.expand(len(embedded), -1))
        return forced_log_probs(model, memory, target[:, :after].expand(len(embedded), -1))[:, first:].sum(1)

    method = IntegratedGradients(log_prob)
    together = max(1, TOKENS // (len(case.source_ids) + len(case.target_ids)))
    rows = []
    with torch.backends.cudnn.flags(enabled=False):  # whose recurrent layers have gradients in training mode only
        for span in case.target_spans:
            found = method.attribute(
                embedded, baseline, additional_forward_args=span, n_steps=steps, internal_batch_size=together
            )
            shares = found[0].sum(-1).detach()
            rows.append(torch.stack([shares[first:after].sum() for first, after in case.source_spans]))
    return torch.stack(rows).float().cpu()
