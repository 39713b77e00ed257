"""A language model as a sequence model: a decoder without a source.

    p(w_1 .. w_T) = prod_t p(w_t | w_1 .. w_{t-1})

In the protocol, its source and memory are empty and a text is its target. So search and sampling generate texts, and
their `prefix` is the beginning of the text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, NamedTuple, Protocol, Self

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from translucid.models.protocol import Memory, SequenceModel, State


class CarriedState(State, Protocol):
    """A state that training carries from one window of a stream to the next, and saves in a file."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors of the state, without gradients."""
        ...

    @classmethod
    def of(cls, tensors: tuple[Tensor, ...]) -> Self:
        """Return the state with the tensors that `tensors` returned."""
        ...


CarriedStateT = TypeVar("CarriedStateT", bound=CarriedState)


class Reading(NamedTuple):
    """The states of a language model for some tokens."""

    features: Tensor
    """[B, T, D], the input of the output projection."""
    layers: list[Tensor]
    """The output of each layer before dropout, [B, T, ..], the embeddings first."""


class LanguageModel(SequenceModel[CarriedStateT]):
    """A sequence model without a source, which can continue from the state after any text."""

    carries_state: ClassVar[bool] = True
    """Whether training passes the state of one window on to the next."""
    context: int | None = None
    """The maximum number of tokens that the model attends to; None if there is no limit."""

    def __init__(self, vocabulary: int, width: int) -> None:
        """Build an empty source for `vocabulary` V and token vectors of `width` D."""
        super().__init__()
        self.source_embedding = _NoSource(width)

    @abstractmethod
    def begin(self, rows: int, device: torch.device) -> CarriedStateT:
        """Return the state before any token, for this number of rows."""

    @abstractmethod
    def read_on(self, ids: Tensor, state: CarriedStateT) -> tuple[Reading, CarriedStateT]:
        """Read tokens ids [B, T] after those of the state; return their states and the state after them."""

    def regularization(self, reading: Reading) -> Tensor | None:
        """Return a regularization loss of a window [], the mean over tokens; None if there is none."""
        return None

    def output_weights(self, embeddings: Iterable[nn.Parameter]) -> list[nn.Parameter]:
        """Return the weights of the output projection that it does not share with the embeddings."""
        shared = set(map(id, embeddings))
        return [weight for weight in self.output.parameters() if id(weight) not in shared]

    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        """Return the empty source as the memory."""
        return Memory(embedded, mask)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the features [B, T, D] of texts that begin with the start token."""
        reading, _ = self.read_on(targets_in, self.start(memory))
        return reading.features

    def start(self, memory: Memory) -> CarriedStateT:
        """Return the state before the start token."""
        return self.begin(len(memory.mask), memory.mask.device)

    def advance(self, tokens: Tensor, state: CarriedStateT) -> tuple[Tensor, CarriedStateT]:
        """Feed one token per row [N]; return the features [N, D] and the state after the token."""
        reading, state = self.read_on(tokens[:, None], state)
        return reading.features[:, 0], state


class _NoSource(nn.Module):
    """Maps ids [B, S] to zeros [B, S, D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, ids: Tensor) -> Tensor:
        return torch.zeros(*ids.shape, self.width, device=ids.device)
