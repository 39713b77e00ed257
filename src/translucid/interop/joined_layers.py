"""Conversion between separate layers of other toolkits and our joined ones: we store keys and values in one matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

SIDES = "encoder", "decoder"
Names: TypeAlias = Iterable[tuple[str, Sequence[str]]]
"""Our name of each linear layer and norm, with the names of the layers whose rows are joined in it."""


def joined(names: Names, load_layer: Callable[[str], tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """Return weights by our names; `load_layer` returns weight and bias of one of the other toolkit's layers."""
    our_weights: dict[str, Tensor] = {}
    for name, their_names in names:
        weights, biases = zip(*map(load_layer, their_names), strict=True)
        our_weights[f"{name}.weight"], our_weights[f"{name}.bias"] = torch.cat(weights), torch.cat(biases)
    return our_weights


def separated(names: Names, our_weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the name of each of the other toolkit's layers, its weight and its bias, given weights by our names."""
    for name, their_names in names:
        weights = our_weights[f"{name}.weight"].chunk(len(their_names))
        biases = our_weights[f"{name}.bias"].chunk(len(their_names))
        yield from zip(their_names, weights, biases, strict=True)
