"""A Transformer with one sentence's attention weights and deviations held: an affine function of what is written to it.

    y_t = sum_s alpha_ts V x_s + ..     the attention weights alpha are those of the sentence
    LayerNorm(x) = (x - mean(x)) / sigma * gain + bias     the deviation sigma is that of the sentence
    c_t = f_t * c_{t-1} + (1 - f_t) * W x_t,  relu(c_t)    the gates f and the open ReLUs are those of the sentence

The embeddings, and the outputs of the feed-forward sublayers, are given to this function, not computed. So every value
of it, such as a logit or the input of a sublayer, is the sum of their direct effects and of a constant (Ameisen et al.
2025, "Circuit Tracing", section 3). A direct effect passes through residual connections, norms and attention, but not
through another feed-forward sublayer. At the sentence itself, all values are those of the model.

The function is a copy of the model, which shares its weights: no equation is written here again, except that of a norm
with a given deviation. Effects come from backward passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from bitext.cancellation import between_steps
from translucid.attention.points import Handler, handling, points_of, recording
from translucid.circuits.dictionary import sublayers_of
from translucid.circuits.transcoder import Transcoder
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.models.copying import shared_copy
from translucid.models.protocol import SequenceModel
from translucid.models.transformer import BlockStacks

ROWS = 64
"""The number of targets of a backward pass."""
INPUTS = ("encoder.input", "decoder.input")
"""The points of the embedded source and of the embedded prefix."""
Leaves: TypeAlias = Mapping[str, Tensor]
"""What is given to the function by the names of points, or gradients to it: [n, P, D], P positions of a side."""


class Target(NamedTuple):
    """A value whose parts are sought: the product of a vector at a point with another vector."""

    point: str
    """The point, such as `decoder.0.feed_forward_input`."""
    place: tuple[int, ...]
    """The place of the vector at the point, without the batch: (position), or (head, position)."""
    vector: Tensor
    """[D], such as what a feature reads."""


class HeldNorm(nn.Module):
    """Layer normalization with the deviation of the first input that it sees."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        """Take the gain and the bias of a norm."""
        super().__init__()
        self.norm = norm
        self.deviation: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Map x [n, P, D]; the deviation [1, P, 1] is that of the first x."""
        if self.deviation is None:
            self.deviation = (x.var(-1, unbiased=False, keepdim=True) + self.norm.eps).sqrt()
            return self.norm(x)
        return (x - x.mean(-1, keepdim=True)) / self.deviation * self.norm.weight + self.norm.bias


def refuse_others(model: nn.Module) -> None:
    """Check that a model is a Transformer that translates.

    Raises:
        UserError: it is of another kind.
    """
    sublayers_of(model)
    if not isinstance(model, BlockStacks):
        raise UserError(f"the model is a {type(model).__name__}", fix="Graphs are for Transformers that translate.")


