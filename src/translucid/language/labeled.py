"""Texts with labels as token ids, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.data.batching import Batch, padded_rows
from translucid.data.readers.corpus import sources_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL


@dataclass(frozen=True, eq=False)
class LabeledTexts:
    """Texts with labels. Text `i` is `ids[offsets[i] : offsets[i + 1]]`, start and end token included."""

    ids: NDArray[np.int32]
    """The ids of all texts, one after the other, in the direction in which the model reads."""
    offsets: NDArray[np.int64]
    """The offset of each text in `ids`, [texts + 1]."""
    labels: NDArray[np.int64]
    """The index of each text's label in the list of labels, [texts]."""

    @classmethod
    def encode(
        cls,
        texts: Sequence[Pair],
        labels: Sequence[str],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        backwards: bool = False,
    ) -> LabeledTexts:
        """Encode texts with `text_ids`, and their labels, which must be among `labels`."""
        encoded = text_ids(sources_of(texts), tokenizer, max_tokens=max_tokens, backwards=backwards)
        ids = np.fromiter(chain.from_iterable(encoded), np.int32)
        offsets = np.cumsum([0, *map(len, encoded)])
        label_indices = {label: index for index, label in enumerate(labels)}
        return cls(ids, offsets, np.array([label_indices[text.target] for text in texts], np.int64))

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.labels)

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lengths of the texts `rows` [n] and of their labels, which are 1."""
        return self.offsets[rows + 1] - self.offsets[rows], np.ones(len(rows), np.int64)

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of labels of the texts `rows` [n]."""
        return len(rows)

    def batch(self, rows: NDArray[np.integer] | Sequence[int]) -> Batch:
        """Put the texts `rows` [B] into one batch, whose labels are indices in the list of labels [B, 1]."""
        indices = np.asarray(rows, np.int64)
        source, _ = padded_rows(self.ids, self.offsets[indices], self.offsets[indices + 1])
        labels = torch.from_numpy(self.labels[indices])[:, None]
        return Batch(torch.from_numpy(source), labels[:, :0], labels)


def text_ids(
    texts: Sequence[str], tokenizer: Tokenizer, *, max_tokens: int, backwards: bool = False
) -> list[list[int]]:
    """Encode texts in the form that a language model reads, between a start and an end token.

    A text with more than `max_tokens` keeps its last tokens, because texts tend to conclude at their end.

    Args:
        texts: the texts to encode.
        tokenizer: the tokenizer of the language model.
        max_tokens: the most tokens of a text, both special tokens included.
        backwards: whether to reverse the tokens of each text.
    """
    rows = []
    for ids in tokenizer.encode_target(list(texts)):
        last = ids[-(max_tokens - 2) :]
        if backwards:
            last.reverse()
        rows.append([SPECIAL.start, *last, SPECIAL.end])
    return rows
