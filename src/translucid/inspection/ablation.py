"""Attention heads that are switched off (Michel et al. 2019, arXiv 1905.10650; Voita et al. 2019, arXiv 1905.09418).

    MultiHead(x, q) = sum_h g_h Attention_h(x, q)

The gate g_h of a head is 1; it is 0 if the head is off. Alternatively, the mean of the head's output over a corpus
replaces its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from translucid.attention.points import Handler
    from translucid.models.model_shape import ModelShape
    from translucid.models.protocol import SequenceModel

    Means = Mapping[str, Tensor]

BATCH_TOKENS = 4096
"""The number of tokens in a batch, padding included."""


def head_names(maps: Mapping[str, int]) -> list[str]:
    """Return the names of all heads, such as `encoder.1.self.head.2`.

    `maps`: the number of heads of each of the model's attention maps, by name.
    """
    names = []
    for attention, heads in maps.items():
        names += [f"{attention}.head.{number}" for number in range(heads)]
    return names


def refuse_unknown_heads(heads: Iterable[str], maps: Mapping[str, int]) -> None:
    """Check that a model has heads with these names; `maps` as for `head_names`.

    Raises:
        UserError: it has no attention, or no such head.
    """
    model_heads = head_names(maps)
    for name in heads:
        if not model_heads:
            raise UserError(f"there is no head {name!r}", fix="The model has no attention, so no head can be off.")
        if name not in model_heads:
            raise UserError(f"there is no head {name!r}", fix=nearest(name, model_heads))


@dataclass(frozen=True)
class Ablation:
    """Heads that are off, an `Intervention`."""

    heads: tuple[str, ...]
    """Their names, such as `encoder.1.self.head.2`."""
    means: Means = field(default_factory=dict)
    """The vectors [d] that replace the outputs of heads, by name; zeros replace those of others."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The names of the heads, each once and in order; a command gives no means."""
        return tuple(sorted(set(self.heads)))

    def check(self, shape: ModelShape) -> None:
        """Check that a model has these heads; errors are those of `refuse_unknown_heads`."""
        refuse_unknown_heads(self.heads, shape.maps)

    def applied(self, model: SequenceModel) -> SequenceModel:
        """Return a copy of a model, which shares its weights, with these heads off."""
        from translucid.models.copying import with_handlers

        numbers: dict[str, list[int]] = {}
        for name in self.heads:
            attention, _, number = name.rpartition(".head.")
            numbers.setdefault(attention, []).append(int(number))
        handlers = {}
        for attention, heads in numbers.items():
            values = [self.means.get(f"{attention}.head.{head}") for head in heads]
            handlers[gate_point(model, attention)] = replace_heads(heads, values)
        return with_handlers(model, handlers)


def gate_point(model: SequenceModel, attention: str) -> str:
    """Return the name of the point [N, H, T, ..] at which the heads of an attention can be switched off.

    It is that of the heads' outputs. Attention without projections, such as that of recurrent models, has none: there,
    the weights decide, as the output without weights is 0.
    """
    from translucid.attention.points import points_of

    outputs = f"{attention}.heads"
    return outputs if outputs in points_of(model) else f"{attention}.weights"


def replace_heads(heads: Sequence[int], values: Sequence[Tensor | None]) -> Handler:
    """Return a handler that replaces the outputs [N, T, d] of some heads by vectors [d], or by zeros without one."""

    def handle(x: Tensor, first: int) -> Tensor:
        x = x.clone()
        for head, value in zip(heads, values, strict=True):
            if value is None:
                x[:, head] = 0
            else:
                x[:, head] = value.to(x)
        return x

    return handle


def mean_outputs(
    model: SequenceModel,
    heads: Sequence[str],
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str,
) -> dict[str, Tensor]:
    """Return the mean output [d] of each head over all positions of pairs, by forced decoding.

    Args:
        model: the model, in evaluation mode.
        heads: names of heads.
        pairs: ids of sources and targets, end tokens included.
        device: the device of the model.

    Raises:
        UserError: there are no pairs, or the heads of the model have no outputs of their own.
    """
    import torch

    from translucid.attention.points import points_of, recording
    from translucid.decoding.maps import forced_features
    from translucid.decoding.pair_scores import paired_batches

    attentions = sorted({name.rpartition(".head.")[0] for name in heads})
    points = [f"{attention}.heads" for attention in attentions]
    if not set(points) <= set(points_of(model)):
        raise UserError("the heads of this model have no mean output", fix="Replace them by 0.")
    if not pairs:
        raise UserError("there are no pairs to compute the mean of a head", fix="Give some.")
    sums: dict[str, Tensor | float] = dict.fromkeys(points, 0.0)
    counts = dict.fromkeys(points, 0)
    with torch.inference_mode():
        for _, source, target in paired_batches(pairs, model.pad, device, BATCH_TOKENS):
            with recording(model, points) as record:
                forced_features(model, model.encode(source), target)
            for point in points:
                ids = source if point.startswith("encoder.") else target
                rows = record[point].transpose(1, 2)[ids != model.pad]  # [N, H, T, d] -> [n, H, d] without padding
                sums[point] = sums[point] + rows.cpu().double().sum(0)  # not every device has float64
                counts[point] += len(rows)
    means = {}
    for name in heads:
        attention, _, number = name.rpartition(".head.")
        point = f"{attention}.heads"
        head_means = torch.as_tensor(sums[point]) / counts[point]  # [H, d]
        means[name] = head_means[int(number)].float()
    return means
