"""The methods that every sequence model has, so that one trainer, one search and one inspector serve all models.

    encode(source)                 -> Memory                  `read` of the embedded source, under its mask
    features(memory, targets_in)   -> [B, T, D]               all positions at once, teacher-forced
    output                                                    from features [.., D] to logits [.., V]
    start(memory)                  -> State
    advance(tokens [N], state)     -> features [N, D], State  one token, nothing recomputed
    resume(memory, tokens [N, T])  -> features [N, T, D], State  a given prefix
    State.select(rows)             -> State                   reorder, repeat or drop rows

`decode` is `features` followed by `output`; `step` is `advance` followed by `output`. The packages `training`,
`decoding` and `inspection` use nothing else of a model.

Only the model and the code that prepares its data know what a source is: ids [B, S] for a translator, or
for instance a grid of features [B, S, F] with S cells. Two members hide the difference: `source_embedding`
maps sources to the encoder's input, and `source_mask` says which positions exist. All other code passes sources on. It
may rely on their first dimension, the number of sources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import TypeVar

from translucid.attention.tree import Tree
from translucid.ground.special import SPECIAL, SpecialTokens
from translucid.kernels.packing import Packing
from translucid.models.model_shape import ModelShape

Maps: TypeAlias = Mapping[str, Tensor]
"""Attention weights by name (`encoder.0.self`, `decoder.1.cross`), each [B, H, T, S].

`recording_weights` of `attention.points` records them. Models then take the exact path instead of the fused kernels.
"""


@dataclass(frozen=True)
class Memory:
    """The output of the encoder, which the decoder reads."""

    states: Tensor
    """[B, S, D], one vector per source position."""
    mask: Tensor
    """[B, S] boolean, True where the decoder may attend."""

    def select(self, rows: Tensor) -> Memory:
        """Return the memory of the sources `rows` [N], an index tensor that may repeat or drop sources."""
        return Memory(self.states.index_select(0, rows), self.mask.index_select(0, rows))

    def joined(self, others: Sequence[Any]) -> Memory:
        """Return the memory of these sources, followed by those of other memories of this class."""
        states, masks = list[Tensor](), list[Tensor]()
        longest = max(memory.mask.size(1) for memory in (self, *others))
        for memory in (self, *others):
            padding = longest - memory.mask.size(1)
            states.append(F.pad(memory.states, (0, 0, 0, padding)))
            masks.append(F.pad(memory.mask, (0, padding)))
        return Memory(torch.cat(states), torch.cat(masks))


class State(Protocol):
    """The state of a decoder between two steps: a value that nobody modifies in place."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of the hypotheses `rows` [N], an index tensor that may repeat, reorder or drop them."""
        ...


class TreeState(State, Protocol):
    """The state of a decoder for trees of hypotheses, in memory that is changed in place (`attention/tree.py`)."""

    @property
    def tree(self) -> Tree:
        """The trees of B sentences."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the state with a row for each of the B sentences."""

    def follow(self, after: Self, rows: Tensor) -> None:
        """Continue the hypotheses `rows` [B K] of the state after their next tokens."""


StateT = TypeVar("StateT", bound=State, default=Any)
"""The type of a model's state; code that only passes states on writes `SequenceModel` without it."""


class Model(nn.Module):
    """A model that can be trained, saved and loaded: such as a sequence model."""

    options: ModelShape
    """The options that the model was built from."""

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """Return the weights layer by layer, from the input to the output.

        Raises:
            NotImplementedError: the layers of the model have no such order.
        """
        raise NotImplementedError


