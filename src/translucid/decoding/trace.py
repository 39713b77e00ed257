"""What a beam search considered on its way, for drawing it and for offering alternatives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from torch import Tensor

Fate = Literal["kept", "ended", "dropped"]


class Node(NamedTuple):
    """One partial output."""

    parent: int
    """The node before it; -1 for the root."""
    token: int
    log_prob: float
    """Of the whole partial output."""
    fate: Fate
    """It was gone on with, it came to its end, or it lost its place to better ones."""


@dataclass
class BeamTrace:
    """The tree of one sentence's beam search: hand it to `search`, with one source, and read it afterwards."""

    nodes: list[Node] = field(default_factory=list)
    """The root, which holds the start token, is the first."""
    _rows: list[int] = field(default_factory=list)
    """The node of each live row."""

    def begin(self, bos: int) -> None:
        """Plant the root."""
        self.nodes, self._rows = [Node(-1, bos, 0.0, "kept")], [0]

    def step(self, total: Tensor, parent: Tensor, token: Tensor, ends: Tensor, live: Tensor) -> None:
        """Note the candidates of a step, the likeliest first.

        Args:
            total: [1, K] their log-probabilities.
            parent: [1, K] the row that each goes on from.
            token: [1, K].
            ends: [1, K] whether it has ended and counts.
            live: [1, K] whether it is gone on with.
        """
        rows = []
        for log_prob, row, next_token, ended, alive in zip(
            *(x[0].tolist() for x in (total, parent, token, ends, live)), strict=True
        ):
            if log_prob == -float("inf"):
                continue
            fate: Fate = "ended" if ended else "kept" if alive else "dropped"
            if alive:
                rows.append(len(self.nodes))
            self.nodes.append(Node(self._rows[row], next_token, log_prob, fate))
        self._rows = rows

    def path(self, node: int) -> list[int]:
        """Return the nodes from the first token to this one."""
        path = []
        while node > 0:
            path.append(node)
            node = self.nodes[node].parent
        return path[::-1]
