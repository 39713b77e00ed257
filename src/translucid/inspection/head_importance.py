"""The importance of attention heads (Michel et al. 2019, arXiv 1905.10650, sections 3.1, 4.1 and 4.2).

Two measures of how much a model needs a head h, both over the N sentence pairs of a corpus, with L = -log p(y | x):

    by gradient    1/N sum_n |dL_n / dg_h| at g_h = 1, one backward pass for all heads    (equation 2)
    by ablation    1/N sum_n (L_n with head h off - L_n), a forward pass for each head

The gates g_h are those of `ablation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from rich.console import RenderableType
from rich.table import Table
from torch import Tensor

from translucid.attention.points import Handler, handling
from translucid.decoding.hypothesis import percent
from translucid.decoding.maps import forced_log_probs
from translucid.decoding.pair_scores import forced_scores, paired_batches
from translucid.ground.console import table_of
from translucid.inspection.ablation import Ablation, gate_point, head_names
from translucid.inspection.inspected import AttentionShares
from translucid.models.protocol import SequenceModel

if TYPE_CHECKING:
    from translucid.inspection.ablation import Means

BATCH_TOKENS = 1024
"""The number of tokens in a batch for gradients, padding included; all logits of a batch are in memory."""


@dataclass(frozen=True)
class HeadImportance:
    """The importance of one head, in nats per sentence."""

    name: str
    """The name of the head, such as `encoder.1.self.head.2`."""
    gradient: float
    """The mean of |dL/dg| over sentences."""
    ablation: float
    """The mean increase of L with the head off; negative if the model is better without it."""


@dataclass(frozen=True)
class CurvePoint:
    """The quality of a model with some of its heads off."""

    off: int
    """The number of heads that are off."""
    score: float
    """By the metric of the report."""


@dataclass(frozen=True)
class HeadReport:
    """The importance of all heads of a model, and its BLEU or chrF with fewer and fewer of them."""

    pairs: int
    """The number of sentence pairs."""
    heads: Sequence[HeadImportance]
    curves: Mapping[str, Sequence[CurvePoint]]
    """The scores with the least important heads off, by the measure of importance: `gradient` or `ablation`."""
    metric: str = "BLEU"
    """The metric of the curves: chrF where BLEU can't distinguish translations."""
    shares: Mapping[str, AttentionShares] = field(default_factory=dict)
    """Where the attention of each head goes on these pairs, see `attention_shares`."""

    def to_json(self) -> dict[str, Any]:
        """Return all figures for programs."""
        heads = [vars(head) for head in self.heads]
        curves = {}
        for order, points in self.curves.items():
            curves[order] = [vars(point) for point in points]
        shares = {name: shares._asdict() for name, shares in self.shares.items()}
        return {"pairs": self.pairs, "heads": heads, "metric": self.metric, "curves": curves, "shares": shares}

    def render(self) -> Iterable[RenderableType]:
        """Return tables for people: the heads, the most important first; where they look; the scores with heads off."""
        table = table_of("head", figures=("gradient", "ablation"))
        for head in sorted(self.heads, key=lambda head: -head.ablation):
            table.add_row(head.name, f"{head.gradient:.3f}", f"{head.ablation:+.3f}")
        yield table
        yield f"nats per sentence, {self.pairs:,} pairs: mean |dL/dg|, and how much L grows with the head off\n"
        if self.shares:
            yield self._share_table()
            yield "the share of attention on start and end token, punctuation, language tokens and the token itself\n"
        orders = list(self.curves)
        table = table_of(figures=("heads off", "left", *(f"{self.metric} by {order}" for order in orders)))
        for points in zip(*self.curves.values(), strict=True):
            off = points[0].off
            table.add_row(str(off), str(len(self.heads) - off), *(f"{point.score:.2f}" for point in points))
        yield table
        yield "with the least important heads off, by each of the two measures"

    def _share_table(self) -> Table:
        """Return a table of where the heads of each kind of attention look, and uniform attention to the same keys."""
        table = table_of("attention", figures=("ends", "punctuation", "language", "itself", "entropy"))
        heads = [head.name for head in self.heads]
        for name in (*heads, *sorted(self.shares.keys() - set(heads))):
            shares = self.shares[name]
            label = name if name in heads else f"{name}, uniform"
            percentages = map(percent, (shares.ends, shares.punctuation, shares.language, shares.itself))
            table.add_row(label, *percentages, f"{shares.entropy:.2f}")
        return table


