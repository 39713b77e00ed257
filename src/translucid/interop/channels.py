"""The channels of a Transformer in another order: the same function, as nothing in it knows a channel by its place.

All that the blocks have in common is the sum of embedding, position and what each sublayer adds. Reordering the
channels of that sum, of what reads it, of what writes it, and of the norms changes no logit (but for rounding). So a
model that has learned with sines and cosines in turn is also one that has them sines first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_READ = ".tokens.weight", ".query.weight", ".key_value.weight", ".inner.weight"
"""Ends of the names of matrices whose columns are channels; `output.weight`, that of the logits, is another."""
_WRITE = "attention.output.weight", "attention.output.bias", ".outer.weight", ".outer.bias", "norm.weight", "norm.bias"
"""Ends of the names of what has channels for rows."""


def sines_first(tensors: Mapping[str, Tensor], width: int) -> dict[str, Tensor]:
    """Return a Transformer's weights, learned with `sinusoidal` positions, for `sinusoidal-halves`.

    Args:
        tensors: by our names.
        width: D.
    """
    import torch

    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])

    def ordered(name: str, tensor: Tensor) -> Tensor:
        if name == "output.weight" or name.endswith(_READ):
            return tensor[:, order]
        return tensor[order] if name.endswith(_WRITE) else tensor

    return {name: ordered(name, tensor) for name, tensor in tensors.items()}
