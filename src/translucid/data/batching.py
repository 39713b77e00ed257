"""Batches filled by token count from sentences of like length, so that little of the work is padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.ground.special import SPECIAL
from translucid.kernels.transfer import pinned, upload


class Batch(NamedTuple):
    """Sources and their targets side by side."""

    source: Tensor
    """What the model's `encode` takes: of sentences ids [B, S] int64, right-padded, each ending in the end token."""
    targets_in: Tensor
    """[k B, T] int64, right-padded, the start token and then the target: what the decoder is fed; k in a row for each
    source, one of sentences."""
    labels: Tensor
    """[k B, T] int64, the target and then the end token: what it is to answer; padding where nothing is asked."""
    places: Tensor | None = None
    """[n] int64, where `labels`, flattened, is not padding; see `prepared`."""
    lengths: Sequence[int] = ()
    """Of each source of ids, its tokens; on the host, where a recurrent encoder needs them. See `prepared`."""

    def rows(self, rows: slice) -> Batch:
        """Return some rows, of a batch with one target a source."""
        return Batch(self.source[rows], self.targets_in[rows], self.labels[rows])

    def prepared(self) -> Batch:
        """Return the batch with its places and lengths, which a GPU would have to be waited for, in pinned memory."""
        if self.places is not None:
            return self
        is_ids = self.source.dim() == 2 and self.source.dtype == torch.int64
        lengths = self.source.ne(SPECIAL.pad).sum(1).tolist() if is_ids else ()
        places = self.labels.flatten().ne(SPECIAL.pad).nonzero().squeeze(1)
        return Batch(pinned(self.source), pinned(self.targets_in), pinned(self.labels), pinned(places), lengths)

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        source, targets_in, labels = (upload(side, device) for side in (self.source, self.targets_in, self.labels))
        places = None if self.places is None else upload(self.places, device)
        return Batch(source, targets_in, labels, places, self.lengths)


def plan_epoch(
    source_lengths: NDArray[np.integer],
    target_lengths: NDArray[np.integer],
    *,
    batch_tokens: int,
    seed: int,
    epoch: int,
    block: int = 0,
) -> list[NDArray[np.int64]]:
    """Return the batches of one pass over the corpus, as arrays of sentence indices; each index is in exactly one.

    The lengths are those of the whole corpus or, if it is a large one, of one of its blocks.

    Pairs are sorted by length; each batch takes the next ones while pairs x longest side <= `batch_tokens`, padding
    included (a longer pair is a batch of its own); then the batches are shuffled. About 4 % of the cells are padding
    (Tatoeba and Multi30k, 4,096 tokens). A pure function of its arguments.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, epoch, *([block] if block else [])]))
    longest = np.maximum(source_lengths, target_lengths)
    # By the longer side, which decides how many fit; then by how much the target is the longer one, upwards and
    # downwards in turn, so that neighbours stay alike. The noise lets a sentence meet other company each epoch.
    difference = target_lengths - source_lengths + generator.uniform(0, 2, len(longest))
    order = np.lexsort((np.where(longest % 2, difference, -difference), longest))
    longest = longest[order]
    batches, start = [], 0
    while start < len(order):
        window = longest[start : start + max(1, batch_tokens // int(longest[start]))]
        area = window * np.arange(1, len(window) + 1)  # of a batch that ends with each pair, the longest in it
        end = start + max(1, int(np.searchsorted(area, batch_tokens, side="right")))
        batches.append(order[start:end])
        start = end
    return [batches[i] for i in generator.permutation(len(batches))]


def shifted(ids: NDArray[np.integer], offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Return the targets `rows` [B] as they are fed and as they are to be answered; see `Batch`."""
    labels, real = side_by_side(ids, offsets, rows)
    targets_in = np.full_like(labels, SPECIAL.pad)
    # A label is fed at the next position, but for the end token, which nothing follows.
    targets_in[:, 1:] = np.where(real[:, 1:], labels[:, :-1], SPECIAL.pad)
    targets_in[:, 0] = SPECIAL.start
    return torch.from_numpy(targets_in), torch.from_numpy(labels)


def side_by_side(
    ids: NDArray[np.integer], offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the sentences as a right-padded array [B, longest], and where it is not padding."""
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    columns = np.arange(lengths.max())
    real = columns < lengths[:, None]  # [B, longest]
    filled = np.full(real.shape, SPECIAL.pad, np.int64)
    filled[real] = ids[(starts[:, None] + columns)[real]]
    return filled, real


def batches(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Cut `order`, sentence numbers with the longest first, into batches of at most so many tokens with padding."""
    start = 0
    while start < len(order):
        size = max(1, tokens // lengths[order[start]])
        yield list(order[start : start + size])
        start += size


def padded(sentences: Sequence[list[int]], pad: int) -> Tensor:
    """Return ids [B, S], padded on the right."""
    longest = max(map(len, sentences))
    return torch.tensor([sentence + [pad] * (longest - len(sentence)) for sentence in sentences])
