"""Running text as a stream of windows for language models.

The text is cut into B rows of equal length. Each window begins where the previous one ended, so that a model can carry
its state from one window to the next (truncated backpropagation through time).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.batching import Batch
from translucid.data.stores.store import EncodedTexts
from translucid.ground.special import SPECIAL

MIN_LENGTH = 5
"""The fewest tokens of a window."""
SPREAD = 5.0
"""The standard deviation of the length of a window."""
HALF_SHARE = 0.05
"""The share of windows that are half as long."""


class Windows(NamedTuple):
    """The windows of one pass over a text; window i is the columns ends[i] - lengths[i] .. ends[i] - 1."""

    start: int
    """The offset in the text at which the first row begins; the last row continues at the beginning of the text."""
    columns: int
    """The number of tokens of a row."""
    ends: NDArray[np.int64]
    """The column after each window, [windows]."""
    lengths: NDArray[np.int64]
    """The number of tokens of each window, [windows]."""


class Stream:
    """A text in B rows."""

    def __init__(self, texts: EncodedTexts, rows: int, window: int, *, backwards: bool = False) -> None:
        """Cut a text into rows; one with fewer than 2 B tokens gets fewer rows.

        Args:
            texts: the text, of any length.
            rows: B.
            window: the average number of tokens of a window.
            backwards: whether to read from the last token to the first; start and end tokens are then exchanged.
        """
        self.texts, self.window, self.backwards = texts, window, backwards
        self.rows = max(1, min(rows, len(texts.ids) // 2))

    def equal_windows(self) -> Windows:
        """Return windows of equal length from the beginning of the text; the last one may be shorter."""
        columns = -(-len(self.texts.ids) // self.rows)
        ends = np.append(np.arange(self.window, columns, self.window), columns)
        return Windows(0, columns, ends, np.diff(ends, prepend=0))

    def random_windows(self, seed: int, epoch: int) -> Windows:
        """Return windows of random lengths (Merity et al. 2018, arXiv 1708.02182, section 5), from a random offset.

        A length is normally distributed around `window`, or sometimes around half of it, so that a window does not
        always end at the same tokens. The result depends on nothing but the arguments.
        """
        generator = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
        start = int(generator.integers(len(self.texts.ids)))
        columns = -(-len(self.texts.ids) // self.rows)
        count = 2 * (columns // self.window) + 10  # more than a row needs, as the mean length is close to `window`
        mean_lengths = np.where(generator.random(count) < HALF_SHARE, self.window / 2, self.window)
        lengths = np.maximum(generator.normal(mean_lengths, SPREAD).astype(np.int64), min(MIN_LENGTH, self.window))
        ends = np.cumsum(lengths)
        ends = np.append(ends[ends < columns], columns)
        return Windows(start, columns, ends, np.diff(ends, prepend=0))

    def batch(self, windows: Windows, number: int) -> Batch:
        """Return window `number` of all rows: its tokens are the input, the tokens after them are the labels.

        So each token is a label once: the first token of a row at the end of the row before it, the first token of all
        at the end of the last row. Start tokens, and positions after the end of the text, are not labels.
        """
        count = len(self.texts.ids)
        end, length = windows.ends[number], windows.lengths[number]
        starts = windows.start + windows.columns * np.arange(self.rows)
        positions = starts[:, None] + np.arange(end - length, end + 1)  # [B, length + 1]
        inside = positions <= windows.start + count
        tokens = np.where(inside, self._tokens_at(positions % count), SPECIAL.pad).astype(np.int64)
        labels = np.where(tokens[:, 1:] == SPECIAL.start, SPECIAL.pad, tokens[:, 1:])
        return Batch(empty_source(len(tokens)), torch.from_numpy(tokens[:, :-1].copy()), torch.from_numpy(labels))

    def _tokens_at(self, positions: NDArray[np.int64]) -> NDArray[np.integer]:
        ids = self.texts.ids
        if not self.backwards:
            return ids[positions]
        tokens = ids[-1 - positions]
        swapped = np.where(tokens == SPECIAL.start, SPECIAL.end, tokens)
        return np.where(tokens == SPECIAL.end, SPECIAL.start, swapped)


class BidirectionalStream(Stream):
    """A text in B rows, each together with a row of the same text in reverse, for bidirectional models.

    Both directions carry their state from window to window.
    """

    def __init__(self, texts: EncodedTexts, rows: int, window: int) -> None:
        """Cut a text into rows for both directions; the arguments are those of `Stream`."""
        super().__init__(texts, rows, window)
        self.mirror = Stream(texts, rows, window, backwards=True)

    def batch(self, windows: Windows, number: int) -> Batch:
        """Return window `number` of all rows and directions [B, 2, T]."""
        forward, backward = super().batch(windows, number), self.mirror.batch(windows, number)
        targets_in = torch.stack([forward.targets_in, backward.targets_in], 1)
        labels = torch.stack([forward.labels, backward.labels], 1)
        return Batch(forward.source, targets_in, labels)


def stream_of(directions: int) -> type[Stream]:
    """Return the class of stream for a model with one direction or two."""
    return BidirectionalStream if directions == 2 else Stream


def empty_source(rows: int) -> Tensor:
    """Return placeholders [B, 1] for the sources, which a language model does not have."""
    return torch.full((rows, 1), SPECIAL.end)