class SequenceModel(Model, ABC, Generic[StateT]):
    """An encoder and an autoregressive decoder, whose state is a `StateT`."""

    special: SpecialTokens[int] = SPECIAL
    """Ids of the special tokens of targets, and of sources if those are ids."""
    max_length: int | None = None
    """The longest sequence of tokens, end token included, that the model supports; None if there is no limit."""
    source_embedding: nn.Module
    """From sources, such as ids [B, S], to the encoder's input [B, S, D]; explanations pass that to `read`."""
    output: nn.Linear
    """From decoder features [.., D] to logits [.., V]."""
    has_layer_states: ClassVar[bool] = False
    """Whether the output projection applies to the states of every layer, as in a Transformer."""
    has_trees: ClassVar[bool] = False
    """Whether the model has `start_trees`."""
    has_auxiliary_loss: bool = False
    """Whether training adds `auxiliary_loss` to the loss."""

    @property
    def pad(self) -> int:
        """The id of the padding token, which every mask hides."""
        return self.special.pad

    @property
    def bos(self) -> int:
        """The id of the token that starts every target."""
        return self.special.start

    @property
    def eos(self) -> int:
        """The id of the token that ends every target, and every source of ids."""
        return self.special.end

    def encode(self, source: Tensor, lengths: Sequence[int] = ()) -> Memory:
        """Read a batch of sources. Ids [B, S] are padded on the right, and each row ends in the end token.

        `lengths`: the number of tokens of each source of ids, if known. PyTorch's recurrent layers need the lengths on
        the host, and counting them on a GPU would make the host wait.
        """
        return self.read(self.source_embedding(source), self.source_mask(source))

    def encode_packed(self, source: Tensor, packing: Packing) -> Memory:
        """Read the sources of a packed batch [1, S]; `features` then takes its targets [1, T].

        Raises:
            NotImplementedError: the model has no packed batches.
        """
        raise NotImplementedError

    def source_mask(self, source: Tensor) -> Tensor:
        """Return a mask [B, S], True where the decoder may attend; for ids, where there is no padding."""
        return source != self.pad

    def empty_source(self) -> Tensor:
        """Return one source without content [1, ..], for a process that has no source but must take part in a step."""
        return torch.tensor([[self.eos]])

    @abstractmethod
    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        """Read embedded sources [B, S, D]; `mask` [B, S] is True where a position exists."""

    @abstractmethod
    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the decoder's last states [N, T, D] before the output projection, teacher-forced on ids [N, T].

        `targets_in` is the target shifted right: it begins with the start token and has no end token. A source
        may have several targets: k consecutive ones of the N = k B belong to the same source.
        """

    @abstractmethod
    def start(self, memory: Memory) -> StateT:
        """Return the state before the first token, one row per source of the memory."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Feed one token per row [N]; return the decoder's last states [N, D] and the state after the token."""

    def resume(self, memory: Memory, tokens: Tensor) -> tuple[Tensor, StateT]:
        """Feed a prefix [N, T], the start token first; return the features [N, T, D] and the state after it.

        Derived classes compute all positions at once where they can.
        """
        state, features = self.start(memory), []
        for token in tokens.unbind(1):
            feature, state = self.advance(token, state)
            features.append(feature)
        return torch.stack(features, 1), state

    def start_trees(self, memory: Memory, beam: int, length: int) -> Any:
        """Return the `TreeState` before the first tokens, with room for `length` positions of `beam` hypotheses.

        `advance` then takes a token for each of the B K hypotheses, and changes the memory of this state.

        Raises:
            NotImplementedError: the model has no trees.
        """
        raise NotImplementedError

    def auxiliary_loss(self, memory: Memory, labels: Tensor, maps: Maps, log_probs: Callable[[], Tensor]) -> Tensor:
        """Return a loss [] in addition to cross-entropy, summed over targets, such as a loss on attention weights.

        Args:
            memory: the memory of the B sources.
            labels: the expected tokens [k B, T].
            maps: the attention maps of `features`, with gradients.
            log_probs: a function that returns log p of the labels [k B, T], 0 at padding, without gradients.
        """
        raise NotImplementedError

    def decode(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return logits [B, T, V] for target ids [B, T], all positions at once (teacher forcing)."""
        return self.output(self.features(memory, targets_in))

    def step(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Feed one token per row [N]; return the logits of the next token [N, V] and the state after the token."""
        features, state = self.advance(tokens, state)
        return self.output(features), state

    def forward(self, source: Tensor, targets_in: Tensor) -> Tensor:
        """Encode and decode at once: logits [B, T, V]."""
        return self.decode(self.encode(source), targets_in)
