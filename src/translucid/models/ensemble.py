"""Several models that write together: at each step the next token has the mean of their probabilities.

    p(y_t | y_<t, x) = 1/n sum_i p_i(y_t | y_<t, x)

It speaks the protocol, so any search, and forced decoding, works with it as with a single model. All models read the
same ids and write the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn

from translucid.models.protocol import Maps, Memory, SequenceModel, State


@dataclass(frozen=True)
class EnsembleMemory(Memory):
    """What each of n encoders hands to its decoder; `states` are those of the first."""

    parts: tuple[Memory, ...]

    def select(self, rows: Tensor) -> EnsembleMemory:
        """See `Memory`."""
        return _memory([part.select(rows) for part in self.parts])


@dataclass(frozen=True)
class EnsembleState:
    """The state of each decoder."""

    parts: tuple[State, ...]

    def select(self, rows: Tensor) -> EnsembleState:
        """See `State`."""
        return EnsembleState(tuple(part.select(rows) for part in self.parts))


class MeanOutput(nn.Module):
    """From the features of n decoders side by side [.., D_1 + .. + D_n] to their mean probability's log [.., V]."""

    def __init__(self, outputs: Sequence[nn.Linear]) -> None:
        """`outputs`: each model's own."""
        super().__init__()
        self.outputs = nn.ModuleList(outputs)
        self.widths = [output.in_features for output in outputs]
        self.out_features = outputs[0].out_features

    def forward(self, features: Tensor) -> Tensor:
        """Return log-probabilities, which are logits as good as any."""
        parts = features.split(self.widths, -1)
        log_probs = [output(part).log_softmax(-1) for output, part in zip(self.outputs, parts, strict=True)]
        return torch.stack(log_probs).logsumexp(0) - log(len(log_probs))


class Ensemble(SequenceModel[EnsembleState]):
    """The mean of several models. Attention maps are those of the first one. It is not for training."""

    def __init__(self, models: Sequence[SequenceModel]) -> None:
        """`models`: of the same vocabularies, in evaluation mode.

        Raises:
            ValueError: there is none, or they write vocabularies of different sizes.
        """
        if len({model.output.out_features for model in models}) != 1:
            raise ValueError("an ensemble is of models that write one vocabulary")
        super().__init__(models[0].special)
        self.models = nn.ModuleList(models)
        self.source_embedding = nn.Identity()  # each model embeds for itself
        self.output = MeanOutput([model.output for model in models])  # type: ignore[assignment]
        self.max_length = min((model.max_length for model in models if model.max_length), default=None)
        self.train(models[0].training)

    @property
    def parts(self) -> list[SequenceModel]:
        """The models."""
        return list(self.models)  # type: ignore[arg-type]

    def source_mask(self, source: Tensor) -> Tensor:
        """See `SequenceModel`."""
        return self.parts[0].source_mask(source)

    def encode(self, source: Tensor, maps: Maps | None = None, lengths: Sequence[int] = ()) -> EnsembleMemory:
        """See `SequenceModel`."""
        first, *others = self.parts
        memories = [first.encode(source, maps, lengths), *(model.encode(source, None, lengths) for model in others)]
        return _memory(memories)

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> EnsembleMemory:
        """See `SequenceModel`; what is read are the sources themselves."""
        return self.encode(embedded, maps)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the features of all decoders side by side [N, T, D_1 + .. + D_n]."""
        assert isinstance(memory, EnsembleMemory)
        (first, own), *others = zip(self.parts, memory.parts, strict=True)
        found = [first.features(own, targets_in, maps), *(model.features(m, targets_in) for model, m in others)]
        return torch.cat(found, -1)

    def start(self, memory: Memory) -> EnsembleState:
        """See `SequenceModel`."""
        assert isinstance(memory, EnsembleMemory)
        starts = (model.start(part) for model, part in zip(self.parts, memory.parts, strict=True))
        return EnsembleState(tuple(starts))

    def advance(self, tokens: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """Feed one token a row [N] to all; return their features side by side [N, D_1 + .. + D_n]."""
        steps = [model.advance(tokens, part) for model, part in zip(self.parts, state.parts, strict=True)]
        features, states = zip(*steps, strict=True)
        return torch.cat(features, -1), EnsembleState(states)


def _memory(parts: Sequence[Memory]) -> EnsembleMemory:
    return EnsembleMemory(parts[0].states, parts[0].mask, tuple(parts))
