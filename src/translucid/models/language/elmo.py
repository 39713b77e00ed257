"""ELMo as what a translator is told of its source (Peters et al. 2018, arXiv 1802.05365, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from translucid.ground.special import SPECIAL
from translucid.kernels.linear import Linear
from translucid.layers.embedding import Embedding
from translucid.layers.mix import Mix
from translucid.models.language.bilstm import BidirectionalLSTM
from translucid.models.language_options import BiLSTMLanguageOptions
from translucid.models.model_options import ToldOfContext


class ContextualEmbedding(nn.Module):
    """What the encoder reads of a token is its own vector, and what a bidirectional language model makes of it.

        x_k = embedding(w_k) + W ELMo_k,    ELMo_k = gamma sum_j softmax(s)_j h_{k,j}

    The paper puts ELMo_k beside the token's vector; behind a matrix that is the same as to add W ELMo_k. W begins with
    zeros. h_{k,j} is what both directions make of token k in layer j, each normalised to mean 0 and variance 1.
    """

    def __init__(self, embedding: Embedding, width: int, options: BiLSTMLanguageOptions, *, tuned: bool) -> None:
        """Put a bidirectional model beside an embedding.

        Args:
            embedding: the token's own vector, V of them.
            width: D of that.
            options: of the bidirectional model.
            tuned: whether the bidirectional model learns too, or stays as it is.
        """
        super().__init__()
        self.embedding, self.tuned = embedding, tuned
        self.language = BidirectionalLSTM(embedding.tokens.num_embeddings, options).requires_grad_(tuned)
        self.language.output.bias.requires_grad_(False)  # nothing is foretold
        self.mix = Mix(1 + options.layers, normalise=True)
        self.projection = Linear(2 * options.width, width, bias=False)
        nn.init.zeros_(self.projection.weight)

    def train(self, mode: bool = True) -> ContextualEmbedding:
        """A model that stays as it is has no dropout either."""
        super().train(mode)
        if not self.tuned:
            self.language.eval()
        return self

    def forward(self, ids: Tensor) -> Tensor:
        """Embed sources ids [B, S], padded on the right, that end in the end token: [B, S, D]."""
        whole = nn.functional.pad(ids, (1, 0), value=SPECIAL.start)
        with torch.set_grad_enabled(self.tuned and torch.is_grad_enabled()):
            layers = self.language.both_ways(self.language.embedding(whole), whole != SPECIAL.pad)
        told: Tensor = self.projection(self.mix([layer[:, 1:] for layer in layers]))
        return self.embedding(ids) + told


def in_context(embedding: Embedding, options: ToldOfContext) -> nn.Module:
    """Return a source embedding, with ELMo beside it if the options say so."""
    if options.elmo is None:
        return embedding
    return ContextualEmbedding(embedding, embedding.tokens.embedding_dim, options.elmo, tuned=options.elmo_tuned)
