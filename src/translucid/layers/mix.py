"""What a task takes of the layers of a language model (Peters et al. 2018, arXiv 1802.05365, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Mix(nn.Module):
    """E_k = gamma sum_j softmax(s)_j h_{k,j}, s and gamma learned; before that, all layers weigh the same."""

    def __init__(self, layers: int, *, normalise: bool = False) -> None:
        """`layers`: how many, that of the embeddings included; `normalise`: each h to mean 0 and variance 1 first."""
        super().__init__()
        self.s = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))
        self.normalise = normalise

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """[.., D] of each layer -> [.., D]."""
        h = torch.stack([*layers], -1)  # [.., D, L]
        if self.normalise:
            h = nn.functional.layer_norm(h.transpose(-1, -2), (h.size(-2),)).transpose(-1, -2)
        return self.gamma * (h @ self.s.softmax(0))
