"""Quantization-aware training, `training.quantized_weights`: the model computes with rounded weights."""

from __future__ import annotations

from contextlib import AbstractContextManager

from translucid.layers.quantized import quantized_weights
from translucid.models.protocol import Model
from translucid.training.extras.training_step import TrainingStep


class QuantizedWeights(TrainingStep):
    """Rounds the weights for each update and validation; their gradients change the exact weights."""

    def computing(self, model: Model) -> AbstractContextManager[None]:
        """Return a context in which the weights are rounded."""
        return quantized_weights(model)
