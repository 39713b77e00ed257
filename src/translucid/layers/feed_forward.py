"""The position-wise feed-forward network (arXiv 1706.03762, section 3.3)."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from translucid.kernels.linear import Linear
from translucid.layers.variants import Nonlinearity

_FUNCTIONS: dict[Nonlinearity, Callable[[Tensor], Tensor]] = {"relu": F.relu, "swish": F.silu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """FFN(x) = f(x W_1 + b_1) W_2 + b_2, at each position separately; in the paper, f(x) = max(0, x)."""

    def __init__(self, width: int, inner: int, nonlinearity: Nonlinearity = "relu") -> None:
        """Build W_1 [D, F] and W_2 [F, D], where D is the `width` and F is `inner`."""
        super().__init__()
        self.nonlinearity = nonlinearity
        self.inner = Linear(width, inner, feeds_product=True)
        self.outer = Linear(inner, width)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def neurons(self, x: Tensor) -> Tensor:
        """Return f(x W_1 + b_1) [B, T, F] for x [B, T, D]."""
        f = _FUNCTIONS[self.nonlinearity]
        return f(self.inner(x))

    def forward(self, x: Tensor) -> Tensor:
        """Map x [B, T, D] to [B, T, F] and back to [B, T, D]."""
        return self.outer(self.neurons(x))
