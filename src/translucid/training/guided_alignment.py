"""Guided alignment: one head of the cross-attention learns word links (Garg et al. 2019, arXiv 1909.02074).

    loss = cross-entropy + w / T * sum_t sum_s -G_ts log A_ts

A [T, S] are the weights of the head, T is the number of target tokens. G are the links: the row of a linked target
piece is uniform over the source pieces that it is linked to; other rows are 0 (section 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from translucid.attention.attend import scaled_dot_product
from translucid.attention.points import points_of, recording
from translucid.data.batching import Batch
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import Configuration
from translucid.runs.guided_alignment import guided_reading
from translucid.training.objective import Loss
from translucid.training.weights import Weights

SMALLEST = 1e-9
"""Smaller weights count as this one, because Luong's local attention has weights of 0."""


class AlignmentLoss(NamedTuple):
    """Sums over the linked target pieces of a batch."""

    cross_entropy: Tensor
    """[] -sum G log A, in nats."""
    pieces: Tensor
    """[] the number of linked target pieces."""


class GuidedHead:
    """The head that learns word links."""

    def __init__(self, reading: AlignmentOptions) -> None:
        """`reading`: the reading of the head's layer and number."""
        assert reading.layer is not None and reading.head is not None
        self.attention, self.head = f"decoder.{reading.layer}.cross", reading.head

    def points(self, model: SequenceModel) -> list[str]:
        """Return the points to record.

        Recording queries and keys leaves multi-head attention on its fused path, unlike recording the weights.
        """
        names = [f"{self.attention}.queries", f"{self.attention}.keys"]
        return names if points_of(model).keys() >= set(names) else [f"{self.attention}.weights"]

    def loss(self, record: Mapping[str, Tensor], batch: Batch, mask: Tensor) -> AlignmentLoss:
        """Return the cross-entropy of the head to the links of a batch.

        Args:
            record: what the model computed at the points.
            batch: the batch, with links.
            mask: [B, S], True at source positions without padding.
        """
        assert batch.links is not None
        positions, weights = batch.links
        log_weights = self._log_weights(record, mask).flatten()  # [B T S]
        return AlignmentLoss(-(weights * log_weights.index_select(0, positions)).sum(), weights.sum())

    def _log_weights(self, record: Mapping[str, Tensor], mask: Tensor) -> Tensor:
        """Return log A [B, T, S], at least in float32."""
        if f"{self.attention}.weights" in record:
            return _exact(record[f"{self.attention}.weights"][:, self.head]).clamp(min=SMALLEST).log()
        query, key = (_exact(record[f"{self.attention}.{kind}"][:, self.head]) for kind in ("queries", "keys"))
        with torch.autocast(query.device.type, enabled=False):
            scores = scaled_dot_product(query, key)
        return scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min).log_softmax(-1)


def _exact(x: Tensor) -> Tensor:
    """Return x in float32, or in float64 if that is its type; large projections return bfloat16 in training."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def guided_head(configuration: Configuration) -> GuidedHead | None:
    """Return the head that a training with guided alignment teaches; None without guided alignment."""
    if not configuration.training.guided_alignment:
        return None
    return GuidedHead(guided_reading(configuration))


class GuidedLoss:
    """The loss of a batch, with the alignment loss of a head."""

    def __init__(self, weights: Weights, head: GuidedHead, weight: float) -> None:
        """Add `weight` times the alignment loss of a head to the loss of a model in training."""
        assert isinstance(weights.model, SequenceModel)
        self.model, self.loss_of, self.head, self.weight = weights.model, weights.loss, head, weight
        self.names = head.points(self.model)

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch."""
        with recording(self.model, self.names) as record:
            loss = self.loss_of(batch, smoothing)
        alignment = self.head.loss(record, batch, self.model.source_mask(batch.source)).cross_entropy
        return loss._replace(smoothed=loss.smoothed + self.weight * alignment)
