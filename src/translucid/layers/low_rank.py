"""LoRA: low-rank differences that are added to the matrices of a model.

    W' = W + s B A,    A [r, inputs], B [outputs, r], B = 0 at the beginning

Hu et al. 2021 (arXiv 2106.09685), section 4.1. W is frozen; A and B are learned.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from translucid.attention.multi_head import MultiHeadAttention
from translucid.layers.feed_forward import FeedForward
from translucid.layers.ssru import SSRU


class LowRank(nn.Module):
    """W + s B A, as a parametrization of W."""

    def __init__(self, weight: Tensor, rank: int, scale: float) -> None:
        """Build A and B of `rank` r for `weight` W [outputs, inputs]; `scale` is s."""
        super().__init__()
        outputs, inputs = weight.shape
        self.down = nn.Parameter(weight.new_empty(rank, inputs))
        self.up = nn.Parameter(weight.new_zeros(outputs, rank))
        self.scale = scale
        nn.init.normal_(self.down, std=1 / math.sqrt(inputs))

    def forward(self, weight: Tensor) -> Tensor:
        """Return W' for W [outputs, inputs]."""
        return torch.addmm(weight, self.up, self.down, alpha=self.scale)


def adapt(model: nn.Module, rank: int, scale: float, parts: Collection[str]) -> int:
    """Add a low-rank difference to each matrix that is not frozen, and freeze all other weights of the model.

    Args:
        model: a Transformer; other models have no such matrices.
        rank: r, the rank of the differences.
        scale: s, the factor of the differences.
        parts: any of `attention`, which includes an SSRU in its place, `feed-forward`, and `embeddings`, which includes
            the output projection.

    Returns:
        The number of adapted matrices. A matrix that several modules share counts once.
    """
    modules = [module for module in _modules(model, parts) if module.weight.requires_grad]
    model.requires_grad_(False)
    # Modules that share a matrix also share its difference, so that the matrices stay equal.
    adapters: dict[Tensor, LowRank] = {}
    for module in modules:
        weight = module.weight
        if weight not in adapters:
            adapters[weight] = LowRank(weight, rank, scale)
        parametrize.register_parametrization(module, "weight", adapters[weight])
    return len(adapters)


def merged(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights by name with the differences added; a shared weight appears under its first name only.

    The names are those of a model without differences.
    """
    weights = {}
    for name, parameter in model.named_parameters():
        # PyTorch renames the weight `M.weight` to `M.parametrizations.weight.original`, and calls the parameters of
        # the difference `M.parametrizations.weight.0.up` and `.down`.
        module, parametrized, suffix = name.partition(".parametrizations.")
        if not parametrized:
            weights[name] = parameter.data
        elif suffix.endswith(".original"):
            tensor = suffix.removesuffix(".original")
            weights[f"{module}.{tensor}"] = getattr(model.get_submodule(module), tensor).detach()
    return weights


def differences(model: nn.Module) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the factors B [outputs, r] and A [r, inputs] of each adapted matrix by the name of the matrix."""
    by_name = {}
    for name, module in model.named_modules():
        if isinstance(module, LowRank):
            # `M.parametrizations.weight.0` belongs to `M.weight`.
            linear, _, tensor = name.rpartition(".")[0].partition(".parametrizations.")
            by_name[f"{linear}.{tensor}"] = module.up.data, module.down.data
    return by_name


def _modules(model: nn.Module, parts: Collection[str]) -> Iterator[nn.Linear | nn.Embedding]:
    """Yield the modules whose weights belong to the parts; the output projection comes last."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and "attention" in parts:
            yield from (module.query, module.key_value, module.output)
        if isinstance(module, SSRU) and "attention" in parts:
            yield module.projection
        if isinstance(module, FeedForward) and "feed-forward" in parts:
            yield from (module.inner, module.outer)
        if isinstance(module, nn.Embedding) and "embeddings" in parts:
            yield module
    output = getattr(model, "output", None)
    if "embeddings" in parts and isinstance(output, nn.Linear):
        yield output
