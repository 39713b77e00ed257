"""The loss of a language model on windows of running text, with the state carried from each to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from translucid.data.batching import Batch
from translucid.models.language.model import Carried, LanguageModel
from translucid.training.objective import Loss, real_places, smoothed_loss


class StreamLoss:
    """The loss of each window, given the state after the window before it.

    Gradients stop at the beginning of a window (truncated backpropagation through time).
    """

    def __init__(self, model: LanguageModel[Any]) -> None:
        """Start without a state."""
        self.model = model
        self.state: Carried | None = None

    def __call__(self, window: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of the next window, regularisation included."""
        model, ids = self.model, window.targets_in
        if self.state is None:
            self.state = model.begin(len(ids), ids.device)
        reading, after = model.read_on(ids, self.state)
        places = real_places(window, model.pad)
        labels, features = window.labels.flatten()[places], reading.features.flatten(0, -2).index_select(0, places)
        loss = smoothed_loss(features, model.output, labels, smoothing)
        self.state = None
        if model.carries:
            # NaN would stay in the state forever, so the next window then starts from zeros.
            finite = loss.cross_entropy.isfinite()
            self.state = after.of(tuple(torch.where(finite, part, 0) for part in after.tensors()))
        regularisation = model.regularisation(reading) if model.training else None
        if regularisation is not None:  # a mean over tokens, unlike the loss, which is a sum
            return loss._replace(smoothed=loss.smoothed + loss.tokens * regularisation)
        return loss

    def carried(self) -> dict[str, Tensor]:
        """Return the tensors of the state by name, for a checkpoint."""
        return {str(index): part for index, part in enumerate(self.state.tensors())} if self.state else {}

    def carry(self, tensors: dict[str, Tensor], device: torch.device) -> None:
        """Restore the state whose tensors `carried` returned."""
        if tensors:
            parts = tuple(tensors[str(index)].to(device) for index in range(len(tensors)))
            self.state = type(self.model.begin(1, device)).of(parts)


def carried_by(rank: int, count: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the state of process `rank` of `count` from a checkpoint of any number of processes.

    With n processes, process r has the rows r, r + n, r + 2 n, ..

    Args:
        rank: the rank of the process, from 0.
        count: the current number of processes.
        tensors: the tensors of the checkpoint by name, among them `process.{rank}.carried.{name}`.
    """
    ranks = set[int]()
    parts_by_name: dict[str, dict[int, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("process."):
            _, digits, kind, *rest = name.split(".", 3)
            ranks.add(int(digits))
            if kind == "carried":
                parts_by_name.setdefault(rest[0], {})[int(digits)] = tensor
    rows: dict[str, Tensor] = {}
    for name, parts in parts_by_name.items():
        first = next(iter(parts.values()))
        whole = first.new_empty(sum(map(len, parts.values())), *first.shape[1:])
        # A process without rows has no part, but counts: its rank decides about the rows of the others.
        for old_rank, part in parts.items():
            whole[old_rank :: len(ranks)] = part
        rows[name] = whole[rank::count]
        if not len(rows[name]):  # fewer rows than processes
            return {}
    return rows
