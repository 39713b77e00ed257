"""Token embeddings scaled by sqrt(D), plus positions, plus dropout (arXiv 1706.03762, sections 3.4, 3.5 and 5.4)."""

import math

from torch import Tensor, nn

from translucid.layers.dropout import Dropout


class Embedding(nn.Module):
    """Dropout(E[ids] * sqrt(D) + P)."""

    def __init__(self, tokens: nn.Embedding, positions: nn.Module, dropout: float) -> None:
        """`tokens`: E [V, D], which may be shared with other embeddings and with the output projection."""
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(tokens.embedding_dim)

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        """Embed ids [B, T] that stand at the positions first, first + 1, ..: [B, T, D]."""
        return self.dropout(self.tokens(ids) * self.scale + self.positions(ids.size(1), first))


def token_embedding(vocabulary: int, width: int) -> nn.Embedding:
    """Return a new E [V, D] whose vectors have length 1 on average, so that E * sqrt(D) has entries of variance 1."""
    embedding = nn.Embedding(vocabulary, width)
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(width))
    return embedding
