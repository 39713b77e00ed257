"""Multi-head attention (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.2)."""

import math

from torch import Tensor, nn

from translucid.attention.attend import attend, attend_fused
from translucid.attention.masks import whole_mask
from translucid.kernels.attention import SharedMask
from translucid.kernels.linear import Linear


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, .., head_H) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Keys and values are read from the same memory, so their projections are one matrix of width 2 D.
    """

    def __init__(self, width: int, heads: int) -> None:
        """Build the projections of `width` D for `heads` H.

        Raises:
            ValueError: the heads do not divide the width.
        """
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} can't be divided among {heads} heads")
        self.heads = heads
        self.query = Linear(width, width, feeds_product=True)
        self.key_value = Linear(width, 2 * width, feeds_product=True)
        self.output = Linear(width, width)
        # Glorot for each of W^Q, W^K, W^V on its own; 1/sqrt(2) as the three together fan out of one input.
        for matrix in (self.query.weight, *self.key_value.weight.chunk(2)):
            nn.init.xavier_uniform_(matrix.data, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.output.weight)
        for linear in (self.query, self.key_value, self.output):
            nn.init.zeros_(linear.bias)

    def project(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values [B, H, S, d] of a memory [B, S, D]."""
        key, value = self.key_value(memory).unflatten(-1, (2, self.heads, -1)).unbind(2)
        return key.transpose(1, 2), value.transpose(1, 2)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | SharedMask | None = None,
        *,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Let every position of x [B, T, D] look into a memory [B, S, D]; x itself for self-attention.

        Returns:
            The output [B, T, D] and, if `weights`, the attention weights [B, H, T, S].
        """
        return self.look(x, *self.project(memory), mask, causal=causal, weights=weights)

    def look(
        self,
        x: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | SharedMask | None = None,
        *,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The same with keys and values [B, H, S, d] that `project` has made before."""
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        # A projection may come in a shorter dtype than x has. Weights are shown in that of x.
        dtype = x.dtype if weights else query.dtype
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
        if weights:
            context, seen = attend(query, key, value, whole_mask(mask, query, causal))
        else:
            context, seen = attend_fused(query, key, value, mask, causal=causal), None
        return self.output(context.transpose(1, 2).flatten(2)), seen
