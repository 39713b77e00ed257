"""A learned mean of the layers of a language model (Peters et al. 2018, arXiv 1802.05365, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Mix(nn.Module):
    """E_k = gamma sum_j softmax(s)_j h_{k,j}, with s and gamma learned; at first, all layers have the same weight."""

    def __init__(self, layers: int, *, normalise: bool = False) -> None:
        """Build a mix of `layers` layers, the embeddings included; `normalise` gives each h mean 0 and variance 1."""
        super().__init__()
        self.s = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))
        self.normalise = normalise

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """Mix the states [.., D] of all layers into [.., D]."""
        h = torch.stack([*layers], -1)  # [.., D, L]
        if self.normalise:
            # Layer normalisation is over the last dimension, so swap D and L and swap them back.
            h = nn.functional.layer_norm(h.transpose(-1, -2), (h.size(-2),)).transpose(-1, -2)
        return self.gamma * (h @ self.s.softmax(0))