def gate_gradients(
    model: SequenceModel, source: Tensor, target: Tensor, maps: Mapping[str, int], prefix_length: int = 0
) -> dict[str, Tensor]:
    """Return dL_n/dg_h [B, H] for each attention by its name, for the B pairs of a batch.

    Args:
        model: the model, in evaluation mode.
        source: ids [B, S], end token included.
        target: ids [B, T], end token included.
        maps: the number of heads of each attention, by name.
        prefix_length: the number of target tokens that the model does not choose; they are left out of L.
    """
    gates: dict[str, Tensor] = {}
    handlers: dict[str, Handler] = {}
    for attention, heads in maps.items():
        # A gate for each sentence: the sum of all losses then has each sentence's own gradient.
        gate = torch.ones(len(source), heads, 1, 1, device=source.device, requires_grad=True)
        gates[attention] = gate
        handlers[gate_point(model, attention)] = lambda x, first, gate=gate: x * gate  # type: ignore[misc]
    real = target != model.pad
    real[:, :prefix_length] = False
    with torch.enable_grad(), handling(model, handlers):
        log_probs = forced_log_probs(model, model.encode(source), target)
        loss = -log_probs[real].sum()
        gradients = torch.autograd.grad(loss, list(gates.values()))
    return {name: gradient.flatten(1) for name, gradient in zip(gates, gradients, strict=True)}


def gradient_importance(
    model: SequenceModel,
    maps: Mapping[str, int],
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str,
    prefix_length: int = 0,
    on_done: Callable[[int], None] = lambda count: None,
) -> dict[str, float]:
    """Return the importance of each head by gradient, by the name of the head.

    Args:
        model: the model, in evaluation mode.
        maps: the number of heads of each attention, by name.
        pairs: ids of sources and targets, end tokens included; at least one pair.
        device: the device of the model.
        prefix_length: the number of target tokens that the model does not choose.
        on_done: called with the number of pairs after each batch.
    """
    sums = {attention: torch.zeros(heads, dtype=torch.float64) for attention, heads in maps.items()}
    for batch, source, target in paired_batches(pairs, model.pad, device, BATCH_TOKENS):
        for attention, gradients in gate_gradients(model, source, target, maps, prefix_length).items():
            sums[attention] += gradients.abs().cpu().double().sum(0)  # not every device has float64
        on_done(len(batch))
    values: list[float] = []
    for attention in maps:
        values += (sums[attention] / len(pairs)).tolist()
    return dict(zip(head_names(maps), values, strict=True))


def ablation_importance(
    model: SequenceModel,
    maps: Mapping[str, int],
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str,
    prefix_length: int = 0,
    means: Means | None = None,
    on_done: Callable[[int], None] = lambda count: None,
) -> dict[str, float]:
    """Return the importance of each head by ablation, by the name of the head.

    Args:
        model: the model, in evaluation mode.
        maps: the number of heads of each attention, by name.
        pairs: ids of sources and targets, end tokens included; at least one pair.
        device: the device of the model.
        prefix_length: the number of target tokens that the model does not choose.
        means: vectors that replace the outputs of heads, as in `Ablation`; by default they are 0.
        on_done: called with the number of pairs after each batch, for the model itself and for each head.
    """

    def loss(model: SequenceModel) -> float:
        total, _, _ = forced_scores(model, pairs, device, on_done, prefix_length)
        return total / len(pairs)

    baseline = loss(model)
    return {name: loss(Ablation((name,), means or {}).applied(model)) - baseline for name in head_names(maps)}


def least_important_first(heads: Sequence[HeadImportance]) -> dict[str, list[str]]:
    """Return the names of heads in the order of each measure of importance, by the name of the measure."""
    by_gradient = sorted(heads, key=lambda head: head.gradient)
    by_ablation = sorted(heads, key=lambda head: head.ablation)
    return {
        "gradient": [head.name for head in by_gradient],
        "ablation": [head.name for head in by_ablation],
    }
