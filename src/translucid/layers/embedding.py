"""Token embeddings scaled by sqrt(D), plus positions, plus dropout (arXiv 1706.03762, sections 3.4, 3.5 and 5.4).

Embeddings can be shared between source and target, and with the output projection.
"""

import math

from torch import Tensor, nn

from translucid.attention.tree import Level
from translucid.kernels.dropout import Dropout
from translucid.kernels.linear import Linear
from translucid.kernels.packing import Sentences


class Embedding(nn.Module):
    """Dropout(E[ids] * sqrt(D) + P)."""

    def __init__(
        self,
        tokens: nn.Embedding,
        positions: nn.Module,
        dropout: float,
        *,
        scaled: bool = True,
        zero_token: int | None = None,
    ) -> None:
        """Combine token embeddings and positions.

        Args:
            tokens: E [V, D], which may be shared with other embeddings and with the output projection.
            positions: a module that returns P.
            dropout: the probability that an entry is zeroed in training.
            scaled: whether to multiply E by sqrt(D).
            zero_token: the id of a token whose embedding is 0, if there is one.
        """
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(tokens.embedding_dim) if scaled else 1.0
        self.zero_token = zero_token

    def forward(
        self, ids: Tensor, first: int = 0, sentences: Sentences | None = None, level: Level | None = None
    ) -> Tensor:
        """Embed ids [B, T] at the positions first, first + 1, .. or, in a packed row, 0, 1, .. of each of `sentences`.

        The next tokens [B K, 1] of trees have the position of their `level`.

        Returns:
            The vectors [B, T, D].
        """
        embedded = self.tokens(ids) * self.scale
        if self.zero_token is not None:
            embedded = embedded.masked_fill((ids == self.zero_token)[:, :, None], 0.0)
        if level is not None:
            return self.dropout(embedded + level.vector_of(self.positions(level.length)))
        if sentences is None:
            return self.dropout(embedded + self.positions(ids.size(1), first))
        return self.dropout(embedded + sentences.restarted(self.positions(sentences.shape[1])))


def token_embeddings(source: int, target: int, width: int, *, shared: bool) -> tuple[nn.Embedding, nn.Embedding]:
    """Return new E [V, D] for a source and a target vocabulary of these sizes; the same module twice if `shared`.

    Raises:
        ValueError: `shared`, although the vocabularies differ in size.
    """
    if shared and source != target:
        raise ValueError(
            f"source and target embeddings can't be shared: the vocabularies have {source} and {target} entries and "
            "are not one joint vocabulary"
        )
    source_tokens = token_embedding(source, width)
    if shared:
        return source_tokens, source_tokens
    return source_tokens, token_embedding(target, width)


def token_embedding(vocabulary: int, width: int) -> nn.Embedding:
    """Return a new E [V, D] whose vectors have a length of about 1, so that the entries of E * sqrt(D) have variance 1.

    The output projection, which may share E, needs the small entries; the encoder needs the large ones.
    """
    embedding = nn.Embedding(vocabulary, width)
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(width))
    return embedding


def output_projection(tokens: nn.Embedding, *, tied: bool) -> Linear:
    """Return a new projection from features [.., D] to logits [.., V]; if `tied`, its matrix is E (section 3.4)."""
    output = Linear(tokens.embedding_dim, tokens.num_embeddings)
    nn.init.zeros_(output.bias)
    if tied:
        output.weight = tokens.weight
    else:
        nn.init.xavier_uniform_(output.weight)
    return output
