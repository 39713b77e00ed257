"""The loss of a language model on windows of running text, with the state carried from each to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from translucid.data.batching import Batch
from translucid.language.model import CarriedState, LanguageModel
from translucid.training.objective import Loss, non_padding_indices, smoothed_loss


class StreamLoss:
    """The loss of each window, given the state after the window before it.

    Gradients stop at the beginning of a window (truncated backpropagation through time).
    """

    def __init__(self, model: LanguageModel[Any]) -> None:
        """Start without a state."""
        self.model = model
        self.state: CarriedState | None = None

    def __call__(self, window: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of the next window, regularization included."""
        model, ids = self.model, window.targets_in
        if self.state is None:
            self.state = model.begin(len(ids), ids.device)
        reading, next_state = model.read_on(ids, self.state)
        indices = non_padding_indices(window, model.pad)
        labels, features = window.labels.flatten()[indices], reading.features.flatten(0, -2).index_select(0, indices)
        loss = smoothed_loss(features, model.output, labels, smoothing)
        self.state = None
        if model.carries_state:
            # NaN would stay in the state forever, so the next window then starts from zeros.
            finite = loss.cross_entropy.isfinite()
            self.state = next_state.of(tuple(torch.where(finite, part, 0) for part in next_state.tensors()))
        regularization = model.regularization(reading) if model.training else None
        if regularization is not None:  # a mean over tokens, unlike the loss, which is a sum
            return loss._replace(smoothed=loss.smoothed + loss.tokens * regularization)
        return loss

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the state by name."""
        return {str(index): part for index, part in enumerate(self.state.tensors())} if self.state else {}

    def restore(self, rank: int, count: int, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore the state of process `rank` of `count` from the tensors of a checkpoint."""
        rows = state_of_process(rank, count, tensors)
        if rows:
            parts = tuple(rows[str(index)].to(device) for index in range(len(rows)))
            self.state = type(self.model.begin(1, device)).of(parts)


def state_of_process(rank: int, count: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
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
            _, digits, kind, *state_name = name.split(".", 3)
            ranks.add(int(digits))
            if kind == "carried":
                parts_by_name.setdefault(state_name[0], {})[int(digits)] = tensor
    rows: dict[str, Tensor] = {}
    for name, parts in parts_by_name.items():
        example = next(iter(parts.values()))
        all_rows = example.new_empty(sum(map(len, parts.values())), *example.shape[1:])
        # A process without rows has no part, but counts: the number of processes determines the rows of the others.
        for part_rank, part in parts.items():
            all_rows[part_rank :: len(ranks)] = part
        rows[name] = all_rows[rank::count]
        if not len(rows[name]):  # fewer rows than processes
            return {}
    return rows
