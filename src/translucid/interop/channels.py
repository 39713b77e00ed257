"""Reorder the channels of a Transformer, which computes the same function in any order of them.

All blocks share the sum of embedding, position and the outputs of the sublayers. If the channels of that sum, of the
matrices that read and write it, and of the norms are reordered together, no logit changes (except for rounding). So a
model that was trained with alternating sines and cosines becomes one with all sines first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_READ = ".tokens.weight", ".query.weight", ".key_value.weight", ".inner.weight"
"""Name endings of matrices whose columns are channels, as are those of `output.weight`, which computes the logits."""
_WRITE = "attention.output.weight", "attention.output.bias", ".outer.weight", ".outer.bias", "norm.weight", "norm.bias"
"""Name endings of matrices, biases and norms whose rows are channels."""


def sines_first(tensors: Mapping[str, Tensor], width: int) -> dict[str, Tensor]:
    """Return the weights of a Transformer with `sinusoidal` positions for `sinusoidal-halves`.

    Args:
        tensors: the weights by our names.
        width: the width D of the model.
    """
    import torch

    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])

    reordered = {}
    for name, tensor in tensors.items():
        # `attention.output.weight` ends in `output.weight`, but writes channels: the whole name decides.
        if name == "output.weight" or name.endswith(_READ):
            tensor = tensor[:, order]
        elif name.endswith(_WRITE):
            tensor = tensor[order]
        reordered[name] = tensor
    return reordered
