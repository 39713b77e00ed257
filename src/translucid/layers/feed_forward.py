"""The position-wise feed-forward network (arXiv 1706.03762, section 3.3)."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from translucid.kernels.linear import Linear
from translucid.layers.variants import Nonlinearity

_FUNCTIONS: dict[Nonlinearity, Callable[[Tensor], Tensor]] = {"relu": F.relu, "swish": F.silu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """FFN(x) = f(x W_1 + b_1) W_2 + b_2, at each position on its own; in the paper, f(x) = max(0, x)."""

    def __init__(self, width: int, inner: int, nonlinearity: Nonlinearity = "relu") -> None:
        """`width`: D; `inner`: F; `nonlinearity`: f."""
        super().__init__()
        self.nonlinearity = nonlinearity
        self.inner = Linear(width, inner, feeds_product=True)
        self.outer = Linear(inner, width)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, F] -> [B, T, D]."""
        return self.outer(_FUNCTIONS[self.nonlinearity](self.inner(x)))
