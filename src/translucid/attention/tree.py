"""Self-attention over the tree of a beam search, whose hypotheses share the keys and values of their common beginnings.

The K hypotheses of a sentence are paths in a tree. Its nodes at position l are the l-th tokens of all K, so a tree with
room for L positions has L K nodes, and each node has a key and a value, in memory of fixed size. A token attends to its
ancestors and itself:

    Attention(q_k, K, V) over the nodes n with ancestors[k, n]

When a search continues some hypotheses and drops others, only the K rows of `ancestors` change. Keys and values stay
where they are, and all shapes are the same at every position, which is a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from translucid.kernels.attention import Mask, share_mask

KeyValue: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values [B, H, S, d]."""


@dataclass(frozen=True)
class Level:
    """The nodes of a tree at one position."""

    position: Tensor
    """[1] int64."""
    nodes: Tensor
    """[K] int64, their indices among the L K nodes."""
    mask: Mask
    """[B, 1, K, L K], True where a token may attend: at its ancestors and itself."""
    length: int
    """L, the number of positions that the tree has room for."""

    def vector_of(self, vectors: Tensor | float) -> Tensor | float:
        """Return the vector [1, D] of this position, given those of the positions 0 .. L - 1 [L, D], or one number."""
        return vectors.index_select(0, self.position) if isinstance(vectors, Tensor) else vectors

    def write(self, cache: KeyValue, key: Tensor, value: Tensor) -> None:
        """Write the keys and values [B, H, K, d] of the nodes into those of the tree [B, H, L K, d]."""
        for memory, new in zip(cache, (key, value), strict=True):
            memory.index_copy_(2, self.nodes, new.to(memory.dtype))


@dataclass(frozen=True)
class Tree:
    """The trees of B sentences, changed in place."""

    position: Tensor
    """[1] int64, the number of tokens that each hypothesis has."""
    ancestors: Tensor
    """[B, K, L, K] boolean, True for the tokens of each hypothesis."""

    @classmethod
    def begin(cls, sentences: int, beam: int, length: int, device: torch.device) -> Tree:
        """Return trees of B `sentences` without tokens, with room for `length` L positions of `beam` K hypotheses."""
        ancestors = torch.zeros(sentences, beam, length, beam, dtype=torch.bool, device=device)
        return cls(torch.zeros(1, dtype=torch.long, device=device), ancestors)

    def grow(self) -> Level:
        """Add a token to every hypothesis; return the new level."""
        sentences, beam, length, _ = self.ancestors.shape
        identity = torch.eye(beam, dtype=torch.bool, device=self.position.device)[None, :, None]
        self.ancestors.index_copy_(2, self.position, identity.expand(sentences, beam, 1, beam))
        nodes = self.position * beam + torch.arange(beam, device=self.position.device)
        return Level(self.position, nodes, share_mask(self.ancestors.flatten(2)[:, None]), length)

    def follow(self, rows: Tensor) -> None:
        """Continue the hypotheses `rows` [B K], indices into all B K, in this order; go to the next position."""
        self.ancestors.copy_(self.ancestors.flatten(0, 1).index_select(0, rows).view_as(self.ancestors))
        self.position.add_(1)
