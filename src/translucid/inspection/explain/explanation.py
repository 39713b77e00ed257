"""For each target word the importance of each part of the source, by any of the methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Protocol

import torch
from torch import Tensor

from translucid.ground.errors import UserError, missing_package, nearest
from translucid.inspection.explain.case import Perturbed
from translucid.inspection.explain.gradients import Integrable, integrated_gradients
from translucid.inspection.explain.perturbing import erasure, lime
from translucid.inspection.html import notebook_table
from translucid.inspection.words import WordMap

METHODS = {
    "attention": "where it looked: cross-attention, averaged over layers and heads",
    "erasure": "how much the word's log-probability falls when one part of the source is left out",
    "lime": "coefficients of a local linear model over sources with random parts left out",
    "gradients": "integrated gradients to the embedded source",
    "random": "drawn at random, to compare with",
}
"""How importance is measured, by name."""
_PACKAGES = {"lime": ("scikit-learn", "sklearn"), "gradients": ("captum", "captum")}
"""What a method needs that may not be installed: the package, and the module in it."""
_FOR_IMAGES = {"lime": ("scikit-image", "skimage")}
"""What it needs besides for images."""


@dataclass(frozen=True)
class Explanation:
    """Importance of the parts of a source for target words; the higher the more a part speaks for the word."""

    method: str
    source: list[str]
    """Names of the parts: words, or cells or superpixels."""
    target: list[str]
    importance: Tensor
    """[target words, parts]."""
    fit: list[float] = field(default_factory=list)
    """Of LIME: the local R² of each target word."""

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the darker the more a source word speaks for the target word."""
        weights = self.importance.clamp(min=0) / self.importance.abs().max().clamp(min=1e-9)
        return notebook_table(WordMap(self.source, self.target, weights))


def methods_here(*, images: bool = False) -> list[str]:
    """Return the methods that can be used with what is installed, for texts or for images."""
    return [name for name in METHODS if all(find_spec(module) for _, module in _needed(name, images=images))]


def refuse_method(method: str, *, images: bool = False) -> None:
    """Check, before any work, that a method can be used, for texts or for images.

    Raises:
        UserError: there is no such method, or a library for it is not installed.
    """
    if method not in METHODS:
        raise UserError(f"there is no method {method!r}", fix=nearest(method, METHODS))
    for package, module in _needed(method, images=images):
        if not find_spec(module):
            raise missing_package(method, package, "explain")


def _needed(method: str, *, images: bool) -> list[tuple[str, str]]:
    """Return what a method needs: packages, and the module in each."""
    return [needs[method] for needs in (_PACKAGES, *([_FOR_IMAGES] if images else [])) if method in needs]


class Explained(Perturbed, Integrable, Protocol):
    """All that any method asks for."""

    def attention(self) -> Tensor:
        """Return where the model looked [target words, parts].

        Raises:
            UserError: the model has no attention.
        """


def explain(case: Explained, method: str, *, samples: int = 500, seed: int = 1) -> Explanation:
    """Explain a translation, a caption or a label.

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
    return Explanation(method, case.source_words, case.target_words, importance, fit)
