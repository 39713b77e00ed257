"""What is given to the affine function of `linear.py`, in parts: tokens, positions, active features and errors.

    FFN(x) = sum_i f_i(x) W_d[i] + b_d + error

So the original model is decomposed, not one with transcoders in place of sublayers: the error is a part like others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from translucid.circuits.linear import INPUTS, HeldModel, Leaves, Target
from translucid.circuits.transcoder import Transcoder
from translucid.layers.embedding import Embedding

Kind: TypeAlias = Literal["token", "position", "feature", "error"]
NEAR = 1e-5
"""The relative difference at which two values are a near tie."""


@dataclass(frozen=True)
class Node:
    """A part."""

    kind: Kind
    place: str
    """A sublayer, such as `decoder.1`, or `encoder.input` or `decoder.input`."""
    position: int
    """The position in the source or in the prefix, from 0."""
    number: int = -1
    """The number of a feature."""
    activation: float = 0.0
    """The value of a feature."""

    @property
    def name(self) -> str:
        """The name of the feature, `decoder.1.feature.412`, or that of another part without its position."""
        if self.kind == "feature":
            return f"{self.place}.feature.{self.number}"
        side, _, layer = self.place.partition(".")
        return f"{side}.{self.kind}" if layer == "input" else f"{self.place}.{self.kind}"

    @property
    def side(self) -> str:
        """`encoder` or `decoder`: what the position counts."""
        return self.place.partition(".")[0]


class Parts:
    """The parts of one sentence."""

    def __init__(self, held: HeldModel, transcoders: Mapping[str, Transcoder]) -> None:
        """Decompose the embeddings, and the output of each sublayer that has a transcoder.

        What a sublayer without a transcoder writes is its error.
        """
        self.held, self.transcoders = held, transcoders
        self.nodes: list[Node] = []
        self.vectors: dict[str, tuple[Tensor, Tensor]] = {}
        """By leaf, in the order of `nodes`: the position of each node [nodes], and what it writes there [nodes, D]."""
        self.constant: dict[str, Tensor] = {}
        """By leaf: what its biases write, b_d [1, P, D]."""
        self.ties: list[tuple[str, int]] = []
        """Sublayers and positions at which the last active feature and the first inactive one are nearly tied."""
        with torch.no_grad():
            for point in INPUTS:
                self._add_embeddings(point)
            for sublayer in held.sublayers:
                self._add_sublayer(sublayer, transcoders.get(sublayer))

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    @property
    def features(self) -> list[int]:
        """The indices of nodes that are features."""
        return [index for index, node in enumerate(self.nodes) if node.kind == "feature"]

    def effects(self, gradients: Leaves) -> tuple[Tensor, Tensor]:
        """Return the effects of all nodes [targets, nodes] and of the biases b_d [targets], given gradients."""
        columns, biases = [], []
        for point, (positions, vectors) in self.vectors.items():
            gradient = gradients[point]
            columns.append(_products(gradient, positions, vectors))
            if point in self.constant:
                biases.append((gradient * self.constant[point]).sum((-1, -2)))
        zero = torch.zeros(len(columns[0]), dtype=columns[0].dtype, device=columns[0].device)
        return torch.cat(columns, 1), sum(biases, zero)

    def target(self, index: int) -> Target:
        """Return the pre-activation of a feature, without its bias, as a target."""
        node = self.nodes[index]
        vector = self.transcoders[node.place].encoder_weight[node.number].detach()
        return Target(f"{node.place}.feed_forward_input", (node.position,), vector)

    def without(self, indices: Sequence[int]) -> dict[str, Tensor]:
        """Return the leaves [1, P, D] without some nodes."""
        leaves = {name: leaf.clone() for name, leaf in self.held.leaves.items()}
        removed = set(indices)
        start = 0
        for point, (positions, vectors) in self.vectors.items():
            for row, position in enumerate(positions.tolist()):
                if start + row in removed:
                    leaves[point][0, position] -= vectors[row]
            start += len(vectors)
        return leaves

    def _add_embeddings(self, point: str) -> None:
        embedded = self.held.states[point][0]  # [P, D]
        side = point.partition(".")[0]
        positions = torch.arange(len(embedded), device=embedded.device)
        module = getattr(self.held.model, "source_embedding" if side == "encoder" else "target_embedding")
        kinds: tuple[Kind, ...] = ("token",)
        vectors = embedded
        sinusoids = module.positions(len(embedded)) if isinstance(module, Embedding) else 0.0
        if isinstance(sinusoids, Tensor):  # there are also models without positions, and vectors from elsewhere
            kinds = "token", "position"
            vectors = torch.cat([embedded - sinusoids, sinusoids])
        for kind in kinds:
            self.nodes += [Node(kind, point, position) for position in range(len(embedded))]
        self.vectors[point] = positions.repeat(len(kinds)), vectors

    def _add_sublayer(self, sublayer: str, transcoder: Transcoder | None) -> None:
        point = f"{sublayer}.feed_forward"
        output = self.held.states[point][0]  # [P, D]
        positions = torch.arange(len(output), device=output.device)
        if transcoder is None:
            self.nodes += [Node("error", sublayer, position) for position in range(len(output))]
            self.vectors[point] = positions, output
            return
        x = self.held.states[f"{sublayer}.feed_forward_input"][0]
        features = transcoder.features(x)  # [P, F]
        active = features.nonzero()
        values = features[tuple(active.T)]
        for (position, number), value in zip(active.tolist(), values.tolist(), strict=True):
            self.nodes.append(Node("feature", sublayer, position, number, value))
        self.nodes += [Node("error", sublayer, position) for position in range(len(output))]
        written = values[:, None] * transcoder.decoder_weight[active[:, 1]]
        errors = output - transcoder.decode(features)
        self.vectors[point] = torch.cat([active[:, 0], positions]), torch.cat([written, errors])
        self.constant[point] = transcoder.decoder_bias.expand(1, len(output), -1)
        self.ties += [(sublayer, position) for position in near_ties(transcoder, x)]


def _products(gradient: Tensor, positions: Tensor, vectors: Tensor) -> Tensor:
    """Return the products [n, nodes] of gradients [n, P, D] with vectors [nodes, D] at positions [nodes].

    The vectors of each position are one matrix, as copies of gradients for all nodes would take most of the time.
    """
    order = positions.argsort(stable=True)
    counts = positions.bincount(minlength=gradient.size(1))
    starts = counts.cumsum(0) - counts
    slots = torch.empty_like(positions)
    slots[order] = torch.arange(len(positions), device=positions.device) - starts[positions[order]]
    matrices = vectors.new_zeros(len(counts), int(counts.max()), vectors.size(1))  # [P, nodes of a position, D]
    matrices[positions, slots] = vectors
    products = gradient.transpose(0, 1) @ matrices.mT  # [P, n, nodes of a position]
    return products[positions, :, slots].T


def near_ties(transcoder: Transcoder, x: Tensor) -> list[int]:
    """Return the positions of inputs x [P, D] at which another feature is active if values change by 1e-5 of them."""
    values = transcoder.pre_activations(x).relu()
    if transcoder.k >= values.size(-1):
        return []
    last, next_one = values.topk(transcoder.k + 1).values[:, -2:].unbind(-1)
    tied = (last > 0) & (last - next_one <= NEAR * last)
    return tied.nonzero()[:, 0].tolist()
