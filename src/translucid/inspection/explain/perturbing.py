"""Explanations by perturbing the source: erasure of one part, and LIME."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from translucid.inspection.explain.case import Perturbed

KERNEL = 0.25
"""The width of LIME's kernel in cosine distance: the default of its authors."""


def erasure(case: Perturbed) -> Tensor:
    """Return the decrease of each target word's log-probability when one part is left out [target words, parts].

    This is equation 1 of Li et al. 2016 (arXiv 1612.08220), as a difference of log-probabilities.
    """
    count = len(case.source_words)
    keep = torch.cat([torch.ones(1, count, dtype=torch.bool), ~torch.eye(count, dtype=torch.bool)])
    log_probs = case.log_probs(keep)
    return (log_probs[:1] - log_probs[1:]).T


def lime(case: Perturbed, samples: int = 500, seed: int = 1) -> tuple[Tensor, list[float]]:
    """Fit a linear model to probabilities when random parts are left out (Ribeiro et al. 2016, arXiv 1602.04938).

    As in the paper's text explanations: draw how many parts are left out, then which; weight each sample by an
    exponential kernel of its cosine distance to the whole source; fit a weighted ridge regression of the target word's
    probability on the presence of parts.

    Returns:
        The coefficients [target words, parts], and for each target word the weighted R² of its local model: how much of
        the variance near this source the explanation explains.
    """
    from sklearn.linear_model import Ridge

    count = len(case.source_words)
    random = np.random.default_rng(seed)
    keep = np.ones((samples, count), dtype=bool)
    for row in keep[1:]:  # the first sample is the whole source
        row[random.choice(count, random.integers(1, count + 1), replace=False)] = False
    # The cosine of a 0/1 vector with n ones and the vector of all ones is sqrt(n / count).
    distance = 1 - np.sqrt(keep.mean(1))
    weights = np.sqrt(np.exp(-(distance**2) / KERNEL**2))
    probabilities = case.log_probs(torch.from_numpy(keep)).exp().numpy()
    model = Ridge(alpha=1.0).fit(keep.astype(float), probabilities, sample_weight=weights)
    predicted = model.predict(keep.astype(float)).reshape(probabilities.shape)
    mean = np.average(probabilities, axis=0, weights=weights)
    spread = np.average((probabilities - mean) ** 2, axis=0, weights=weights)
    residual = np.average((probabilities - predicted) ** 2, axis=0, weights=weights)
    explained = np.where(spread > 1e-12, 1 - residual / np.maximum(spread, 1e-12), 0.0)
    return torch.from_numpy(model.coef_.reshape(len(case.target_words), count)).float(), explained.tolist()
