"""Which source piece a target piece belongs to: one more attention on top of a model that stays as it is."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WIDTH = 128
"""Of its queries and keys."""


class AlignmentLayer(nn.Module):
    """Attention that has learned from word links, and from nothing else.

    A translator's own attention looks where the next word can be told from, which need not be the word that it
    translates. This layer reads the model's states and the target piece itself, which is known by then (Garg et al.
    2019, arXiv 1909.02074: full target context), and the model does not change (Zenkel et al. 2019, arXiv 1901.11359,
    whose layer learns without links; here it places fewer tags right than the model's own attention).
    """

    def __init__(self, features: int, states: int) -> None:
        """`features` D: width of the decoder's last states; `states` M: that of the memory."""
        super().__init__()
        self.feature_norm, self.state_norm = nn.LayerNorm(features), nn.LayerNorm(states)
        self.query, self.key = nn.Linear(2 * features, WIDTH), nn.Linear(states, WIDTH)

    def forward(self, features: Tensor, pieces: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Return softmax(q k^T / sqrt(d)) [B, T, S].

        Args:
            features: [B, T, D], from which each target piece was predicted.
            pieces: [B, T, D], the row of the output matrix of each target piece.
            states: [B, S, M], the memory.
            mask: [B, S], True where the source may be linked.
        """
        query = self.query(torch.cat([self.feature_norm(features), pieces], -1))
        scores = query @ self.key(self.state_norm(states)).transpose(1, 2) / math.sqrt(WIDTH)
        return scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
