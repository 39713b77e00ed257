"""Vectors of words from their characters (Kim et al. 2016, arXiv 1508.06615; Jozefowicz et al. 2016, 1602.02410)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from translucid.ground.special import SPECIAL
from translucid.kernels.linear import Linear

BEGIN, END, SPECIALS = 257, 258, 259
"""Ids of the marks at both ends of a word, and of the first special token; 0 is padding, 1 .. 256 are bytes."""
IDS = SPECIALS + len(SPECIAL)
LONGEST = 50
"""Characters of a word, both marks included; what is longer is cut."""
SPACE = "▁"


class Characters(nn.Module):
    """x = P highway(highway(y)), where y has, of each filter, the most that it finds anywhere in the word.

        y_f = max_t relu(b_f + sum_{i < n} w_{f,i} . c_{t+i}),    n the filter's length
        highway(y) = g * relu(W y + b) + (1 - g) * y,    g = sigmoid(V y + a)    (Srivastava et al. 2015)

    c are the vectors of the word's characters, its bytes in UTF-8 between two marks. What is read are the pieces of a
    vocabulary, each a word here; of a vocabulary of whole words they are the words.
    """

    table: Tensor

    def __init__(self, pieces: Sequence[str], filters: Sequence[int], width: int, *, character: int = 16) -> None:
        """Build fresh weights.

        Args:
            pieces: the vocabulary as it is written, the special tokens first.
            filters: how many there are of length 1, of length 2, and so on.
            width: D of the vectors that come out.
            character: the width of c.
        """
        super().__init__()
        self.register_buffer("table", spelled(pieces, len(filters)), persistent=False)
        self.characters = nn.Embedding(IDS, character, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(character, count, n) for n, count in enumerate(filters, 1))
        self.highways = nn.Sequential(*(Highway(sum(filters)) for _ in range(2)))
        self.projection = Linear(sum(filters), width)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """[..] -> [.., D]; on a CPU each word is spelled once, however often it is there."""
        if ids.device.type == "cpu":
            distinct, places = ids.unique(return_inverse=True)
        else:  # how many there are a GPU would have to be waited for
            distinct, places = ids.flatten(), torch.arange(ids.numel(), device=ids.device).view_as(ids)
        return nn.functional.embedding(places, self.vectors(self.table[distinct].long()))

    def vectors(self, spelling: Tensor) -> Tensor:
        """Spellings [W, longest] become vectors [W, D]."""
        c = self.characters(spelling).transpose(1, 2)  # [W, C, longest]
        y = torch.cat([filters(c).amax(-1) for filters in self.filters], -1).relu()  # relu and max may change places
        x: Tensor = self.projection(self.highways(y))
        return x


class Highway(nn.Module):
    """g * relu(W y + b) + (1 - g) * y, which begins by letting most of y through."""

    def __init__(self, width: int) -> None:
        """`width`: of y."""
        super().__init__()
        self.change, self.gate = Linear(width, width), Linear(width, width)
        for linear in (self.change, self.gate):
            nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(self.change.bias)
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, y: Tensor) -> Tensor:
        """[W, F] -> [W, F]."""
        g = self.gate(y).sigmoid()
        return g * self.change(y).relu() + (1 - g) * y


def spelled(pieces: Sequence[str], shortest: int = 1) -> Tensor:
    """Return the characters of each piece [V, longest], padded on the right to `shortest` at least.

    SentencePiece's space is one, and a special token is a character of its own.
    """
    middles: list[Sequence[int]] = [[SPECIALS + number] for number in range(len(SPECIAL))]
    for piece in pieces[len(SPECIAL) :]:
        middles.append([1 + byte for byte in piece.replace(SPACE, " ").encode("utf-8", "replace")][: LONGEST - 2])
    ends = np.cumsum([0, *(len(middle) + 2 for middle in middles)])
    table = np.zeros((len(middles), max(shortest, int(np.diff(ends).max()))), np.int16)
    for row, middle, (start, end) in zip(table, middles, pairwise(ends), strict=True):
        row[: end - start] = [BEGIN, *middle, END]
    return torch.from_numpy(table)
