"""LoRA: low-rank differences that are added to the matrices of a model.

    W' = W + s B A,    A [r, inputs], B [outputs, r], B = 0 at the beginning

Hu et al. 2021 (arXiv 2106.09685), section 4.1. W stays as it is, A and B are learned.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from translucid.attention.multi_head import MultiHeadAttention
from translucid.layers.feed_forward import FeedForward


class LowRank(nn.Module):
    """W + s B A."""

    def __init__(self, weight: Tensor, rank: int, scale: float) -> None:
        """`weight`: W [outputs, inputs]; `rank`: r; `scale`: s."""
        super().__init__()
        outputs, inputs = weight.shape
        self.down = nn.Parameter(weight.new_empty(rank, inputs))
        self.up = nn.Parameter(weight.new_zeros(outputs, rank))
        self.scale = scale
        nn.init.normal_(self.down, std=1 / math.sqrt(inputs))

    def forward(self, weight: Tensor) -> Tensor:
        """[outputs, inputs] -> [outputs, inputs]."""
        return torch.addmm(weight, self.up, self.down, alpha=self.scale)


class Difference(NamedTuple):
    """What is added to a matrix, before it is multiplied by s."""

    up: Tensor
    """B [outputs, r]."""
    down: Tensor
    """A [r, inputs]."""


def adapt(model: nn.Module, rank: int, scale: float, parts: Collection[str]) -> int:
    """Let a model learn a difference for each matrix that has not been frozen, and freeze all else of it.

    Args:
        model: a Transformer.
        rank: of the differences.
        scale: by what they are multiplied.
        parts: of `attention`, `feed-forward` and `embeddings`, the output projection among the last.

    Returns:
        How many matrices that are; of another kind of model none. One that several modules share is one.
    """
    chosen = [module for module in _modules(model, parts) if module.weight.requires_grad]
    model.requires_grad_(False)
    made: dict[Tensor, LowRank] = {}
    for module in chosen:
        weight = module.weight
        if weight not in made:
            made[weight] = LowRank(weight, rank, scale)
        parametrize.register_parametrization(module, "weight", made[weight])
    return len(made)


def merged(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights by name, as a model without differences has them, a shared one under its first name only."""
    weights = {}
    for name, parameter in model.named_parameters():
        module, learned, rest = name.partition(".parametrizations.")
        if not learned:
            weights[name] = parameter.data
        elif rest.endswith(".original"):
            tensor = rest.removesuffix(".original")
            weights[f"{module}.{tensor}"] = getattr(model.get_submodule(module), tensor).detach()
    return weights


def differences(model: nn.Module) -> dict[str, Difference]:
    """Return what is learned for each matrix, by its name."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, LowRank):
            linear, _, tensor = name.rpartition(".")[0].partition(".parametrizations.")
            found[f"{linear}.{tensor}"] = Difference(module.up.data, module.down.data)
    return found


def _modules(model: nn.Module, parts: Collection[str]) -> Iterator[nn.Linear | nn.Embedding]:
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and "attention" in parts:
            yield from (module.query, module.key_value, module.output)
        if isinstance(module, FeedForward) and "feed-forward" in parts:
            yield from (module.inner, module.outer)
        if isinstance(module, nn.Embedding) and "embeddings" in parts:
            yield module
    if "embeddings" in parts and isinstance(output := getattr(model, "output", None), nn.Linear):
        yield output
