"""What a recurrent decoder carries from step to step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from translucid.layers.recurrent import Cells


@dataclass(frozen=True)
class RecurrentState:
    """Cells, and what stays the same for a sentence."""

    cells: Cells
    """Each [L, N, D]."""
    memory: Tensor
    """[N, S, D], the encoder's outputs: the values of the attention."""
    keys: Tensor
    """[N, S, D], what of them the alignment score compares with the decoder's state."""
    mask: Tensor
    """[N, 1, S], where the source may be looked at."""
    sentence: Tensor
    """[N], the sentence that a row belongs to."""
    feed: Tensor | None = None
    """[N, D], with input feeding: the attentional state of the step before."""

    def select(self, rows: Tensor) -> RecurrentState:
        """Reorder, repeat or drop hypotheses."""
        moved = replace(
            self,
            cells=tuple(part.index_select(1, rows) for part in self.cells),
            feed=None if self.feed is None else self.feed.index_select(0, rows),
        )
        sentence = self.sentence.index_select(0, rows)
        # Where a beam was only reordered, each row's memory stays where it is. A GPU would have to be waited for, which
        # takes longer than to move the memory.
        if sentence.device.type == "cpu" and torch.equal(sentence, self.sentence):
            return moved
        memory = self.memory.index_select(0, rows)
        keys = memory if self.keys is self.memory else self.keys.index_select(0, rows)
        return replace(moved, memory=memory, keys=keys, mask=self.mask.index_select(0, rows), sentence=sentence)
