"""The state of a recurrent decoder, and what all models with such a decoder do with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from translucid.kernels.dropout import Dropout
from translucid.layers.embedding import Embedding
from translucid.layers.recurrent import Cells
from translucid.models.protocol import Maps, Memory, SequenceModel
from translucid.models.recurrent.encoder import RecurrentMemory

CROSS = "decoder.0.cross"
"""The name of the attention map, the weights [N, 1, T, S]."""


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


class RecurrentDecoding(SequenceModel[RecurrentState]):
    """A sequence model with a recurrent decoder; derived classes provide its parts and the encoder."""

    target_embedding: Embedding
    decoder: nn.Module
    """From embedded words [N, T, D] and a state to features [N, T, D] and the state after. If it has attention, its
    `score` computes the keys, and it fills the map `CROSS`."""
    dropout: Dropout

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the decoder's features [N, T, D] for target ids [N, T]."""
        features, _ = self.decoder(self.target_embedding(targets_in), self.start(memory), maps)
        return self.dropout(features)

    def start(self, memory: Memory) -> RecurrentState:
        """Return the decoder's first state; the keys of the attention are computed here, once for all steps."""
        assert isinstance(memory, RecurrentMemory)
        states = memory.states
        score = getattr(self.decoder, "score", None)
        keys = states if score is None else score.keys(states)
        source = torch.arange(len(states), device=states.device)
        return RecurrentState(memory.first, states, keys, memory.mask[:, None], source)

    def advance(self, tokens: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Feed one token per row [N]; return the decoder's features [N, D] and the state after the token."""
        features, state = self.decoder(self.target_embedding(tokens[:, None]), state)
        return self.dropout(features[:, 0]), state
