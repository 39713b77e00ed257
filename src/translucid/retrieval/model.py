"""A model whose distribution is mixed with that of similar pairs: a `SequenceModel`, so that every search runs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from translucid.attention.points import Point, handling_points, points_of
from translucid.decoding.maps import forced_features
from translucid.models.protocol import Memory, SequenceModel, State
from translucid.retrieval.mixture import Datastore, Keys, Mixture

_POINT = re.compile(r"decoder\.\d+\.feed_forward_input")


@dataclass(frozen=True)
class RetrievalMemory(Memory):
    """The memory of the model, and the keys of the pairs that are similar to its sources."""

    part: Memory
    datastore: Datastore | None
    """None if no source has a similar pair."""

    def select(self, rows: Tensor) -> RetrievalMemory:
        """Return the memory of the sources `rows` [N]."""
        return _memory(self.part.select(rows), self.datastore and self.datastore.select(rows))

    def joined(self, others: Sequence[Any]) -> RetrievalMemory:
        """Not supported: only live translation joins memories."""
        raise NotImplementedError("live translation retrieves nothing")


@dataclass(frozen=True)
class RetrievalState:
    """The state of the model, and the source of each row."""

    part: State
    source: Tensor
    """[N], the number of the source of each row."""
    datastore: Datastore | None

    def select(self, rows: Tensor) -> RetrievalState:
        """Select the rows; the keys of all sources stay."""
        return replace(self, part=self.part.select(rows), source=self.source[rows])


class Unchanged(nn.Identity):
    """The output projection of a model whose features are logits already."""

    def __init__(self, vocabulary: int) -> None:
        """`vocabulary` V: the number of target tokens."""
        super().__init__()
        self.out_features = vocabulary


class RetrievalModel(SequenceModel[RetrievalState]):
    """A model with retrieval. Its features are log p [.., V], so that `output` is the identity."""

    def __init__(
        self, model: SequenceModel, mixture: Mixture, look_up: Callable[[Sequence[list[int]]], Datastore | None]
    ) -> None:
        """Share the weights of a model, which is in evaluation mode.

        Args:
            model: the model.
            mixture: how the distributions are mixed.
            look_up: returns the keys for sources, given by their ids with the end token.
        """
        super().__init__()
        self.model, self.mixture, self.look_up = model, mixture, look_up
        self.special, self.max_length = model.special, model.max_length
        self.source_embedding = model.source_embedding
        self.output = Unchanged(model.output.out_features)  # type: ignore[assignment]
        self.point = query_point(model)
        self.train(model.training)

    def source_mask(self, source: Tensor) -> Tensor:
        """Return the model's mask of source positions."""
        return self.model.source_mask(source)

    def encode(self, source: Tensor, lengths: Sequence[int] = ()) -> RetrievalMemory:
        """Encode sources [B, S] as the model does, and look up the keys of pairs that are similar to them."""
        rows = [[token for token in row if token != self.pad] for row in source.tolist()]
        return _memory(self.model.encode(source, lengths), self.look_up(rows))

    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        """Encode embedded sources as the model does, without retrieval: similar pairs are found by ids."""
        return _memory(self.model.read(embedded, mask), None)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return log p [N, T, V] for targets [N, T]."""
        assert isinstance(memory, RetrievalMemory)
        with reading_queries(self.point) as queries:
            features = self.model.features(memory.part, targets_in)
        targets, length = targets_in.shape
        source = torch.arange(targets, device=targets_in.device) * len(memory.mask) // targets
        states = queries[-1] if queries else features
        mixed = self._mixed(features.flatten(0, 1), states.flatten(0, 1), source.repeat_interleave(length), memory)
        return mixed.unflatten(0, (targets, length))

    def start(self, memory: Memory) -> RetrievalState:
        """Return the model's first state."""
        assert isinstance(memory, RetrievalMemory)
        source = torch.arange(len(memory.mask), device=memory.mask.device)
        return RetrievalState(self.model.start(memory.part), source, memory.datastore)

    def advance(self, tokens: Tensor, state: RetrievalState) -> tuple[Tensor, RetrievalState]:
        """Feed one token per row [N]; return log p of the next one [N, V], and the state after the token."""
        with reading_queries(self.point) as queries:
            features, part = self.model.advance(tokens, state.part)
        states = queries[-1][:, 0] if queries else features
        return self._mixed(features, states, state.source, state), replace(state, part=part)

    def shares(self, queries: Tensor, source: Tensor, datastore: Datastore) -> Tensor:
        """Return what each key adds to the probability of its token [N, n], for queries [N, D] of sources [N]."""
        return self.mixture.shares(datastore.distances(queries, source))

    def _mixed(
        self, features: Tensor, queries: Tensor, source: Tensor, place: RetrievalMemory | RetrievalState
    ) -> Tensor:
        """Return log p [N, V] for the model's features [N, D] and queries [N, D]."""
        logits: Tensor = self.model.output(features)
        datastore = place.datastore
        if datastore is None or not len(logits):
            return logits
        return self.mixture.log_probs(logits, self.shares(queries, source, datastore), datastore.tokens[source])


def _memory(part: Memory, datastore: Datastore | None) -> RetrievalMemory:
    return RetrievalMemory(part.states, part.mask, part, datastore)


def query_point(model: SequenceModel) -> Point | None:
    """Return the point whose tensor is the key of a position: the input of the decoder's last feed-forward sublayer.

    A model without such a sublayer has None: its features, such as the attentional states of a recurrent model, are
    the keys.
    """
    points = [point for name, point in points_of(model).items() if _POINT.fullmatch(name)]
    return points[-1] if points else None


@contextmanager
def reading_queries(point: Point | None) -> Iterator[list[Tensor]]:
    """Collect the tensors [N, T, D] of a point while the model runs; without a point, none."""
    queries: list[Tensor] = []
    if point is None:
        yield queries
        return

    def keep(x: Tensor, first: int) -> Tensor:
        queries.append(x)
        return x

    with handling_points({point: keep}):
        yield queries


@torch.inference_mode()
def keys_of(model: SequenceModel, source: Tensor, target: Tensor) -> list[Keys]:
    """Return the keys of pairs by teacher forcing; unknown tokens, which no output has, have none.

    Args:
        model: the model, in evaluation mode.
        source: ids [B, S], end token included.
        target: ids [B, T], end token included.
    """
    with reading_queries(query_point(model)) as queries:
        features = forced_features(model, model.encode(source), target)
    states = normalize((queries[-1] if queries else features).float(), dim=-1)
    is_token = (target != model.pad) & (target != model.special.unknown)
    return [Keys(states[i, row], target[i, row]) for i, row in enumerate(is_token)]
