"""Alignment scores of the recurrent translators: how well decoder state h and encoder output y match.

    dot      e = h^T y, or g h^T y with a learned scale g    Luong et al. 2015 (arXiv 1508.04025), equation 8
    general  e = h^T W y                                     the same
    concat   e = v^T tanh(W [h; y])                          the same, and Bahdanau et al. 2015 (arXiv 1409.0473), A.1.2

Each maps queries [.., n_q, D] and keys [.., n_k, D] to scores [.., n_q, n_k]. What depends on the encoder outputs alone
is computed once a sentence, by `keys`, and is what the score is then given.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from translucid.attention.attend import scaled_dot_product
from translucid.kernels.additive import additive_over
from translucid.kernels.linear import Linear


class Score(nn.Module, ABC):
    """An alignment score; to be handed to `attend`."""

    @abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """Return the keys [.., n_k, D] of encoder outputs [.., n_k, D]."""

    def over(self, key: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the score for many queries in turn, with what depends on these keys alone computed once."""
        return self

    @abstractmethod
    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]."""


class Dot(Score):
    """e = g h^T y; g is 1, or learned."""

    def __init__(self, *, scaled: bool = False, first: float = 1.0) -> None:
        """`scaled`: whether g is learned; `first`: where it begins."""
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(first)) if scaled else None

    def keys(self, memory: Tensor) -> Tensor:
        """The encoder outputs themselves."""
        return memory

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]."""
        return scaled_dot_product(query, key, 1.0 if self.scale is None else self.scale)


class General(Score):
    """e = h^T W y."""

    def __init__(self, width: int) -> None:
        """`width`: D of both."""
        super().__init__()
        self.weight = Linear(width, width, bias=False)
        nn.init.xavier_uniform_(self.weight.weight)

    def keys(self, memory: Tensor) -> Tensor:
        """W y."""
        projected: Tensor = self.weight(memory)
        return projected

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]."""
        return query @ key.transpose(-2, -1)


class Concat(Score):
    """e = v^T tanh(W [h; y]), where W [h; y] = W_h h + W_y y: a feed-forward network with one hidden layer."""

    def __init__(self, width: int, hidden: int | None = None) -> None:
        """`width`: D of both; `hidden`: A, the width of the hidden layer, D if not given."""
        super().__init__()
        hidden = hidden or width
        self.query = Linear(width, hidden)
        self.key = Linear(width, hidden, bias=False)
        self.v = nn.Parameter(torch.empty(hidden))
        for linear in (self.query, self.key):
            nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(self.query.bias)
        nn.init.normal_(self.v, std=1 / math.sqrt(hidden))

    def keys(self, memory: Tensor) -> Tensor:
        """W_y y."""
        projected: Tensor = self.key(memory)
        return projected

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]. Each pair has a hidden layer of its own, [.., n_q, n_k, A]."""
        return self.over(key)(query, key)

    def over(self, key: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """See `Score`."""
        fast = additive_over(key, self.v)

        def scores(query: Tensor, key: Tensor) -> Tensor:
            query = self.query(query)
            return torch.tanh(query[..., :, None, :] + key[..., None, :, :]) @ self.v if fast is None else fast(query)

        return scores
