"""What training minimises: the loss of a batch, teacher-forced."""

from __future__ import annotations

import torch

from translucid.data.batching import Batch
from translucid.models.protocol import SequenceModel
from translucid.training.cross_entropy import Loss, chunked_loss, plain_loss
from translucid.training.r_drop import chunked_r_drop, plain_r_drop


def batch_loss(model: SequenceModel, batch: Batch, smoothing: float = 0.0, r_drop: float = 0.0) -> Loss:
    """Return the loss of a batch at its real target positions only.

    `smoothing` and `r_drop` are `label_smoothing` and `r_drop` of `TrainingOptions`.
    """
    passes = 2 if r_drop else 1  # in one go: each row has its own dropout
    source, targets_in = (torch.cat([ids] * passes) for ids in (batch.source, batch.targets_in))
    features = model.features(model.encode(source), targets_in).flatten(0, 1)
    labels = batch.labels.flatten()
    real = (labels != model.pad).nonzero().squeeze(1)
    first, *second = (part.index_select(0, real) for part in features.chunk(passes))
    labels = labels.index_select(0, real)
    on_cpu = features.device.type == "cpu"
    if second:
        apart = chunked_r_drop if on_cpu else plain_r_drop
        return apart(first, second[0], model.output, labels, smoothing, r_drop)
    alone = chunked_loss if on_cpu else plain_loss
    return alone(first, model.output, labels, smoothing)
