"""Multi-head attention (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.2)."""

import math

import torch
from torch import Tensor, nn

from translucid.attention.attend import attend, attend_fused
from translucid.attention.points import Point
from translucid.attention.tree import KeyValue, Level
from translucid.kernels.attention import Mask, PackedMask, whole_mask
from translucid.kernels.linear import Linear
from translucid.kernels.packing import Sentences


def append_to_kv_cache(kv_cache: KeyValue, key: Tensor, value: Tensor) -> KeyValue:
    """Append keys and values [N, H, T, d] to those of the t positions before: [N, H, t + T, d]."""
    return torch.cat([kv_cache[0], key], dim=2), torch.cat([kv_cache[1], value], dim=2)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, .., head_H) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Keys and values are projections of the same memory, so one matrix computes both.
    """

    def __init__(self, width: int, heads: int, name: str = "attention", head_width: int | None = None) -> None:
        """Build the projections.

        Args:
            width: D.
            heads: H.
            name: that of its points, such as `encoder.0.self`.
            head_width: d, by default D / H.

        Raises:
            ValueError: the number of heads does not divide the width.
        """
        super().__init__()
        if head_width is None and width % heads:
            raise ValueError(f"a width of {width} can't be divided among {heads} heads")
        self.heads = heads
        inner = heads * (head_width or width // heads)
        self.query = Linear(width, inner, feeds_product=True)
        self.key_value = Linear(width, 2 * inner, feeds_product=True)
        self.output = Linear(inner, width)
        # Glorot initialization for each of W^Q, W^K and W^V separately. The gain 1/sqrt(2) is that of one matrix
        # [3 D, D]: its Glorot bound is sqrt(6 / (D + 3 D)), that of a matrix [D, D] is sqrt(6 / (D + D)).
        for matrix in (self.query.weight, *self.key_value.weight.chunk(2)):
            nn.init.xavier_uniform_(matrix.data, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.output.weight)
        for linear in (self.query, self.key_value, self.output):
            nn.init.zeros_(linear.bias)
        self.at_queries, self.at_keys = Point(f"{name}.queries"), Point(f"{name}.keys")
        self.at_values, self.at_weights = Point(f"{name}.values"), Point(f"{name}.weights")
        self.at_heads, self.at_output = Point(f"{name}.heads"), Point(f"{name}.output")

    def project(self, memory: Tensor) -> KeyValue:
        """Return the keys and values [B, H, S, d] of a memory [B, S, D]."""
        key, value = self.key_value(memory).unflatten(-1, (2, self.heads, -1)).unbind(2)  # [B, S, H, d] each
        return key.transpose(1, 2), value.transpose(1, 2)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | Mask | None = None, *, causal: bool = False) -> Tensor:
        """Attend from every position of x [B, T, D] to a memory [B, S, D], which is x itself for self-attention.

        Returns:
            The output [B, T, D].
        """
        key, value = self.project(memory)
        return self.attend_heads(x, key, value, mask, causal=causal)

    def attend_heads(
        self,
        x: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | Mask | None = None,
        *,
        causal: bool = False,
        first: int = 0,
    ) -> Tensor:
        """Do the same as `forward` with keys and values [B, H, S, d] that `project` computed before.

        A search projects the memory of a sentence once, and every target token once. `first` is the position of the
        first query, for the points.
        """
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, T, D] -> [B, H, T, d]
        query, key, value = self.at_queries(query, first), self.at_keys(key), self.at_values(value)
        replacement = self.at_weights.replacement(first)
        if replacement is None:
            # Only one of the projections may be large enough to return bfloat16; kernels need one dtype.
            key, value = key.to(query.dtype), value.to(query.dtype)
            context = attend_fused(query, key, value, mask, causal=causal)
        else:  # the exact path
            # Large projections return bfloat16 in training; the weights have the dtype of x.
            query, key, value = query.to(x.dtype), key.to(x.dtype), value.to(x.dtype)
            mask = whole_mask(mask, query, causal)
            context, _ = attend(query, key, value, mask, replacement=replacement)
        context = self.at_heads(context, first)
        # Concatenate the heads: [B, H, T, d] -> [B, T, D].
        return self.at_output(self.output(context.transpose(1, 2).flatten(2)), first)

    def attend_with_kv_cache(
        self, x: Tensor, kv_cache: KeyValue | None, first: int = 0, sentences: Sentences | None = None
    ) -> tuple[Tensor, KeyValue]:
        """Compute causal self-attention at all positions x [N, T, D], or at one position x [N, 1, D] after others.

        Args:
            x: the positions.
            kv_cache: the keys and values [N, H, t, d] of earlier positions; t may be 0.
            first: the position of the first row of x, for the points.
            sentences: those of a packed row x [1, T, D].

        Returns:
            The output [N, T, D], and the keys and values of all positions so far.
        """
        key, value = self.project(x)
        if kv_cache is not None:
            key, value = append_to_kv_cache(kv_cache, key, value)
        mask = PackedMask(sentences, sentences) if sentences else None
        return self.attend_heads(x, key, value, mask, causal=kv_cache is None, first=first), (key, value)

    def attend_in_tree(self, x: Tensor, cache: KeyValue, level: Level) -> Tensor:
        """Compute self-attention of the next tokens x [B K, 1, D] of B trees with K hypotheses each.

        `cache`: the keys and values of all nodes [B, H, L K, d], among which those of x are written.

        Returns:
            The output [B K, 1, D].
        """
        queries = x.reshape(cache[0].size(0), -1, x.size(2))  # [B, K, D]
        level.write(cache, *self.project(queries))
        return self.attend_heads(queries, *cache, level.mask).view_as(x)
