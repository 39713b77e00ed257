"""ELMo in the source embeddings of a translator (Peters et al. 2018, arXiv 1802.05365, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from translucid.ground.special import SPECIAL
from translucid.kernels.linear import Linear
from translucid.layers.embedding import Embedding
from translucid.layers.mix import Mix
from translucid.models.language.bilstm import BidirectionalLSTM
from translucid.models.language_options import BiLSTMLanguageOptions
from translucid.models.model_options import ContextualOptions


class ContextualEmbedding(nn.Module):
    """The sum of a token's embedding and its vector from a bidirectional language model.

        x_k = embedding(w_k) + W ELMo_k,    ELMo_k = gamma sum_j softmax(s)_j h_{k,j}

    The paper concatenates ELMo_k and the embedding; a matrix after the concatenation is equivalent to adding W ELMo_k.
    W is zero at first. h_{k,j} are the states of both directions in layer j for token k, normalised to mean 0 and
    variance 1.
    """

    def __init__(self, embedding: Embedding, width: int, options: BiLSTMLanguageOptions, *, tuned: bool) -> None:
        """Combine an embedding with a bidirectional language model.

        Args:
            embedding: the embedding of V tokens.
            width: D, the width of the embedding.
            options: the options of the bidirectional language model.
            tuned: whether to train the language model too; otherwise it is frozen.
        """
        super().__init__()
        self.embedding, self.tuned = embedding, tuned
        self.language = BidirectionalLSTM(embedding.tokens.num_embeddings, options).requires_grad_(tuned)
        self.language.output.bias.requires_grad_(False)  # the language model predicts nothing here
        self.mix = Mix(1 + options.layers, normalise=True)
        self.projection = Linear(2 * options.width, width, bias=False)
        nn.init.zeros_(self.projection.weight)

    def train(self, mode: bool = True) -> ContextualEmbedding:
        """Set the mode, except that a frozen language model stays in evaluation mode, without dropout."""
        super().train(mode)
        if not self.tuned:
            self.language.eval()
        return self

    def forward(self, ids: Tensor) -> Tensor:
        """Embed sources ids [B, S], padded on the right and ending in the end token: [B, S, D]."""
        # The language model was trained on texts that begin with the start token; its position is dropped afterwards.
        whole = nn.functional.pad(ids, (1, 0), value=SPECIAL.start)
        with torch.set_grad_enabled(self.tuned and torch.is_grad_enabled()):
            layers = self.language.both_ways(self.language.embedding(whole), whole != SPECIAL.pad)
        contextual: Tensor = self.projection(self.mix([layer[:, 1:] for layer in layers]))
        return self.embedding(ids) + contextual


def with_elmo(embedding: Embedding, options: ContextualOptions) -> nn.Module:
    """Return a source embedding, combined with ELMo if the options ask for it."""
    if options.elmo is None:
        return embedding
    return ContextualEmbedding(embedding, embedding.tokens.embedding_dim, options.elmo, tuned=options.elmo_tuned)
