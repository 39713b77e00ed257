"""The few verbs that every sequence model speaks, so that one trainer, one search and one inspector serve them all.

    encode(source)                 -> Memory                  `read` of the embedded source, under its mask
    features(memory, targets_in)   -> [B, T, D]               all positions at once, teacher-forced
    output                                                    from features [.., D] to logits [.., V]
    start(memory)                  -> State
    advance(tokens [N], state)     -> features [N, D], State  one token, nothing recomputed
    State.select(rows)             -> State                   reorder, repeat or drop rows

`decode` is `features` with `output`, `step` is `advance` with `output`. Nothing else of a model is known to `training`,
`decoding` and `inspection`.

What a source is, only the model and those who feed it know: ids [B, S] for a translator; for a captioner an image, as
pixels or as a grid of features [B, S, F], one of S cells each. Two members hide the difference: `source_embedding`
makes of it what the encoder reads, `source_mask` tells which positions there are. Everyone else passes sources on, and
may ask for their number, which is their first dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeAlias

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from translucid.ground.special import SPECIAL, SpecialTokens
from translucid.models.model_options import ModelOptions

Maps: TypeAlias = dict[str, Tensor]
"""Attention weights by name (`encoder.0.self`, `decoder.1.cross`), each [B, H, T, S].

A dictionary handed to `encode` or `features` is filled; asking takes the exact path instead of the fused kernels.
"""


@dataclass(frozen=True)
class Memory:
    """What the encoder hands to the decoder."""

    states: Tensor
    """[B, S, D], one vector a source position."""
    mask: Tensor
    """[B, S] boolean, True where the position may be looked at."""

    def select(self, rows: Tensor) -> Memory:
        """Return the memory of the sources `rows` [N], an index tensor that may repeat or drop."""
        return Memory(self.states.index_select(0, rows), self.mask.index_select(0, rows))


class State(Protocol):
    """What a decoder remembers between two steps: a value, never changed behind the caller's back."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of the hypotheses `rows` [N], an index tensor that may repeat, reorder or drop."""
        ...


StateT = TypeVar("StateT", bound=State, default=Any)
"""The state that a model hands out and takes back; a plain `SequenceModel` has any, for those who only pass it on."""


class Model(nn.Module):
    """What is trained, kept and loaded: a sequence model, or a classifier of texts."""

    options: ModelOptions
    """What it was built from."""

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """Return its weights layer by layer, from those next to the input to those next to the output.

        Raises:
            NotImplementedError: it does not say which layer is above which.
        """
        raise NotImplementedError


class SequenceModel(Model, ABC, Generic[StateT]):
    """An encoder and an autoregressive decoder, whose state is a `StateT`."""

    special: SpecialTokens[int]
    """Ids of the special tokens of its targets, and of its sources if those are ids."""
    max_length: int | None = None
    """The longest sequence of tokens, end token included, that the model can take; None if there is no limit."""
    source_embedding: nn.Module
    """From sources, such as ids [B, S], to what the encoder reads [B, S, D]; explanations hand that to `read`."""
    output: nn.Linear
    """From decoder features [.., D] to logits [.., V]."""
    has_auxiliary_loss: bool = False
    """Whether training adds `auxiliary_loss` to the loss."""

    def __init__(self, special: SpecialTokens[int] = SPECIAL) -> None:
        """`special`: ids of the special tokens."""
        super().__init__()
        self.special = special

    @property
    def pad(self) -> int:
        """Id of the padding token, which nothing looks at."""
        return self.special.pad

    @property
    def bos(self) -> int:
        """Id of the token that starts every target."""
        return self.special.start

    @property
    def eos(self) -> int:
        """Id of the token that ends every target, and every source of ids."""
        return self.special.end

    def encode(self, source: Tensor, maps: Maps | None = None, lengths: Sequence[int] = ()) -> Memory:
        """Read a batch of sources; those of ids [B, S] are padded on the right, each row ends in the end token.

        `lengths`: the tokens of each source of ids, if they are known. PyTorch's recurrent layers want them on the
        host, and to count them a GPU has to be waited for.
        """
        return self.read(self.source_embedding(source), self.source_mask(source), maps)

    def source_mask(self, source: Tensor) -> Tensor:
        """Return where a batch of sources may be looked at [B, S]; of ids, where there is no padding.

        A model that reads something else says here which positions that has.
        """
        return source != self.pad

    def nothing(self) -> Tensor:
        """Return a source in which there is nothing [1, ..], for a process that has none and must go along."""
        return torch.tensor([[self.eos]])

    @abstractmethod
    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> Memory:
        """Read embedded sources [B, S, D]; `mask` [B, S] is True where they may be looked at."""

    @abstractmethod
    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the decoder's last states [N, T, D] before the output projection, teacher-forced on ids [N, T].

        `targets_in` is the target shifted right: the start token in front, no end token. A captioner takes several
        captions of an image: of N = k B targets, k in a row are of the same source.
        """

    @abstractmethod
    def start(self, memory: Memory) -> StateT:
        """Return the state before the first token, one row a source of the memory."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Feed one token a row [N]; return the decoder's last states [N, D] and the state that has seen it."""

    def auxiliary_loss(self, memory: Memory, labels: Tensor, maps: Maps, log_probs: Callable[[], Tensor]) -> Tensor:
        """Return what a batch costs beyond its words [], summed over targets, such as for where the decoder looked.

        Args:
            memory: of the B sources.
            labels: [k B, T], what is to be answered.
            maps: what `features` has filled while training, with gradients.
            log_probs: gives log p of the labels [k B, T], 0 at padding, without gradients.
        """
        raise NotImplementedError

    def decode(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return logits [B, T, V] for target ids [B, T], all positions at once (teacher forcing)."""
        return self.output(self.features(memory, targets_in, maps))

    def step(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Feed one token a row [N]; return the logits of the next one [N, V] and the state that has seen it."""
        features, state = self.advance(tokens, state)
        return self.output(features), state

    def forward(self, source: Tensor, targets_in: Tensor) -> Tensor:
        """Encode and decode at once: logits [B, T, V]."""
        return self.decode(self.encode(source), targets_in)
