"""Word vectors computed from characters (Kim et al. 2016, arXiv 1508.06615; Jozefowicz et al. 2016, 1602.02410)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from translucid.ground.special import SPECIAL
from translucid.kernels.linear import Linear

BEGIN, END, SPECIALS = 257, 258, 259
"""Ids of the marks at both ends of a word and of the first special token; 0 is padding, 1 .. 256 are bytes."""
IDS = SPECIALS + len(SPECIAL)
"""The number of character ids."""
LONGEST = 50
"""The maximum length of a word in characters, both marks included; longer words are truncated."""
SPACE = "▁"
"""SentencePiece's symbol for a space."""


class Characters(nn.Module):
    """x = P highway(highway(y)), where y_f is the maximum of filter f over the positions of the word.

        y_f = max_t relu(b_f + sum_{i < n} w_{f,i} . c_{t+i}),    n the filter's length
        highway(y) = g * relu(W y + b) + (1 - g) * y,    g = sigmoid(V y + a)    (Srivastava et al. 2015)

    c are the vectors of the word's characters: its UTF-8 bytes between two marks. Every piece of the vocabulary counts
    as a word.
    """

    table: Tensor

    def __init__(self, pieces: Sequence[str], filters: Sequence[int], width: int, *, character_width: int = 16) -> None:
        """Build fresh weights.

        Args:
            pieces: the vocabulary as text, the special tokens first.
            filters: the number of filters of length 1, of length 2, and so on.
            width: D, the width of the word vectors.
            character_width: the width of a character vector c.
        """
        super().__init__()
        filter_count = sum(filters)
        self.register_buffer("table", spelled(pieces, len(filters)), persistent=False)
        self.characters = nn.Embedding(IDS, character_width, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(character_width, count, n) for n, count in enumerate(filters, 1))
        self.highways = nn.Sequential(Highway(filter_count), Highway(filter_count))
        self.projection = Linear(filter_count, width)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids [..] as vectors [.., D]."""
        if ids.device.type == "cpu":
            # A batch repeats its frequent words; compute the vector of each distinct word once.
            distinct, indices = ids.unique(return_inverse=True)
        else:
            # The number of distinct words is known only after the GPU has computed it, and waiting costs more.
            distinct, indices = ids.flatten(), torch.arange(ids.numel(), device=ids.device).view_as(ids)
        return nn.functional.embedding(indices, self.vectors(self.table[distinct].long()))

    def vectors(self, spelling: Tensor) -> Tensor:
        """Compute the vectors [W, D] of words from their character ids [W, longest]."""
        c = self.characters(spelling).transpose(1, 2)  # [W, C, longest]
        maxima = [filters(c).amax(-1) for filters in self.filters]  # [W, number of filters of this length] each
        # relu is monotonic, so max relu(..) = relu(max ..), and relu of the maxima is cheaper.
        y = torch.cat(maxima, -1).relu()
        return self.projection(self.highways(y))


class Highway(nn.Module):
    """g * relu(W y + b) + (1 - g) * y."""

    def __init__(self, width: int) -> None:
        """Build fresh weights for vectors y of this width."""
        super().__init__()
        self.change, self.gate = Linear(width, width), Linear(width, width)
        for linear in (self.change, self.gate):
            nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(self.change.bias)
        # A negative bias keeps g below one half at first, so that most of y passes unchanged.
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, y: Tensor) -> Tensor:
        """Map y [W, F] to [W, F]."""
        g = self.gate(y).sigmoid()
        return g * self.change(y).relu() + (1 - g) * y


def spelled(pieces: Sequence[str], shortest: int = 1) -> Tensor:
    """Return the character ids of each piece [V, longest], padded on the right to a length of `shortest` or more.

    SentencePiece's symbol for a space becomes a space. A special token is one character with its own id.
    """
    middles: list[Sequence[int]] = [[SPECIALS + number] for number in range(len(SPECIAL))]
    for piece in pieces[len(SPECIAL) :]:
        spelling = piece.replace(SPACE, " ").encode("utf-8", "replace")[: LONGEST - 2]
        middles.append([1 + byte for byte in spelling])  # 0 is padding
    longest = 2 + max(map(len, middles))
    table = np.zeros((len(middles), max(shortest, longest)), np.int16)
    for row, middle in zip(table, middles, strict=True):
        row[: len(middle) + 2] = [BEGIN, *middle, END]
    return torch.from_numpy(table)
