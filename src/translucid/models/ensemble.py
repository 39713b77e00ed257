"""An ensemble of models: the probability of the next token is the mean of theirs.

    p(y_t | y_<t, x) = 1/n sum_i p_i(y_t | y_<t, x)

An ensemble is a `SequenceModel`, so every search, and forced decoding, works with it as with a single model. All models
have the same source ids and the same target vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn

from translucid.models.protocol import Memory, SequenceModel, State


@dataclass(frozen=True)
class EnsembleMemory(Memory):
    """The memories of n encoders; `states` and `mask` are those of the first."""

    parts: tuple[Memory, ...]

    def select(self, rows: Tensor) -> EnsembleMemory:
        """Select the rows in all memories."""
        return _memory([part.select(rows) for part in self.parts])

    def joined(self, others: Sequence[EnsembleMemory]) -> EnsembleMemory:
        """Join the memories of each encoder."""
        parts = zip(self.parts, *(other.parts for other in others), strict=True)
        return _memory([first.joined(rest) for first, *rest in parts])


@dataclass(frozen=True)
class EnsembleState:
    """The states of n decoders."""

    parts: tuple[State, ...]

    def select(self, rows: Tensor) -> EnsembleState:
        """Select the rows in all states."""
        return EnsembleState(tuple(part.select(rows) for part in self.parts))


class MeanOutput(nn.Module):
    """From the features of n decoders, [.., D_1 + .. + D_n], to the log of their mean probability [.., V]."""

    def __init__(self, outputs: Sequence[nn.Linear]) -> None:
        """Combine the output projections of the models."""
        super().__init__()
        self.outputs = nn.ModuleList(outputs)
        self.widths = [output.in_features for output in outputs]
        self.out_features = outputs[0].out_features

    def forward(self, features: Tensor) -> Tensor:
        """Return log-probabilities, which serve as logits: their softmax is the mean probability."""
        parts = features.split(self.widths, -1)
        log_probs = [output(part).log_softmax(-1) for output, part in zip(self.outputs, parts, strict=True)]
        return torch.stack(log_probs).logsumexp(0) - log(len(log_probs))


class Ensemble(SequenceModel[EnsembleState]):
    """The mean of several models, with the attention maps of the first. It cannot be trained."""

    def __init__(self, models: Sequence[SequenceModel]) -> None:
        """Combine models with the same vocabularies, which are in evaluation mode.

        Raises:
            ValueError: there is no model, or their target vocabularies differ in size.
        """
        outputs = [model.output for model in models]
        if len({output.out_features for output in outputs}) != 1:
            raise ValueError("the models of an ensemble need the same target vocabulary")
        super().__init__()
        self.special = models[0].special
        self.models = nn.ModuleList(models)
        self.source_embedding = nn.Identity()  # each model embeds the source itself
        self.output = MeanOutput(outputs)  # type: ignore[assignment]
        limits = [model.max_length for model in models if model.max_length]
        self.max_length = min(limits, default=None)
        self.train(models[0].training)

    @property
    def parts(self) -> list[SequenceModel]:
        """The models."""
        return list(self.models)  # type: ignore[arg-type]

    def source_mask(self, source: Tensor) -> Tensor:
        """Return the mask of the first model: all models read the same ids."""
        return self.parts[0].source_mask(source)

    def encode(self, source: Tensor, lengths: Sequence[int] = ()) -> EnsembleMemory:
        """Encode a batch of sources with every model."""
        return _memory([model.encode(source, lengths) for model in self.parts])

    def read(self, embedded: Tensor, mask: Tensor) -> EnsembleMemory:
        """Encode the sources: `source_embedding` has passed them through unchanged."""
        return self.encode(embedded)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the features of all decoders side by side [N, T, D_1 + .. + D_n]."""
        assert isinstance(memory, EnsembleMemory)
        parts = zip(self.parts, memory.parts, strict=True)
        return torch.cat([model.features(part, targets_in) for model, part in parts], -1)

    def start(self, memory: Memory) -> EnsembleState:
        """Return the states of all decoders before the first token."""
        assert isinstance(memory, EnsembleMemory)
        starts = [model.start(part) for model, part in zip(self.parts, memory.parts, strict=True)]
        return EnsembleState(tuple(starts))

    def resume(self, memory: Memory, tokens: Tensor) -> tuple[Tensor, EnsembleState]:
        """Feed a prefix [N, T] to all models; return their features side by side [N, T, D_1 + .. + D_n]."""
        assert isinstance(memory, EnsembleMemory)
        steps = [model.resume(part, tokens) for model, part in zip(self.parts, memory.parts, strict=True)]
        features, states = zip(*steps, strict=True)
        return torch.cat(features, -1), EnsembleState(states)

    def advance(self, tokens: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """Feed one token per row [N] to all models; return their features side by side [N, D_1 + .. + D_n]."""
        steps = [model.advance(tokens, part) for model, part in zip(self.parts, state.parts, strict=True)]
        features, states = zip(*steps, strict=True)
        return torch.cat(features, -1), EnsembleState(states)


def _memory(parts: Sequence[Memory]) -> EnsembleMemory:
    return EnsembleMemory(parts[0].states, parts[0].mask, tuple(parts))
