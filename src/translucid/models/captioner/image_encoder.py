"""The image encoder: from an image to a grid of cells that a decoder attends to."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from translucid.kernels.dropout import Dropout
from translucid.kernels.linear import Linear
from translucid.layers.positions import grid_positions
from translucid.models.captioner_options import CaptioningShape
from translucid.models.networks import image_network


class ImageEncoder(nn.Module):
    """a_i = Dropout(W LayerNorm(cell_i) + P_i), the annotation vectors of Xu et al. 2015, section 3.1.1.

    A batch of images comes as pixels [B, height, width, 3] uint8, or as the grids [B, S, F] that the network has made
    of them before. S cells stand one row after the other.
    """

    positions: Tensor | None

    def __init__(self, options: CaptioningShape, width: int, dropout: float) -> None:
        """`width`: D of the cells."""
        super().__init__()
        image_encoder = options.image_encoder
        self.side = image_encoder.side
        self.network, channels = image_network(image_encoder)
        if image_encoder.frozen:
            self.network.requires_grad_(False)
        self.norm = nn.LayerNorm(channels)
        self.project = Linear(channels, width)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        if options.positions == "learned":
            self.positions = nn.Parameter(torch.empty(image_encoder.side**2, width))
            nn.init.normal_(self.positions, std=0.5**0.5)
        else:
            table = (
                grid_positions(image_encoder.side, image_encoder.side, width)
                if options.positions == "sinusoidal"
                else None
            )
            self.register_buffer("positions", table, persistent=False)
        self.dropout = Dropout(dropout)

    def look(self, pixels: Tensor) -> Tensor:
        """Return the grids [B, S, F] that the network makes of pixels [B, height, width, 3] uint8."""
        return self.network(pixels.movedim(3, 1)).flatten(2).transpose(1, 2)

    @torch.inference_mode()
    def grids(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return what `look` makes of pixels [B, height, width, 3], to be kept: [B, S, F]."""
        source = torch.from_numpy(pixels).to(self.project.weight.device)
        grids: NDArray[np.float32] = self.look(source).float().cpu().numpy()
        return grids

    def forward(self, source: Tensor) -> Tensor:
        """Pixels or grids in, cells [B, S, D] out."""
        grid = self.look(source) if source.dtype == torch.uint8 else source.to(self.project.weight.dtype)
        cells = self.project(self.norm(grid))
        return self.dropout(cells if self.positions is None else cells + self.positions)
