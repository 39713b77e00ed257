"""The networks of the package timm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from translucid.ground.errors import UserError, missing_package, nearest
from translucid.models.networks import ImageNetwork


class TimmNetwork(ImageNetwork):
    """One of timm's networks up to a grid of some stride, with the network's own scaling of pixels."""

    mean: Tensor
    std: Tensor

    def __init__(self, name: str, stride: int) -> None:
        """Build the network with fresh weights.

        Raises:
            UserError: timm is missing, it has no such network, or the network has no such grid.
        """
        super().__init__()
        self.name = name
        strides: list[int] = _created(name, pretrained=False).feature_info.reduction()
        if stride not in strides:
            available = ", ".join(map(str, strides))
            raise UserError(
                f"{name} has no grid of stride {stride}", fix=f"Set model.image_encoder.stride to one of {available}."
            )
        # The last grid of this stride, if there are several.
        self.place = len(strides) - 1 - strides[::-1].index(stride)
        self.network = _created(name, pretrained=False, out_indices=(self.place,))
        self.width: int = self.network.feature_info.channels()[-1]
        self._freeze_statistics()
        scaling = self.network.pretrained_cfg
        for statistic in ("mean", "std"):
            self.register_buffer(statistic, 255 * torch.tensor(scaling[statistic])[:, None, None], persistent=False)

    def _freeze_statistics(self) -> None:
        """Turn running statistics, which are buffers, into frozen weights, so that they are saved with the weights."""
        for module in self.network.modules():
            for name, statistic in [*module.named_buffers(recurse=False)]:
                delattr(module, name)
                # The number of batches, an integer, is needed for training only.
                frozen = nn.Parameter(statistic, requires_grad=False) if statistic.is_floating_point() else None
                module.register_parameter(name, frozen)

    def load_learned(self) -> None:
        """Download timm's pre-trained weights.

        Raises:
            UserError: the download fails.
        """
        try:
            learned = _created(self.name, pretrained=True, out_indices=(self.place,)).state_dict()
        except (OSError, RuntimeError) as error:
            fix = "Check the connection, or set model.image_encoder.network=efficientnet-lite0."
            raise UserError(f"the weights of {self.name} can't be downloaded ({error})", fix=fix) from error
        with torch.no_grad():
            for name, weight in self.network.state_dict(keep_vars=True).items():
                weight.copy_(learned[name])

    def train(self, mode: bool = True) -> TimmNetwork:
        """Stay in evaluation mode, which uses the statistics of pre-training."""
        return super().train(False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map pixels [B, 3, height, width] uint8 to the grid [B, F, rows, columns]."""
        grid: Tensor = self.network((pixels - self.mean) / self.std)[0]
        return grid


def _created(name: str, **settings: Any) -> Any:
    try:
        import timm
    except ImportError as error:
        raise missing_package(f"model.image_encoder.network=timm:{name}", "timm", "networks") from error
    if name not in timm.list_models():
        raise UserError(f"timm has no network {name!r}", fix=nearest(name, timm.list_models()))
    return timm.create_model(name, features_only=True, **settings)
