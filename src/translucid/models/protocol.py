"""The few verbs that every sequence model speaks, so that one trainer, one search and one inspector serve them all.

    encode(source)                 -> Memory                `read` of the embedded source
    decode(memory, targets_in)     -> logits [B, T, V]      all positions at once, teacher-forced
    start(memory)                  -> State
    step(tokens [N], state)        -> logits [N, V], State  one token, nothing recomputed
    State.select(rows)             -> State                 reorder, repeat or drop rows

Nothing else of a model is known to `training`, `decoding` and `inspection`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

from torch import Tensor, nn

from translucid.models.model_options import ModelOptions

Maps: TypeAlias = dict[str, Tensor]
"""Attention weights by name (`encoder.0.self`, `decoder.1.cross`), each [B, H, T, S].

A dictionary handed to `encode` or `decode` is filled; asking takes the exact path instead of the fused kernels.
"""


@dataclass(frozen=True)
class Memory:
    """What the encoder hands to the decoder."""

    states: Tensor
    """[B, S, D], one vector a source position."""
    mask: Tensor
    """[B, S] boolean, True where the position may be looked at."""

    def select(self, rows: Tensor) -> Memory:
        """Return the memory of the sentences `rows` [N], an index tensor that may repeat or drop."""
        return Memory(self.states.index_select(0, rows), self.mask.index_select(0, rows))


class State(Protocol):
    """What a decoder remembers between two steps: a value, never changed behind the caller's back."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of the hypotheses `rows` [N], an index tensor that may repeat, reorder or drop."""
        ...


class SequenceModel(nn.Module, ABC):
    """An encoder and an autoregressive decoder."""

    pad: int
    """Id of the padding token, which nothing looks at."""
    bos: int
    """Id of the token that starts every target."""
    eos: int
    """Id of the token that ends every source and every target."""
    max_length: int | None
    """The longest sequence of tokens, end token included, that the model can take; None if there is no limit."""
    options: ModelOptions
    """What it was built from."""
    source_embedding: nn.Module
    """From source ids [B, S] to what the encoder reads [B, S, D]."""
    output: nn.Linear
    """From decoder features [.., D] to logits [.., V]."""

    def encode(self, source: Tensor, maps: Maps | None = None) -> Memory:
        """Read source ids [B, S], right-padded, each row ending in the end token."""
        return self.read(self.source_embedding(source), source != self.pad, maps)

    @abstractmethod
    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> Memory:
        """Read embedded sources [B, S, D]; `mask` [B, S] is False where there is padding."""

    @abstractmethod
    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the decoder's last states [B, T, D] before the output projection, teacher-forced on ids [B, T].

        `targets_in` is the target shifted right: the start token in front, no end token.
        """

    def decode(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return logits [B, T, V] for target ids [B, T], all positions at once (teacher forcing)."""
        return self.output(self.features(memory, targets_in, maps))

    def forward(self, source: Tensor, targets_in: Tensor) -> Tensor:
        """Encode and decode at once: logits [B, T, V]."""
        return self.decode(self.encode(source), targets_in)

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """Return the state before the first token, one row a sentence of the memory."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Feed one token a row [N]; return the decoder's last states [N, D] and the state that has seen it."""

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Feed one token a row [N]; return the logits of the next one [N, V] and the state that has seen it."""
        features, state = self.advance(tokens, state)
        return self.output(features), state