class HeldModel:
    """The affine function for one sentence and one target prefix."""

    def __init__(self, model: SequenceModel, source: Tensor, prefix: Tensor) -> None:
        """Compute the sentence once, and hold its attention weights, deviations and gates.

        Args:
            model: a Transformer in evaluation mode.
            source: ids [1, S], end token included.
            prefix: ids [1, T], the start token first.

        Raises:
            UserError: the model is no Transformer.
        """
        refuse_others(model)
        self.sublayers = [*sublayers_of(model)]
        self.source, self.prefix = source, prefix
        self.model, self._copy = model, _with_held_norms(model)
        self.leaf_points = [*INPUTS, *(f"{sublayer}.feed_forward" for sublayer in self.sublayers)]
        names = points_of(model)
        held = [name for name in names if name.endswith((".weights", ".ssru.forget", ".ssru.cells"))]
        inputs = [f"{sublayer}.feed_forward_input" for sublayer in self.sublayers]
        with torch.no_grad(), recording(self._copy, [*self.leaf_points, *held, *inputs, "decoder.output"]) as record:
            self._compute(self._copy, 1)
        self.states = dict(record)
        """What the model computed at the leaves, before the sublayers and before the output projection, [1, P, D]."""
        for block in (*self._copy.encoder, *self._copy.decoder):  # what it computes would be replaced anyway
            block.feed_forward = nn.Identity()
        self._held: dict[str, Handler] = {}
        for name in held:
            if name.endswith(".ssru.cells"):
                self._held |= _held_relu(name.removesuffix(".cells"), self.states[name] > 0)
            else:
                self._held[name] = _replacing(self.states[name])

    @property
    def leaves(self) -> dict[str, Tensor]:
        """What the sentence itself gives to the function, [1, P, D] each."""
        return {name: self.states[name] for name in self.leaf_points}

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the model."""
        return self.states["decoder.output"].dtype

    def values(
        self,
        points: Sequence[str],
        leaves: Leaves,
        *,
        held: bool = True,
        through: Mapping[str, Transcoder] | None = None,
    ) -> dict[str, Tensor]:
        """Return the values at points [n, ..] for other leaves; gradients flow through them.

        Args:
            points: the points, all of them in the encoder or not.
            leaves: [n, P, D], all that `leaves` has.
            held: whether attention weights, deviations and gates are held; else, the model computes them again.
            through: transcoders by sublayer, whose active features also pass on how their inputs differ from those of
                the sentence. The choice of the active features is held.
        """
        model = self._copy if held else self.model
        handlers = {name: _replacing(leaf) for name, leaf in leaves.items()} | (self._held if held else {})
        for sublayer, transcoder in (through or {}).items():
            state = self.states[f"{sublayer}.feed_forward_input"]
            leaf = leaves[f"{sublayer}.feed_forward"]
            handlers |= _passing_on(sublayer, transcoder, state, leaf)
        rows = len(next(iter(leaves.values())))
        with handling(model, handlers), recording(model, points) as record:
            self._compute(model, rows, decoder=any(not point.startswith("encoder.") for point in points))
        return dict(record)

    def gradients(
        self, targets: Sequence[Target], through: Mapping[str, Transcoder] | None = None
    ) -> dict[str, Tensor]:
        """Return the gradients of targets to all leaves, [targets, P, D]; `through` as for `values`."""
        gradients: dict[str, list[Tensor]] = {name: [] for name in self.leaf_points}
        # Targets in the encoder first, as they need no decoder.
        order = sorted(range(len(targets)), key=lambda row: not targets[row].point.startswith("encoder."))
        places = torch.empty(len(order), dtype=torch.long)
        places[order] = torch.arange(len(order))
        for batch in batched([targets[row] for row in order], ROWS):
            between_steps()
            leaves = {}
            for name, state in self.leaves.items():
                leaves[name] = state.repeat(len(batch), 1, 1).requires_grad_()
            with torch.enable_grad():
                total = self._products(batch, leaves, through).sum()
                results = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
            for (name, leaf), gradient in zip(leaves.items(), results, strict=True):
                gradients[name].append(torch.zeros_like(leaf) if gradient is None else gradient)
        empty = {name: state[:0] for name, state in self.leaves.items()}
        return {name: torch.cat(parts)[places] if parts else empty[name] for name, parts in gradients.items()}

    @torch.no_grad()
    def constants(self, targets: Sequence[Target]) -> Tensor:
        """Return what targets [targets] are when all leaves are zero: the parts of biases."""
        parts = [torch.zeros(0)]
        for batch in batched(targets, ROWS):
            leaves = {name: torch.zeros_like(state).expand(len(batch), -1, -1) for name, state in self.leaves.items()}
            parts.append(self._products(batch, leaves, None))
        return torch.cat(parts[1:] or parts)

    def _products(self, targets: Sequence[Target], leaves: Leaves, through: Mapping[str, Transcoder] | None) -> Tensor:
        """Return the value of target i in row i."""
        rows_by_point: dict[str, list[int]] = {}
        for row, target in enumerate(targets):
            rows_by_point.setdefault(target.point, []).append(row)
        values = self.values(list(rows_by_point), leaves, through=through)
        products = torch.zeros(len(targets), dtype=next(iter(leaves.values())).dtype, device=self.source.device)
        for point, rows in rows_by_point.items():
            places = torch.tensor([[row, *targets[row].place] for row in rows], device=self.source.device)
            vectors = torch.stack([targets[row].vector for row in rows])
            states = values[point][tuple(places.T)]  # [rows, D]
            products = products.index_add(0, places[:, 0], (states * vectors).sum(-1))
        return products

    def _compute(self, model: Any, rows: int, *, decoder: bool = True) -> None:
        memory = model.encode(self.source.expand(rows, -1))
        if decoder:
            model.features(memory, self.prefix.expand(rows, -1))


def _with_held_norms(model: SequenceModel) -> Any:
    """Return a copy whose norms hold their deviations; embeddings, which may have norms of their own, stay."""
    copy = shared_copy(model)
    for path, module in list(copy.named_modules()):
        if isinstance(module, nn.LayerNorm) and path.startswith(("encoder", "decoder")):
            copy.set_submodule(path, HeldNorm(module))
    return copy


def _replacing(state: Tensor) -> Handler:
    """Return a handler that puts a state, of one row or of all, in the place of whatever is there."""
    return lambda x, first: state.expand_as(x)


def _held_relu(name: str, is_open: Tensor) -> dict[str, Handler]:
    """Return handlers of an SSRU whose ReLU is open where it was open [1, T, D], whatever the cells are."""
    kept: list[Tensor] = []

    def keep(cells: Tensor, first: int) -> Tensor:
        kept[:] = [cells]
        return cells

    return {f"{name}.cells": keep, f"{name}.output": lambda x, first: (kept[0] * is_open).to(x.dtype)}


def _passing_on(sublayer: str, transcoder: Transcoder, state: Tensor, leaf: Tensor) -> dict[str, Handler]:
    """Return handlers of a sublayer that writes a leaf, and the change of the features that are active at a state."""
    active = transcoder.features(state) > 0  # [1, P, F]
    changes: list[Tensor] = []

    def read(x: Tensor, first: int) -> Tensor:
        values = transcoder.pre_activations(x) - transcoder.pre_activations(state)
        changes[:] = [(values * active) @ transcoder.decoder_weight]
        return x

    return {f"{sublayer}.feed_forward_input": read, f"{sublayer}.feed_forward": lambda x, first: leaf + changes[0]}
