"""Alignment scores of the recurrent translators: how well decoder state h and encoder output y match.

    dot      e = h^T y, or g h^T y with a learned scale g    Luong et al. 2015 (arXiv 1508.04025), equation 8
    general  e = h^T W y                                     the same
    concat   e = v^T tanh(W [h; y])                          the same, and Bahdanau et al. 2015 (arXiv 1409.0473), A.1.2

Each score maps queries [.., n_q, D] and keys [.., n_k, D] to scores [.., n_q, n_k]. The keys are the part of the score
that depends on the encoder outputs alone; the method `keys` computes them once for a sentence.
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
    """An alignment score: an argument of `attend`."""

    @abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """Return the keys [.., n_k, D] of encoder outputs [.., n_k, D]."""

    def over(self, key: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Return a function that computes the scores of one query after another for these keys.

        A score overrides this if a further part of it depends on the keys alone.
        """
        return self

    @abstractmethod
    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]."""


class Dot(Score):
    """e = g h^T y, where g is 1 or learned."""

    def __init__(self, *, scaled: bool = False, initial_scale: float = 1.0) -> None:
        """Build the score; if `scaled`, g is learned and its initial value is `initial_scale`."""
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(initial_scale)) if scaled else None

    def keys(self, memory: Tensor) -> Tensor:
        """Return the encoder outputs unchanged."""
        return memory

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]."""
        scale = 1.0 if self.scale is None else self.scale
        return scaled_dot_product(query, key, scale)


class General(Score):
    """e = h^T W y."""

    def __init__(self, width: int) -> None:
        """Build W [D, D] for states and encoder outputs of `width` D."""
        super().__init__()
        self.weight = Linear(width, width, bias=False)
        nn.init.xavier_uniform_(self.weight.weight)

    def keys(self, memory: Tensor) -> Tensor:
        """Return W y, so that a score is one dot product."""
        return self.weight(memory)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]."""
        return query @ key.transpose(-2, -1)


class Concat(Score):
    """e = v^T tanh(W [h; y]), where W [h; y] = W_h h + W_y y: a feed-forward network with one hidden layer."""

    def __init__(self, width: int, hidden: int | None = None) -> None:
        """Build fresh weights.

        Args:
            width: D, the width of states and encoder outputs.
            hidden: A, the width of the hidden layer; D by default.
        """
        super().__init__()
        hidden = hidden or width
        self.query = Linear(width, hidden)
        self.key = Linear(width, hidden, bias=False)
        self.v = nn.Parameter(torch.empty(hidden))
        for linear in (self.query, self.key):
            nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(self.query.bias)
        # The score is a sum of A terms v_a tanh(..) with |tanh| < 1, so its variance is below 1 at first.
        nn.init.normal_(self.v, std=1 / math.sqrt(hidden))

    def keys(self, memory: Tensor) -> Tensor:
        """Return W_y y [.., n_k, A], the part of the hidden layer that depends on the encoder outputs."""
        return self.key(memory)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Return scores [.., n_q, n_k]."""
        return self.over(key)(query, key)

    def over(self, key: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the score as a function; a kernel prepares the keys once where it can."""
        fast = additive_over(key, self.v)

        def scores(query: Tensor, key: Tensor) -> Tensor:
            query = self.query(query)  # W_h h [.., n_q, A]
            if fast is not None:
                return fast(query)
            # Every pair of a query and a key has its own hidden layer: [.., n_q, n_k, A].
            return torch.tanh(query[..., :, None, :] + key[..., None, :, :]) @ self.v

        return scores
