"""For each target word the importance of each source word, by any of the methods."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from translucid.errors import UserError, nearest
from translucid.inspection.explain.case import Case
from translucid.inspection.explain.gradients import integrated_gradients
from translucid.inspection.explain.perturbing import erasure, lime

METHODS = {
    "attention": "where it looked: cross-attention, averaged over layers and heads",
    "erasure": "how much the word's log-probability falls when a source word is left out",
    "lime": "coefficients of a local linear model over sources with random words left out",
    "gradients": "integrated gradients to the embedded source",
    "random": "drawn at random, to compare with",
}
"""How importance is measured, by name."""


@dataclass(frozen=True)
class Explanation:
    """Importance of source words for target words; the higher the more it speaks for the word."""

    method: str
    source: list[str]
    target: list[str]
    importance: Tensor
    """[target words, source words]."""
    fit: list[float] = field(default_factory=list)
    """Of LIME: the local R² of each target word."""


def explain(case: Case, method: str, *, samples: int = 500, seed: int = 1) -> Explanation:
    """Explain a translation.

    Args:
        case: source, target and model.
        method: one of `METHODS`.
        samples: of LIME.
        seed: of LIME and of `random`.

    Raises:
        UserError: there is no such method, a library for it is not installed, or the model has no attention.
    """
    fit: list[float] = []
    try:
        if method == "attention":
            importance = case.inspected.words().weights[:-1, :-1]
        elif method == "erasure":
            importance = erasure(case)
        elif method == "lime":
            importance, fit = lime(case, samples, seed)
        elif method == "gradients":
            importance = integrated_gradients(case)
        elif method == "random":
            generator = torch.Generator().manual_seed(seed)
            importance = torch.rand(len(case.target_words), len(case.source_words), generator=generator)
        else:
            raise UserError(f"there is no method {method!r}", fix=nearest(method, METHODS))
    except ModuleNotFoundError as error:
        raise UserError(
            f"{method} needs the package {error.name}", fix="Install it with pip install 'translucid[explain]'."
        ) from error
    return Explanation(method, case.source_words, case.target_words, importance, fit)
