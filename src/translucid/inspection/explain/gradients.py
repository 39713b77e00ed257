"""Integrated gradients, by Captum."""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.data.tokenizer import UNK
from translucid.inspection.explain.case import Case
from translucid.inspection.maps import forced_log_probs


def integrated_gradients(case: Case, steps: int = 32) -> Tensor:
    """Return the share of each source word in each target word's log-probability [target words, source words].

    The gradient to the embedded source, averaged on the way from a source of unknown words (Sundararajan et al. 2017,
    arXiv 1703.01365, equation 1); the shares of a target word add up to what the log-probability gains on that way.
    """
    from captum.attr import LayerIntegratedGradients

    source = torch.tensor([case.source_ids], device=case.device)
    target = torch.tensor([case.target_ids], device=case.device)
    baseline = torch.full_like(source, UNK)  # no word in particular
    baseline[:, -1] = source[:, -1]

    def log_probs(ids: Tensor) -> Tensor:
        return case.by_word(forced_log_probs(case.model, ids, target.expand(len(ids), -1)))

    method = LayerIntegratedGradients(log_probs, case.model.source_embedding)
    rows = []
    with torch.backends.cudnn.flags(enabled=False):  # whose recurrent layers have gradients in training mode only
        for word in range(len(case.target_words)):
            shares = method.attribute(source, baselines=baseline, target=word, n_steps=steps)[0].sum(-1).detach()
            rows.append(torch.stack([shares[first:after].sum() for first, after in case.source_spans]))
    return torch.stack(rows).float().cpu()
