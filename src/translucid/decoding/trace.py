"""What a beam search considered on its way, for drawing it and for offering alternatives."""

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
    """One partial output."""

    parent: int
    """The node before it; -1 for the root."""
    token: int
    log_prob: float
    """Of the whole partial output."""
    fate: Fate
    """It was extended, it came to its end, or it lost its place to better ones."""


@dataclass
class BeamTrace:
    """The tree of one sentence's beam search: hand it to `search`, with one source, and read it afterwards."""

    nodes: list[Node] = field(default_factory=list)
    """The root, which holds the start token, is the first."""
    names: dict[int, str] = field(default_factory=dict)
    """What is shown of each token, if known."""
    best: int | None = None
    """The node that ended the output that was chosen, if known."""
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
            live: [1, K] whether it is extended.
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

    def finish(self, tokens: list[int], name: Callable[[list[int]], list[str]]) -> None:
        """Note which output was chosen, its ids with the end token, and let `name` name all tokens of the tree."""
        ended = [i for i, node in enumerate(self.nodes) if node.fate == "ended"]
        self.best = next(i for i in ended if [self.nodes[j].token for j in self.path(i)] == tokens)
        seen = list({node.token for node in self.nodes})
        self.names = dict(zip(seen, name(seen), strict=True))

    def name(self, token: int) -> str:
        """Return what is shown of a token."""
        return self.names.get(token, f"{token}")

    def _repr_html_(self) -> str:
        """Show itself in a notebook: lists to fold, each token with its probability, the chosen path in bold."""
        chosen = set(self.path(self.best)) if self.best is not None else set()
        children: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes[1:], 1):
            children.setdefault(node.parent, []).append(i)
        lines: list[str] = []
        # Not by recursion: an output may have more tokens than Python allows calls within calls.
        left: list[int | str] = [*reversed(children.get(0, []))]
        while left:
            if isinstance(item := left.pop(), str):
                lines.append(item)
                continue
            node = self.nodes[item]
            text = f"{escape(self.name(node.token))} {percent(exp(node.log_prob - self.nodes[node.parent].log_prob))}"
            text = f"<b>{text}</b>" if item in chosen else text
            text += "" if node.fate == "kept" else f" ({node.fate})"
            if below := children.get(item):
                lines.append(f"<li><details open><summary>{text}</summary><ul>")
                left += ["</ul></details></li>", *reversed(below)]
            else:
                lines.append(f"<li>{text}</li>")
        return f"<ul>{''.join(lines)}</ul>"

    def path(self, node: int) -> list[int]:
        """Return the nodes from the first token to this one."""
        path = []
        while node > 0:
            path.append(node)
            node = self.nodes[node].parent
        return path[::-1]
