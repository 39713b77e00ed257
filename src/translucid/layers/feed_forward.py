"""The position-wise feed-forward network (arXiv 1706.03762, section 3.3)."""

from torch import Tensor, nn

from translucid.kernels.linear import Linear


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, at each position on its own."""

    def __init__(self, width: int, inner: int) -> None:
        """`width`: D; `inner`: F."""
        super().__init__()
        self.inner = Linear(width, inner, feeds_product=True)
        self.outer = Linear(inner, width)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, F] -> [B, T, D]."""
        return self.outer(self.inner(x).relu())
