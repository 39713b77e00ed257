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

    The input is a batch of images, as pixels [B, height, width, 3] uint8 or as grids [B, S, F] that the network has
    computed before. The S cells of a grid are stored row by row.
    """

    positions: Tensor | None

    def __init__(self, options: CaptioningShape, width: int, dropout: float) -> None:
        """Build the network with fresh weights, and the projection to cells of `width` D."""
        super().__init__()
        image_encoder = options.image_encoder
        self.side = image_encoder.side
        self.network = image_network(image_encoder)
        if image_encoder.frozen:
            self.network.requires_grad_(False)
        self.norm = nn.LayerNorm(self.network.width)
        self.project = Linear(self.network.width, width)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        if options.positions == "learned":
            self.positions = nn.Parameter(torch.empty(image_encoder.side**2, width))
            nn.init.normal_(self.positions, std=0.5**0.5)  # the root mean square of a sinusoid
        elif options.positions == "sinusoidal":
            table = grid_positions(image_encoder.side, image_encoder.side, width)
            self.register_buffer("positions", table, persistent=False)
        else:
            self.register_buffer("positions", None, persistent=False)
        self.dropout = Dropout(dropout)

    def compute_grids(self, pixels: Tensor) -> Tensor:
        """Return the grids [B, S, F] that the network computes from pixels [B, height, width, 3] uint8."""
        grids = self.network(pixels.movedim(3, 1))  # [B, F, rows, columns]
        return grids.flatten(2).transpose(1, 2)

    @torch.inference_mode()
    def grids(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the grids [B, S, F] of pixels [B, height, width, 3] as an array, for storage."""
        source = torch.from_numpy(pixels).to(self.project.weight.device)
        return self.compute_grids(source).float().cpu().numpy()

    def forward(self, source: Tensor) -> Tensor:
        """Map pixels or grids to cells [B, S, D]."""
        # Stored grids are in float16.
        grid = self.compute_grids(source) if source.dtype == torch.uint8 else source.to(self.project.weight.dtype)
        cells = self.project(self.norm(grid))
        if self.positions is not None:
            cells = cells + self.positions
        return self.dropout(cells)
