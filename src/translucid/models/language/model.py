"""A language model as a sequence model: a decoder that is told of no source.

    p(w_1 .. w_T) = prod_t p(w_t | w_1 .. w_{t-1})

In the protocol its source is nothing, its memory is empty, and a text is its target; so searches and sampling write
texts, and `prefix` is what is written already.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple, Protocol, Self

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from translucid.models.protocol import Maps, Memory, SequenceModel, State


class Carried(State, Protocol):
    """A state that can be kept from one window of a stream to the next, and in a file."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all that it holds, without gradients."""
        ...

    @classmethod
    def of(cls, tensors: tuple[Tensor, ...]) -> Self:
        """Return the state that holds what `tensors` returned."""
        ...


CarriedT = TypeVar("CarriedT", bound=Carried)


class Reading(NamedTuple):
    """What has become of some tokens."""

    features: Tensor
    """[B, T, D], what the output projection is given."""
    layers: list[Tensor]
    """[B, T, ..] of each layer, the embeddings first, before the dropout on it."""


class LanguageModel(SequenceModel[CarriedT]):
    """Writes tokens, and reads on from a state that it is handed."""

    carries: ClassVar[bool] = True
    """Whether the state of one window is of use in the next one while training."""
    context: int | None = None
    """Tokens that it looks back over at most; None if there is no end to it."""

    def __init__(self, vocabulary: int, width: int) -> None:
        """`vocabulary`: V; `width`: D of the tokens' vectors."""
        super().__init__()
        self.source_embedding = _Nothing(width)

    @abstractmethod
    def begin(self, rows: int, device: torch.device) -> CarriedT:
        """Return the state of so many rows before any token."""

    @abstractmethod
    def read_on(self, ids: Tensor, state: CarriedT) -> tuple[Reading, CarriedT]:
        """Read tokens ids [B, T] after those that the state has seen; return what they become, and the state after."""

    def regularisation(self, reading: Reading) -> Tensor | None:
        """Return what a window costs beyond its words [], the mean over tokens; None if nothing."""
        return None

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> Memory:
        """Remember that there is nothing."""
        return Memory(embedded, mask)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the features [B, T, D] of texts that begin with the start token."""
        return self.read_on(targets_in, self.start(memory))[0].features

    def start(self, memory: Memory) -> CarriedT:
        """Return the state before the start token."""
        return self.begin(len(memory.mask), memory.mask.device)

    def advance(self, tokens: Tensor, state: CarriedT) -> tuple[Tensor, CarriedT]:
        """Feed one token a row [N]: the features [N, D] and the state after it."""
        reading, state = self.read_on(tokens[:, None], state)
        return reading.features[:, 0], state


class _Nothing(nn.Module):
    """Ids [B, S] become zeros [B, S, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, ids: Tensor) -> Tensor:
        return torch.zeros(*ids.shape, self.width, device=ids.device)
