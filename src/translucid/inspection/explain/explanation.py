"""Explanations: the importance of each part of the source for each target word; and their faithfulness.

The methods are attention, erasure of one part, LIME, and integrated gradients, computed by Captum. An explanation is
faithful if probabilities fall without the important parts, and stay with only those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.ground.errors import UserError, missing_package, nearest
from translucid.inspection.explain.case import Explained
from translucid.inspection.explain.contrast import Contrast
from translucid.inspection.inspected import plain, rounded
from translucid.inspection.rendering.html import notebook_table
from translucid.inspection.words import WordMap

METHODS = {
    "attention": "cross-attention, averaged over layers and heads",
    "erasure": "how much the word's log-probability falls when one part of the source is left out",
    "lime": "coefficients of a local linear model over sources with random parts left out",
    "gradients": "integrated gradients to the embedded source",
    "random": "random importance, for comparison",
}
"""The methods by name, with descriptions."""
Packages: TypeAlias = Mapping[str, tuple[str, str]]
"""The optional package of a method, and the module to import."""
_PACKAGES = {"lime": ("scikit-learn", "sklearn"), "gradients": ("captum", "captum")}
"""The optional package of a method, and the module to import."""
GRADIENT_TOKENS = 256
"""The maximum number of tokens, source and target, in a batch of interpolated sources, of which it has at least one."""
KERNEL = 0.25
"""The width of LIME's kernel in cosine distance: the default of its authors."""


@dataclass(frozen=True)
class Explanation:
    """The importance of the parts of a source for target words: the higher, the more a part supports the word."""

    method: str
    source: list[str]
    """Names of the parts, such as words."""
    target: list[str]
    """The target words."""
    importance: Tensor
    """[target words, parts]."""
    fit: list[float] = field(default_factory=list)
    """LIME's local R² for each target word; empty for other methods."""
    context: int = 0
    """The number of leading parts that are words of previous sentences."""

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the darker a cell, the more the source word supports the target word."""
        weights = self.importance.clamp(min=0) / self.importance.abs().max().clamp(min=1e-9)
        return notebook_table(WordMap(self.source, self.target, weights, self.context, self.context))


def available_methods(further: Packages = _PACKAGES) -> list[str]:
    """Return the methods whose packages are installed, with `further` packages for sources that need more."""
    return [method for method in METHODS if _missing_package(method, further) is None]


def refuse_method(method: str, further: Packages = _PACKAGES) -> None:
    """Check, before any work, that a method exists and its packages are installed; arguments as above.

    Raises:
        UserError: there is no such method, or a package for it is not installed.
    """
    if method not in METHODS:
        raise UserError(f"there is no method {method!r}", fix=nearest(method, METHODS))
    package = _missing_package(method, further)
    if package:
        raise missing_package(method, package, "explain")


def _missing_package(method: str, further: Packages) -> str | None:
    """Return a package that a method needs and that is not installed, if any."""
    for packages in (_PACKAGES, further):
        if method in packages:
            package, module = packages[method]
            if not find_spec(module):
                return package
    return None


def explain(case: Explained, method: str, *, samples: int = 500, seed: int = 1) -> Explanation:
    """Explain the target of a case, such as a translation.

    Args:
        case: source, target and model.
        method: one of `METHODS`.
        samples: the number of LIME's perturbed sources.
        seed: the seed of LIME and of `random`.

    Raises:
        UserError: there is no such method, a package for it is not installed, or the model has no attention.
    """
    refuse_method(method)
    fit: list[float] = []
    if method == "attention":
        importance = case.attention()
    elif method == "erasure":
        importance = erasure(case)
    elif method == "lime":
        importance, fit = lime(case, samples, seed)
    elif method == "gradients":
        importance = integrated_gradients(case)
    else:
        generator = torch.Generator().manual_seed(seed)
        importance = torch.rand(len(case.target_words), len(case.source_words), generator=generator)
    return Explanation(method, case.source_words, case.target_words, importance, fit, case.context)


def integrated_gradients(case: Explained, steps: int = 32) -> Tensor:
    """Return the share of each part of the source in each target word's log-probability [target words, parts].

    They are the gradient with respect to the embedded source, averaged along the path from the baseline (Sundararajan
    et al. 2017, arXiv 1703.01365, equation 1). The shares of a target word sum to the increase of its log-probability
    along the path.
    """
    from captum.attr import IntegratedGradients

    baseline, source = case.interpolation_path()

    def log_prob(embedded: Tensor, start: int, end: int) -> Tensor:
        between_steps()
        return case.embedded_log_probs(embedded, start, end)

    method = IntegratedGradients(log_prob)
    batch = max(1, GRADIENT_TOKENS // (source.size(1) + case.target_spans[-1][1] + 1))
    rows = []
    for span in case.target_spans:
        attributions = method.attribute(  # [1, S, D]
            source, baseline, additional_forward_args=span, n_steps=steps, internal_batch_size=batch
        )
        rows.append(case.by_part(attributions[0].sum(-1).detach()))
    return torch.stack(rows).float().cpu()


def erasure(case: Explained) -> Tensor:
    """Return the decrease of each target word's log-probability when one part is left out [target words, parts].

    This is equation 1 of Li et al. 2016 (arXiv 1612.08220), as a difference of log-probabilities.
    """
    count = len(case.source_words)
    keep = torch.cat([torch.ones(1, count, dtype=torch.bool), ~torch.eye(count, dtype=torch.bool)])
    log_probs = case.log_probs(keep)
    return (log_probs[:1] - log_probs[1:]).T


def lime(case: Explained, samples: int = 500, seed: int = 1) -> tuple[Tensor, list[float]]:
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
    probabilities = case.probabilities(torch.from_numpy(keep)).numpy()
    model = Ridge(alpha=1.0).fit(keep.astype(float), probabilities, sample_weight=weights)
    predicted = model.predict(keep.astype(float)).reshape(probabilities.shape)
    mean = np.average(probabilities, axis=0, weights=weights)
    variance = np.average((probabilities - mean) ** 2, axis=0, weights=weights)
    residual = np.average((probabilities - predicted) ** 2, axis=0, weights=weights)
    r_squared = np.where(variance > 1e-12, 1 - residual / np.maximum(variance, 1e-12), 0.0)
    return torch.from_numpy(model.coef_.reshape(len(case.target_words), count)).float(), r_squared.tolist()


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


def record(
    explanation: Explanation, scores: Mapping[str, Faithfulness], contrasted: Contrast | None = None
) -> dict[str, Any]:
    """Return plain values: words, parts, importance rounded to five decimals, fit, faithfulness and contrast."""
    row: dict[str, Any] = {
        "source": explanation.source,
        "target": explanation.target,
        "method": explanation.method,
        "importance": plain(explanation.importance, 5),
        "fit": rounded(explanation.fit, 4),
        "faithfulness": {name: score._asdict() for name, score in scores.items()},
    }
    if explanation.context:
        row["context"] = explanation.context
    if contrasted:
        row["contrast"] = contrasted.to_json()
    return row
