"""The state of a recurrent decoder between two steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from translucid.layers.recurrent import Cells


@dataclass(frozen=True)
class RecurrentState:
    """The recurrent states, and the parts that stay the same for a sentence."""

    cells: Cells
    """The recurrent states of all layers, each [L, N, D]."""
    memory: Tensor
    """[N, S, D], the encoder's outputs: the values of the attention."""
    keys: Tensor
    """[N, S, D], the keys of the alignment score, computed from the encoder's outputs."""
    mask: Tensor
    """[N, 1, S], True where the decoder may look."""
    sentence: Tensor
    """[N], the index of the sentence that a row belongs to."""
    feed: Tensor | None = None
    """[N, D], the attentional state of the step before, with input feeding."""

    def select(self, rows: Tensor) -> RecurrentState:
        """Return the state of the hypotheses `rows` [N], which may repeat, reorder or drop them."""
        feed = self.feed
        if feed is not None:
            feed = feed.index_select(0, rows)
        cells = tuple(part.index_select(1, rows) for part in self.cells)
        sentence = self.sentence.index_select(0, rows)
        # If a beam was only reordered, every row keeps its memory, which need not be copied. On a GPU, the host would
        # wait for this comparison longer than the copy takes.
        if sentence.device.type == "cpu" and torch.equal(sentence, self.sentence):
            return replace(self, cells=cells, feed=feed)
        memory = keys = self.memory.index_select(0, rows)
        if self.keys is not self.memory:  # a dot product compares with the encoder's outputs themselves
            keys = self.keys.index_select(0, rows)
        return RecurrentState(cells, memory, keys, self.mask.index_select(0, rows), sentence, feed)
