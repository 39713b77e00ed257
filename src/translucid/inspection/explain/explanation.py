"""For each target word the importance of each source word, by any of the methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec

import torch
from torch import Tensor

from translucid.ground.errors import UserError, missing_package, nearest
from translucid.inspection.explain.case import Case
from translucid.inspection.explain.gradients import integrated_gradients
from translucid.inspection.explain.perturbing import erasure, lime
from translucid.inspection.html import notebook_table
from translucid.inspection.words import WordMap

METHODS = {
    "attention": "where it looked: cross-attention, averaged over layers and heads",
    "erasure": "how much the word's log-probability falls when a source word is left out",
    "lime": "coefficients of a local linear model over sources with random words left out",
    "gradients": "integrated gradients to the embedded source",
    "random": "drawn at random, to compare with",
}
"""How importance is measured, by name."""
_PACKAGES = {"lime": ("scikit-learn", "sklearn"), "gradients": ("captum", "captum")}
"""What a method needs that may not be installed: the package, and the module in it."""


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

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the darker the more a source word speaks for the target word."""
        weights = self.importance.clamp(min=0) / self.importance.abs().max().clamp(min=1e-9)
        return notebook_table(WordMap(self.source, self.target, weights))


def methods_here() -> list[str]:
    """Return the methods that can be used with what is installed."""
    return [name for name in METHODS if name not in _PACKAGES or find_spec(_PACKAGES[name][1])]


def refuse_method(method: str) -> None:
    """Check, before any work, that a method can be used.

    Raises:
        UserError: there is no such method, or a library for it is not installed.
    """
    if method not in METHODS:
        raise UserError(f"there is no method {method!r}", fix=nearest(method, METHODS))
    if method not in methods_here():
        raise missing_package(method, _PACKAGES[method][0], "explain")


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
    refuse_method(method)
    fit: list[float] = []
    if method == "attention":
        importance = case.inspected.words().weights[:-1, :-1]
    elif method == "erasure":
        importance = erasure(case)
    elif method == "lime":
        importance, fit = lime(case, samples, seed)
    elif method == "gradients":
        importance = integrated_gradients(case)
    else:
        generator = torch.Generator().manual_seed(seed)
        importance = torch.rand(len(case.target_words), len(case.source_words), generator=generator)
    return Explanation(method, case.source_words, case.target_words, importance, fit)
