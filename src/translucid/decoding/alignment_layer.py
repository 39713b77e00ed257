"""The alignment layer: one more attention on top of a model, which links each target piece to a source piece."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WIDTH = 128
"""The width of the queries and keys."""


class AlignmentLayer(nn.Module):
    """Attention that was trained on word links alone.

    A translator's own attention weights what the next word is predicted from, which need not be the word that it
    translates. This layer reads the model's states and the target piece itself, which is known by then (Garg et al.
    2019, arXiv 1909.02074: full target context), and the model does not change (Zenkel et al. 2019, arXiv 1901.11359,
    whose layer learns without links; here it places fewer tags correctly than the model's own attention).
    """

    def __init__(self, features: int, states: int) -> None:
        """`features` D: the width of the decoder's last states; `states` M: the width of the memory."""
        super().__init__()
        self.feature_norm, self.state_norm = nn.LayerNorm(features), nn.LayerNorm(states)
        self.query, self.key = nn.Linear(2 * features, WIDTH), nn.Linear(states, WIDTH)

    def forward(self, features: Tensor, pieces: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Return softmax(q k^T / sqrt(d)) [B, T, S].

        Args:
            features: [B, T, D], the decoder's states from which each target piece was predicted.
            pieces: [B, T, D], the row of the output matrix of each target piece.
            states: [B, S, M], the states of the memory.
            mask: [B, S], True where a source position may be linked.
        """
        query = self.query(torch.cat([self.feature_norm(features), pieces], -1))
        scores = query @ self.key(self.state_norm(states)).transpose(1, 2) / math.sqrt(WIDTH)
        return scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
