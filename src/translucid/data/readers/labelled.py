"""Texts with labels as token ids, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.data.batching import Batch, side_by_side
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Text `i` is `ids[offsets[i] : offsets[i + 1]]`, start and end token included, in the order that it is read."""

    ids: NDArray[np.int32]
    """All texts, one after the other."""
    offsets: NDArray[np.int64]
    """[texts + 1], where each begins."""
    labels: NDArray[np.int64]
    """[texts], places in the list of labels."""

    @classmethod
    def encode(
        cls,
        texts: Sequence[Pair],
        labels: Sequence[str],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        backwards: bool = False,
    ) -> LabelledTexts:
        """Encode texts and their labels, which must be among `labels`; see `text_ids`."""
        found = text_ids([text.source for text in texts], tokenizer, max_tokens=max_tokens, backwards=backwards)
        ids = np.fromiter(chain.from_iterable(found), np.int32)
        offsets = np.cumsum([0, *map(len, found)])
        places = {label: place for place, label in enumerate(labels)}
        return cls(ids, offsets, np.array([places[text.target] for text in texts], np.int64))

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.labels)

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lengths of the texts `rows` [n], and 1 for each label."""
        return self.offsets[rows + 1] - self.offsets[rows], np.ones(len(rows), np.int64)

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of labels of the texts `rows` [n]."""
        return len(rows)

    def batch(self, rows: NDArray[np.integer] | Sequence[int]) -> Batch:
        """Put the texts `rows` [B] into one batch, whose labels are places in the list of labels [B, 1]."""
        chosen = np.asarray(rows, np.int64)
        source, _ = side_by_side(self.ids, self.offsets, chosen)
        labels = torch.from_numpy(self.labels[chosen])[:, None]
        return Batch(torch.from_numpy(source), labels[:, :0], labels)


def text_ids(
    texts: Sequence[str], tokenizer: Tokenizer, *, max_tokens: int, backwards: bool = False
) -> list[list[int]]:
    """Encode texts as a language model meets them, between a start and an end token.

    Of a text with more than `max_tokens`, the last ones are kept: what a text comes to is said at its end.

    Args:
        texts: any.
        tokenizer: its own.
        max_tokens: of a text, both special tokens included.
        backwards: each from its last token to its first.
    """
    found = (ids[-(max_tokens - 2) :] for ids in tokenizer.encode_target(list(texts)))
    order = -1 if backwards else 1
    return [[SPECIAL.start, *ids[::order], SPECIAL.end] for ids in found]
