"""Networks of the package timm, by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from translucid.ground.errors import UserError, missing_package, nearest


class TimmNetwork(nn.Module):
    """One of timm's networks up to a grid of some stride, with its own way of scaling pixels."""

    mean: Tensor
    std: Tensor

    def __init__(self, name: str, stride: int) -> None:
        """Build it with fresh weights.

        Raises:
            UserError: timm is missing, or has no such network, or the network no such grid.
        """
        super().__init__()
        self.name = name
        network = _created(name, pretrained=False)
        found = [i for i, reduction in enumerate(network.feature_info.reduction()) if reduction == stride]
        if not found:
            strides = ", ".join(map(str, network.feature_info.reduction()))
            raise UserError(
                f"{name} has no grid of stride {stride}", fix=f"Set model.image_encoder.stride to one of {strides}."
            )
        self.place = found[-1]
        self.network = _created(name, pretrained=False, out_indices=(self.place,))
        self.width: int = self.network.feature_info.channels()[-1]
        for module in self.network.modules():  # running statistics are weights that no update moves
            for name, statistic in [*module.named_buffers(recurse=False)]:
                delattr(module, name)
                moved = nn.Parameter(statistic, requires_grad=False) if statistic.is_floating_point() else None
                module.register_parameter(name, moved)
        scaling = self.network.pretrained_cfg
        for name in ("mean", "std"):
            self.register_buffer(name, 255 * torch.tensor(scaling[name])[:, None, None], persistent=False)

    def load_learned(self) -> None:
        """Download the weights that timm has.

        Raises:
            UserError: they can't be had.
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
        """Stay in evaluation mode: its statistics are those that it was trained with."""
        return super().train(False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels [B, 3, height, width] uint8 in, [B, F, rows, columns] out."""
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
