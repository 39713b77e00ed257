"""The tree of the partial outputs that a beam search has considered, for figures and for alternatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from math import exp
from typing import Literal, NamedTuple

from torch import Tensor

from translucid.decoding.hypothesis import percent

Fate = Literal["kept", "ended", "dropped"]


class Node(NamedTuple):
    """One partial output in the tree."""

    parent: int
    """The node before it; -1 for the root."""
    token: int
    log_prob: float
    """The log-probability of the whole partial output."""
    fate: Fate
    """Whether it was extended, has ended, or was dropped in favor of better ones."""


@dataclass
class BeamTrace:
    """The tree of the beam search for one source, which `search` fills."""

    nodes: list[Node] = field(default_factory=list)
    """The nodes of the tree; the first one is the root, which has the start token."""
    names: dict[int, str] = field(default_factory=dict)
    """The text to show for each token, if it is known."""
    best: int | None = None
    """The last node of the best output, if it is known."""
    _rows: list[int] = field(default_factory=list)
    """The node of each live row."""

    def begin(self, bos: int) -> None:
        """Start the tree with its root."""
        self.nodes, self._rows = [Node(-1, bos, 0.0, "kept")], [0]

    def step(self, total: Tensor, parent: Tensor, token: Tensor, ends: Tensor, live: Tensor) -> None:
        """Add the candidates of a step, the most probable first.

        Args:
            total: [1, K] the log-probabilities of the candidates.
            parent: [1, K] the row that each extends.
            token: [1, K] the last token of each.
            ends: [1, K] boolean, whether it has ended and counts.
            live: [1, K] boolean, whether it is extended.
        """
        rows = []
        columns = [column[0].tolist() for column in (total, parent, token, ends, live)]
        for log_prob, row, next_token, ended, alive in zip(*columns, strict=True):
            if log_prob == -float("inf"):  # fewer than K candidates
                continue
            fate: Fate = "dropped"
            if ended:
                fate = "ended"
            elif alive:
                fate = "kept"
            if alive:
                rows.append(len(self.nodes))
            self.nodes.append(Node(self._rows[row], next_token, log_prob, fate))
        self._rows = rows

    def finish(self, tokens: list[int], name: Callable[[list[int]], list[str]]) -> None:
        """Find the best output, given its ids with the end token, and name all tokens of the tree by `name`."""
        ended = [i for i, node in enumerate(self.nodes) if node.fate == "ended"]
        self.best = next(i for i in ended if self.tokens(i) == tokens)
        distinct = list({node.token for node in self.nodes})
        self.names = dict(zip(distinct, name(distinct), strict=True))

    def name(self, token: int) -> str:
        """Return the text to show for a token."""
        return self.names.get(token, f"{token}")

    def _repr_html_(self) -> str:
        """Show the tree in a notebook as nested lists, each token with its probability, the best output in bold."""
        best_path = set(self.path(self.best)) if self.best is not None else set()
        # The items of the nodes below each node, from the last node to the first, which follows its parent.
        children = [""] * (len(self.nodes) + 1)
        for i in range(len(self.nodes) - 1, 0, -1):
            node = self.nodes[i]
            text = f"{escape(self.name(node.token))} {percent(exp(node.log_prob - self.nodes[node.parent].log_prob))}"
            if i in best_path:
                text = f"<b>{text}</b>"
            if node.fate != "kept":
                text += f" ({node.fate})"
            if children[i]:
                text = f"<details open><summary>{text}</summary><ul>{children[i]}</ul></details>"
            children[node.parent] = f"<li>{text}</li>{children[node.parent]}"
        return f"<ul>{children[0]}</ul>"

    def tokens(self, node: int) -> list[int]:
        """Return the tokens from the first one to that of a node."""
        return [self.nodes[i].token for i in self.path(node)]

    def path(self, node: int) -> list[int]:
        """Return the nodes from the first token to this one."""
        path = []
        while node > 0:
            path.append(node)
            node = self.nodes[node].parent
        return path[::-1]
