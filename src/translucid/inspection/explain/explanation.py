"""Explanations: the importance of each part of the source for each target word, by several methods."""

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
"""The methods by name, with descriptions."""
_PACKAGES = {"lime": ("scikit-learn", "sklearn"), "gradients": ("captum", "captum")}
"""The optional package of a method, and the module to import."""
_PACKAGES_FOR_IMAGES = {"lime": ("scikit-image", "skimage")}
"""A further package that a method needs for images."""


@dataclass(frozen=True)
class Explanation:
    """The importance of the parts of a source for target words: the higher, the more a part supports the word."""

    method: str
    source: list[str]
    """Names of the parts: words, or cells or superpixels."""
    target: list[str]
    """The target words."""
    importance: Tensor
    """[target words, parts]."""
    fit: list[float] = field(default_factory=list)
    """LIME's local R² for each target word; empty for other methods."""

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the darker a cell, the more the source word supports the target word."""
        weights = self.importance.clamp(min=0) / self.importance.abs().max().clamp(min=1e-9)
        return notebook_table(WordMap(self.source, self.target, weights))


def methods_here(*, images: bool = False) -> list[str]:
    """Return the methods whose packages are installed, for texts or for images."""
    return [method for method in METHODS if _missing_package(method, images=images) is None]


def refuse_method(method: str, *, images: bool = False) -> None:
    """Check, before any work, that a method exists and its packages are installed, for texts or for images.

    Raises:
        UserError: there is no such method, or a package for it is not installed.
    """
    if method not in METHODS:
        raise UserError(f"there is no method {method!r}", fix=nearest(method, METHODS))
    package = _missing_package(method, images=images)
    if package:
        raise missing_package(method, package, "explain")


def _missing_package(method: str, *, images: bool) -> str | None:
    """Return a package that a method needs and that is not installed, if any."""
    for packages in (_PACKAGES, _PACKAGES_FOR_IMAGES) if images else (_PACKAGES,):
        if method in packages:
            package, module = packages[method]
            if not find_spec(module):
                return package
    return None


class Explained(Perturbed, Integrable, Protocol):
    """A case that any method can explain."""

    def attention(self) -> Tensor:
        """Return the attention [target words, parts].

        Raises:
            UserError: the model has no attention.
        """


def explain(case: Explained, method: str, *, samples: int = 500, seed: int = 1) -> Explanation:
    """Explain a translation, a caption or a label.

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
    return Explanation(method, case.source_words, case.target_words, importance, fit)
