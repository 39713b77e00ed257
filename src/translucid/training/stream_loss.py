"""What a language model is taught by: windows of running text, its state carried from each to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from translucid.data.batching import Batch
from translucid.models.language.model import Carried, LanguageModel
from translucid.training.objective import Loss, real_places, smoothed_loss


class StreamLoss:
    """The loss of each window, which goes on where the one before it ended.

    Gradients stop at the window's beginning (truncated backpropagation through time).
    """

    def __init__(self, model: LanguageModel[Any]) -> None:
        """Nothing has been read yet."""
        self.model = model
        self.state: Carried | None = None

    def __call__(self, window: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of the next window; with what the model is taught beyond its words."""
        model, ids = self.model, window.targets_in
        if self.state is None:
            self.state = model.begin(len(ids), ids.device)
        reading, after = model.read_on(ids, self.state)
        loss = self._asked(reading.features, window, smoothing)
        self.state = None
        if model.carries:
            # What is not a number would be carried on for ever: the next window then begins with zeros.
            finite = loss.cross_entropy.isfinite()
            self.state = after.of(tuple(torch.where(finite, part, 0) for part in after.tensors()))
        if model.training and (further := model.regularisation(reading)) is not None:
            return loss._replace(smoothed=loss.smoothed + loss.tokens * further)
        return loss

    def _asked(self, features: Tensor, window: Batch, smoothing: float) -> Loss:
        """Return the loss of features [.., D] where the labels of the window [..] ask for something."""
        places = real_places(window, self.model.pad)
        asked, features = window.labels.flatten()[places], features.flatten(0, -2).index_select(0, places)
        return smoothed_loss(features, self.model.output, asked, smoothing)

    def carried(self) -> dict[str, Tensor]:
        """Return by name what is carried to the next window."""
        return {str(i): part for i, part in enumerate(self.state.tensors())} if self.state else {}

    def carry(self, tensors: dict[str, Tensor], device: torch.device) -> None:
        """Take over what `carried` returned."""
        if tensors:
            parts = tuple(tensors[str(i)].to(device) for i in range(len(tensors)))
            self.state = type(self.model.begin(1, device)).of(parts)


def carried_by(rank: int, count: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what the process `rank` of `count` carries on after a checkpoint of any number of processes.

    Of n processes, the rows r, r + n, r + 2 n, .. are those of process r.

    Args:
        rank: of the process, from 0.
        count: of the processes there are now.
        tensors: by name, `process.{rank}.carried.{name}` and others.
    """
    before = {int(name.split(".")[1]) for name in tensors if name.startswith("process.")}
    whole: dict[str, Tensor] = {}
    for name in {name.split(".", 3)[3] for name in tensors if ".carried." in name}:
        parts = {r: part for r in before if (part := tensors.get(f"process.{r}.carried.{name}")) is not None}
        first = next(iter(parts.values()))
        whole[name] = first.new_empty(sum(map(len, parts.values())), *first.shape[1:])
        for r, part in parts.items():
            whole[name][r :: len(before)] = part
    mine = {name: tensor[rank::count] for name, tensor in whole.items()}
    return mine if all(map(len, mine.values())) else {}
