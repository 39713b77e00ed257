"""Batches of sentences of similar length, filled by token count, so that little of the work is padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.ground.special import SPECIAL
from translucid.kernels.loss import SoftTargets
from translucid.kernels.packing import Packing
from translucid.kernels.upload import pinned, upload


class LinkedPieces(NamedTuple):
    """The links between the pieces of a batch, as the weights [B, T, S] that an attention should have."""

    positions: Tensor
    """The indices [n] int64 of the weights that are not 0, in the flattened weights."""
    weights: Tensor
    """The weights [n] at these positions; those of a linked target piece sum to 1."""


class Batch(NamedTuple):
    """Sources with their targets: padded, with a row for each, or packed.

    A packed batch (`data/packing.py`) has one row [1, S] for all sources and one row [1, T] for all targets.
    """

    source: Tensor
    """The input of the model's `encode`. Sentences are ids [B, S] int64, right-padded; each ends in the end token."""
    targets_in: Tensor
    """The decoder's input [k B, T] int64, right-padded: the start token, then the target. Each source has k consecutive
    targets; a sentence has one."""
    labels: Tensor
    """The expected output [k B, T] int64: the target, then the end token; padding where no output is expected."""
    positions: Tensor | None = None
    """The indices [n] int64 at which the flattened `labels` are not padding; `prepared` computes them. A packed batch
    has none, because their number would be another in each batch."""
    lengths: Sequence[int] = ()
    """The number of tokens of each source sentence, on the host, where a recurrent encoder needs it; `prepared`
    computes it."""
    links: LinkedPieces | None = None
    """The word links of the pairs, for guided alignment."""
    soft_targets: SoftTargets | None = None
    """The most probable tokens of teachers at each of `positions`, for distillation; in a packed batch, at all."""
    packing: Packing | None = None
    """The sentences of a packed batch."""

    def rows(self, rows: slice) -> Batch:
        """Return some rows of a batch that has one target for each source."""
        return Batch(self.source[rows], self.targets_in[rows], self.labels[rows])

    def prepared(self) -> Batch:
        """Return the batch in pinned memory, with its positions and lengths.

        They are computed here, on the CPU: reading them from a GPU would make the program wait for it.
        """
        if self.positions is not None:
            return self
        is_ids = self.source.dim() == 2 and self.source.dtype == torch.int64 and not self.packing
        lengths = self.source.ne(SPECIAL.pad).sum(1).tolist() if is_ids else ()
        positions = None if self.packing else pinned(self.labels.flatten().ne(SPECIAL.pad).nonzero().squeeze(1))
        links = self.links and LinkedPieces(*map(pinned, self.links))
        soft = self.soft_targets and SoftTargets(*map(pinned, self.soft_targets))
        source, targets_in, labels = (pinned(side) for side in self[:3])
        packing = self.packing and self.packing.prepared()
        return Batch(source, targets_in, labels, positions, lengths, links, soft, packing)

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        source, targets_in, labels = (upload(side, device) for side in (self.source, self.targets_in, self.labels))
        positions = None if self.positions is None else upload(self.positions, device)
        links = self.links and LinkedPieces(*(upload(tensor, device) for tensor in self.links))
        soft = self.soft_targets and SoftTargets(*(upload(tensor, device) for tensor in self.soft_targets))
        packing = self.packing and self.packing.to(device)
        return Batch(source, targets_in, labels, positions, self.lengths, links, soft, packing)


def bucketed_batches(
    source_lengths: NDArray[np.integer],
    target_lengths: NDArray[np.integer],
    *,
    batch_tokens: int,
    seed: int,
    epoch: int,
    block: int = 0,
) -> list[NDArray[np.int64]]:
    """Return the batches of one pass over the corpus, as arrays of sentence indices; each index is in exactly one.

    The lengths are those of the whole corpus or, if the corpus is large, of one of its blocks.

    Pairs are sorted by length; each batch takes the next pairs while pairs x longest side <= `batch_tokens`, padding
    included (a longer pair makes a batch by itself); then the batches are shuffled. About 4 % of the cells are padding
    (Tatoeba and Multi30k, 4,096 tokens). The result depends on nothing but the arguments.
    """
    # Without the number of block 0, so that a corpus of one block keeps the batches of versions without blocks.
    entropy = [seed, epoch, block] if block else [seed, epoch]
    generator = np.random.default_rng(np.random.SeedSequence(entropy))
    longest = np.maximum(source_lengths, target_lengths)
    # The longer side decides how many pairs fit. Pairs of one length are sorted by how much longer the target is,
    # upwards and downwards in turn, so that neighbors stay similar. The noise puts a sentence into another batch in
    # each epoch.
    difference = target_lengths - source_lengths + generator.uniform(0, 2, len(longest))
    order = np.lexsort((np.where(longest % 2, difference, -difference), longest))
    longest = longest[order]
    batches, start = [], 0
    while start < len(order):
        # No batch is larger than this window: its first pair is the shortest one.
        window = longest[start : start + max(1, batch_tokens // int(longest[start]))]
        area = window * np.arange(1, len(window) + 1)  # cells of the batch that ends with each pair
        end = start + max(1, int(np.searchsorted(area, batch_tokens, side="right")))
        batches.append(order[start:end])
        start = end
    return [batches[index] for index in generator.permutation(len(batches))]


def shifted(ids: NDArray[np.integer], offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Return the decoder's input and the labels of the targets `rows` [B], as `Batch` describes them."""
    labels, is_token = padded_rows(ids, offsets[rows], offsets[rows + 1])
    targets_in = np.full_like(labels, SPECIAL.pad)
    # The decoder reads each label at the next position. The end token is the exception: nothing follows it.
    targets_in[:, 1:] = np.where(is_token[:, 1:], labels[:, :-1], SPECIAL.pad)
    targets_in[:, 0] = SPECIAL.start
    return torch.from_numpy(targets_in), torch.from_numpy(labels)


def padded_rows(
    ids: NDArray[np.integer], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the ids from `starts` [B] to `ends` [B] right-padded, [B, longest], and where they are not padding."""
    lengths = ends - starts
    columns = np.arange(lengths.max())
    is_token = columns < lengths[:, None]  # [B, longest]
    filled = np.full(is_token.shape, SPECIAL.pad, np.int64)
    filled[is_token] = ids[(starts[:, None] + columns)[is_token]]
    return filled, is_token


def batches(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Cut `order`, sentence numbers with the longest first, into batches of at most `tokens` tokens with padding."""
    start = 0
    while start < len(order):
        size = max(1, tokens // lengths[order[start]])
        yield list(order[start : start + size])
        start += size


def padded(sentences: Sequence[list[int]], pad: int) -> Tensor:
    """Return ids [B, S], padded on the right."""
    longest = max(map(len, sentences))
    rows = []
    for sentence in sentences:
        rows.append(sentence + [pad] * (longest - len(sentence)))
    return torch.tensor(rows)


class BatchedCorpus(Protocol):
    """An encoded corpus, which puts any of its rows into a batch."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tokens of the source and of the target of the rows `rows` [n]."""

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of target tokens of the rows `rows` [n]."""

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Put the rows `rows` [n] into one batch."""


@runtime_checkable
class VariedBatches(Protocol):
    """A corpus that differs in each epoch, such as by the pieces of its words."""

    def draw(self, seed: Sequence[int]) -> BatchedCorpus:
        """Return the corpus of an epoch, which `seed` determines."""
