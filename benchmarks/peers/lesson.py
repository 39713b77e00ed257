"""Batches as in tutorials: padded ids, all logits, PyTorch's cross-entropy with label smoothing."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from common import Pair
from torch import Tensor


def padded(rows: list[list[int]], value: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def loss(logits: Callable[[Tensor, Tensor], Tensor], batch: list[Pair], *, padding: int, first: int) -> Tensor:
    """Return the loss; `logits(source, inputs)` is the model, whose decoder reads `first` before each target."""
    source = padded([source for source, _ in batch], padding)
    labels = padded([target for _, target in batch], -100)
    inputs = padded([[first, *target[:-1]] for _, target in batch], padding)
    predictions = logits(source, inputs).flatten(0, 1)
    return F.cross_entropy(predictions, labels.flatten(), label_smoothing=0.1, ignore_index=-100)
