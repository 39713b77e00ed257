"""Packed batches: the sentences follow each other in one row, so that all batches can have one shape and no padding.

Most of a Transformer computes every position by itself and needs nothing of this. Attention, positions and recurrences
depend on where sentences begin and end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from translucid.kernels.upload import pinned, upload


@dataclass(frozen=True)
class Sentences:
    """The sentences of a packed row of N tokens. Each token belongs to one of them, and sentences may be empty."""

    offsets: Tensor
    """[B + 1] int32, where each sentence begins, and N."""
    number: Tensor
    """[N] int64, which sentence a token belongs to."""
    position: Tensor
    """[N] int64, the position of a token in its sentence."""
    longest: int
    """No sentence has more tokens. This may be the same for all batches."""

    @classmethod
    def of(cls, lengths: Tensor, longest: int) -> Sentences:
        """Return sentences of these `lengths` [B] int64, on the CPU, each at most `longest`."""
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        number = torch.repeat_interleave(lengths)
        position = torch.arange(len(number)) - offsets[number]
        return cls(offsets.int(), number, position, longest)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape [B, T] of the padded batch: T is the longest sentence, and empty sentences at the end have no row.

        On a GPU and in a graph, all sentences have a row, and T is `longest`: the host would have to wait for these
        numbers, or each would need its own graph.
        """
        if self.position.device.type != "cpu" or torch.compiler.is_compiling():
            return len(self.offsets) - 1, self.longest
        return int(self.number[-1]) + 1, int(self.position.max()) + 1

    @property
    def cells(self) -> Tensor:
        """[N] the index of each token among the B * T cells of the padded batch."""
        return self.number * self.shape[1] + self.position

    def padded(self, x: Tensor) -> Tensor:
        """Return x [1, N, ..] with a row for each sentence [B, T, ..], 0 where a sentence has no token."""
        rows, width = self.shape
        cells = x.new_zeros(rows * width, *x.shape[2:]).index_copy(0, self.cells, x[0])
        return cells.unflatten(0, (rows, width))

    def packed(self, x: Tensor) -> Tensor:
        """Return x [B, T, ..] in one row [1, N, ..] without what `padded` added."""
        return x.flatten(0, 1).index_select(0, self.cells)[None]

    def restarted(self, vectors: Tensor | float) -> Tensor | float:
        """Return the vectors [N, D] of all tokens, given those of the positions 0 .. T - 1 [T, D], or one number."""
        return vectors.index_select(0, self.position) if isinstance(vectors, Tensor) else vectors

    def prepared(self) -> Sentences:
        """Return the sentences in pinned memory."""
        return self._copied(pinned)

    def to(self, device: torch.device | str) -> Sentences:
        """Return the sentences on a device."""
        return self._copied(lambda tensor: upload(tensor, device))

    def _copied(self, copy: Callable[[Tensor], Tensor]) -> Sentences:
        return Sentences(copy(self.offsets), copy(self.number), copy(self.position), self.longest)


class Packing(NamedTuple):
    """The sentences of both rows of a packed batch; a source and its target have the same number."""

    source: Sentences
    target: Sentences

    def prepared(self) -> Packing:
        """Return the packing in pinned memory."""
        return Packing(self.source.prepared(), self.target.prepared())

    def to(self, device: torch.device | str) -> Packing:
        """Return the packing on a device."""
        return Packing(self.source.to(device), self.target.to(device))

    def padded_indices(self, indices: Tensor) -> Tensor:
        """Return the indices [n] in flattened weights [B, T, S] of those in the weights [1, N, M] of the rows."""
        tokens = len(self.source.position)
        target, source = indices // tokens, indices % tokens
        return self.target.cells[target] * self.source.shape[1] + self.source.position[source]
