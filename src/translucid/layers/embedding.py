"""Token embeddings scaled by sqrt(D), plus positions, plus dropout (arXiv 1706.03762, sections 3.4, 3.5 and 5.4).

And the two ways of sharing them: between source and target, and with the output projection.
"""

import math

from torch import Tensor, nn

from translucid.kernels.dropout import Dropout
from translucid.kernels.linear import Linear


class Embedding(nn.Module):
    """Dropout(E[ids] * sqrt(D) + P)."""

    def __init__(
        self,
        tokens: nn.Embedding,
        positions: nn.Module,
        dropout: float,
        *,
        scaled: bool = True,
        nothing: int | None = None,
    ) -> None:
        """Put together an embedding.

        Args:
            tokens: E [V, D], which may be shared with other embeddings and with the output projection.
            positions: gives P.
            dropout: share of entries that are 0 in training.
            scaled: whether there is the factor sqrt(D).
            nothing: the id of a token for which P stands alone, if there is one.
        """
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(tokens.embedding_dim) if scaled else 1.0
        self.nothing = nothing

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        """Embed ids [B, T] that stand at the positions first, first + 1, ..: [B, T, D]."""
        embedded = self.tokens(ids) * self.scale
        if self.nothing is not None:
            embedded = embedded.masked_fill((ids == self.nothing)[:, :, None], 0.0)
        return self.dropout(embedded + self.positions(ids.size(1), first))


def token_embeddings(source: int, target: int, width: int, *, shared: bool) -> tuple[nn.Embedding, nn.Embedding]:
    """Return new E [V, D] for a source and a target vocabulary of these sizes; one and the same if `shared`.

    Raises:
        ValueError: they are to be shared between two different vocabularies.
    """
    if shared and source != target:
        raise ValueError(
            f"source and target embeddings can't be shared: the vocabularies have {source} and {target} entries and "
            "are not one joint vocabulary"
        )
    first = token_embedding(source, width)
    return first, first if shared else token_embedding(target, width)


def token_embedding(vocabulary: int, width: int) -> nn.Embedding:
    """Return a new E [V, D] whose vectors have length 1 on average, so that E * sqrt(D) has entries of variance 1."""
    embedding = nn.Embedding(vocabulary, width)
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(width))
    return embedding


def output_projection(tokens: nn.Embedding, *, tied: bool) -> Linear:
    """Return a new projection from features [.., D] to logits [.., V]; if `tied`, its matrix is the embedding E."""
    output = Linear(tokens.embedding_dim, tokens.num_embeddings)
    nn.init.zeros_(output.bias)
    if tied:
        output.weight = tokens.weight
    else:
        nn.init.xavier_uniform_(output.weight)
    return output
