"""The mixture of the model's distribution with one over the tokens of similar segments (kNN-MT).

    d_i = |q / |q| - k_i / |k_i||²                              between 0 and 4
    w_i = exp(-d_i / T)
    p_kNN(y) = sum of w_i over the i with y_i = y, divided by the sum of all w_i
    λ = λ₀ max(0, 1 - min_i d_i / R)
    p(y) = λ p_kNN(y) + (1 - λ) p_model(y)

q is the decoder's state at the next position, k_i its state at a position of a similar pair, and y_i the token there
(Khandelwal et al. 2021, arXiv 2010.00710, section 2). T is the bandwidth of the kernel. Zheng et al. (2021, arXiv
2105.13022) predict λ from the distances by a small network; here it falls with the smallest one, and a position whose
nearest key is farther than the reach R is left to the model. Vectors of length 1 make both independent of its scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

FAR = 1e4
"""The distance of padding, whose weight is 0."""


class Keys(NamedTuple):
    """What the model knew at each position of a pair's target."""

    keys: Tensor
    """[n, D], of length 1."""
    tokens: Tensor
    """[n], the token at each position, end token included."""

    @classmethod
    def none(cls, like: Tensor) -> Keys:
        """Return the keys of a pair that the model can't read, on the device of `like` [.., D]."""
        keys = like.new_zeros(0, like.size(-1), dtype=torch.float32)
        return cls(keys, torch.zeros(0, dtype=torch.long, device=like.device))


@dataclass(frozen=True)
class Datastore:
    """The keys of the similar pairs of B sources."""

    keys: Tensor
    """[B, n, D], of length 1."""
    tokens: Tensor
    """[B, n]."""
    is_token: Tensor
    """[B, n] boolean, False where there is padding."""
    pair: Tensor
    """[B, n], the number of the pair that a key belongs to, among those of its source."""

    @classmethod
    def of(cls, sources: Sequence[Sequence[Keys]]) -> Datastore | None:
        """Return the keys of the pairs of each source; None if there are none, as where all pairs are too long."""
        readable = [pair for pairs in sources for pair in pairs if len(pair.tokens)]
        if not readable:
            return None
        none = Keys.none(readable[0].keys)
        joined = [Keys(*map(torch.cat, zip(none, *pairs, strict=True))) for pairs in sources]
        tokens = [source.tokens for source in joined]
        numbers = []
        for pairs in sources:
            lengths = none.tokens.new_tensor([len(pair.tokens) for pair in pairs])
            numbers.append(torch.arange(len(pairs), device=lengths.device).repeat_interleave(lengths))
        return cls(
            pad_sequence([source.keys for source in joined], batch_first=True),
            pad_sequence(tokens, batch_first=True),
            pad_sequence([torch.ones_like(row, dtype=torch.bool) for row in tokens], batch_first=True),
            pad_sequence(numbers, batch_first=True),
        )

    def select(self, rows: Tensor) -> Datastore:
        """Return the keys of the sources `rows` [N]."""
        return Datastore(self.keys[rows], self.tokens[rows], self.is_token[rows], self.pair[rows])

    def distances(self, queries: Tensor, source: Tensor) -> Tensor:
        """Return the distances d [N, n] of queries [N, D] to the keys of their sources [N]; `FAR` for padding."""
        # The queries of a source are packed into [B, K, D], because its keys would take more time to copy.
        earlier = (source[:, None] == source).tril(-1).sum(1)  # [N] of the same source
        packed = queries.new_zeros(len(self.keys), int(earlier.max()) + 1, queries.size(1), dtype=self.keys.dtype)
        packed[source, earlier] = normalize(queries.to(self.keys.dtype), dim=-1)
        similarities = (packed @ self.keys.transpose(1, 2))[source, earlier]  # [N, n]
        return (2 - 2 * similarities).clamp(min=0).masked_fill(~self.is_token[source], FAR)


@dataclass(frozen=True)
class Mixture:
    """The three numbers of the equation."""

    bandwidth: float
    """T."""
    reach: float
    """R."""
    weight: float
    """λ₀, below 1: λ at a distance of 0."""

    def shares(self, distances: Tensor) -> Tensor:
        """Return λ w_i / sum_i w_i [N, n] for distances [N, n]: what each key adds to the probability of its token."""
        nearest = distances.amin(-1, keepdim=True)
        factor = self.weight * (1 - nearest / self.reach).clamp(min=0)  # λ
        return factor * ((nearest - distances) / self.bandwidth).softmax(-1)

    def log_probs(self, logits: Tensor, shares: Tensor, tokens: Tensor) -> Tensor:
        """Return log p [N, V]; where λ = 0 the model's logits.

        Args:
            logits: [N, V], those of the model.
            shares: [N, n], of `shares`.
            tokens: [N, n], the tokens of the keys.
        """
        logits = logits.to(shares.dtype)
        factor = shares.sum(-1, keepdim=True)  # λ
        of_memory = torch.zeros_like(logits).scatter_add_(1, tokens, shares)  # λ p_kNN
        of_model = logits.log_softmax(-1) + torch.log1p(-factor)
        return torch.where(factor > 0, torch.logaddexp(of_model, of_memory.log()), logits)
