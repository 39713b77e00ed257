"""Running text as a stream that many rows read side by side, a window of tokens at a time.

The text is cut into B rows of equal length; each window goes on where the one before ended, so that a model may carry
its state from one to the next (truncated backpropagation through time).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.batching import Batch
from translucid.data.stores.text_store import EncodedTexts
from translucid.ground.special import SPECIAL

SHORTEST = 5
"""Tokens of a window, at least."""
SPREAD = 5.0
"""Standard deviation of the length of a window."""
HALVED = 0.05
"""Share of the windows that are half as long."""


class Windows(NamedTuple):
    """How the rows of one pass over a text are cut; window i is the columns ends[i] - lengths[i] .. ends[i] - 1."""

    first: int
    """Where in the text the first row begins; it ends at the text's beginning."""
    columns: int
    """Tokens of a row."""
    ends: NDArray[np.int64]
    """[windows]."""
    lengths: NDArray[np.int64]
    """[windows]."""


class Stream:
    """A text in B rows."""

    def __init__(self, texts: EncodedTexts, rows: int, window: int, *, backwards: bool = False) -> None:
        """A text with fewer than 2 B tokens has fewer rows.

        Args:
            texts: of any length.
            rows: B.
            window: tokens of a row at a time, on average.
            backwards: read from the last token to the first; start and end tokens change places.
        """
        self.texts, self.window, self.backwards = texts, window, backwards
        self.rows = max(1, min(rows, len(texts.ids) // 2))

    def straight(self) -> Windows:
        """Return windows of equal length from the beginning of the text, the last one shorter."""
        columns = -(-len(self.texts.ids) // self.rows)
        ends = np.append(np.arange(self.window, columns, self.window), columns)
        return Windows(0, columns, ends, np.diff(ends, prepend=0))

    def varied(self, seed: int, epoch: int) -> Windows:
        """Return windows of lengths drawn as by Merity et al. 2018 (arXiv 1708.02182, section 5), rows cut elsewhere.

        A length is normally distributed about `window`, or now and then about half of it, so that not always the same
        tokens stand at the end of one. A pure function of its arguments.
        """
        generator = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
        first = int(generator.integers(len(self.texts.ids)))
        columns = -(-len(self.texts.ids) // self.rows)
        count = 2 * (columns // self.window) + 10
        middle = np.where(generator.random(count) < HALVED, self.window / 2, self.window)
        lengths = np.maximum(generator.normal(middle, SPREAD).astype(np.int64), min(SHORTEST, self.window))
        ends = np.cumsum(lengths)
        ends = np.append(ends[ends < columns], columns)
        return Windows(first, columns, ends, np.diff(ends, prepend=0))

    def batch(self, windows: Windows, number: int) -> Batch:
        """Return window `number` of all rows: fed are its tokens, asked for are those after them.

        So each token is asked for once, that which a row begins with at the end of the row before, the first of all at
        the end of the last one; but nothing is asked where a text would begin, or behind the end of all text.
        """
        count, (end, length) = len(self.texts.ids), (windows.ends[number], windows.lengths[number])
        starts = windows.first + windows.columns * np.arange(self.rows)
        places = starts[:, None] + np.arange(end - length, end + 1)
        inside = places <= windows.first + count
        tokens = np.where(inside, self._at(places % count), SPECIAL.pad).astype(np.int64)
        labels = np.where(tokens[:, 1:] == SPECIAL.start, SPECIAL.pad, tokens[:, 1:])
        return Batch(nothing(len(tokens)), torch.from_numpy(tokens[:, :-1].copy()), torch.from_numpy(labels))

    def _at(self, places: NDArray[np.int64]) -> NDArray[np.integer]:
        ids = self.texts.ids
        if not self.backwards:
            return ids[places]
        tokens = ids[-1 - places]
        swapped = np.where(tokens == SPECIAL.start, SPECIAL.end, tokens)
        return np.where(tokens == SPECIAL.end, SPECIAL.start, swapped)


class BothWays(Stream):
    """A text in B rows and, beside each, a row of the same text read from its end, for models of two directions.

    A text that is read from its end has a past there as well, so the state of both goes on from window to window.
    """

    def __init__(self, texts: EncodedTexts, rows: int, window: int) -> None:
        """See `Stream`."""
        super().__init__(texts, rows, window)
        self.mirror = Stream(texts, rows, window, backwards=True)

    def batch(self, windows: Windows, number: int) -> Batch:
        """Return window `number` of all rows [B, 2, T]; see `Stream.batch`."""
        forth, back = super().batch(windows, number), self.mirror.batch(windows, number)
        fed = torch.stack([forth.targets_in, back.targets_in], 1)
        return Batch(forth.source, fed, torch.stack([forth.labels, back.labels], 1))


def stream_of(directions: int) -> type[Stream]:
    """Return the stream for a model of one direction or of two."""
    return BothWays if directions == 2 else Stream


def nothing(rows: int) -> Tensor:
    """Return the sources of a language model [B, 1]: it has none."""
    return torch.full((rows, 1), SPECIAL.end)
