"""The residual connection, dropout and layer normalization around every sublayer."""

from collections.abc import Callable

from torch import Tensor, nn

from translucid.kernels.dropout import Dropout
from translucid.layers.variants import Norm


def final_norm(width: int, norm: Norm, epsilon: float = 1e-5) -> nn.Module:
    """Return the layer after a stack of blocks: pre-norm blocks leave their output without normalization.

    PyTorch's `nn.Transformer` has one after post-norm blocks as well, `post-final`.
    """
    return nn.Identity() if norm == "post" else nn.LayerNorm(width, epsilon)


class Residual(nn.Module):
    """Post-norm, as in the paper (section 5.4): LayerNorm(x + Dropout(sublayer(x))).

    Pre-norm (Xiong et al. 2020, arXiv 2002.04745): x + Dropout(sublayer(LayerNorm(x))), which trains deep stacks
    without a long warm-up. The stack then needs a `final_norm`.
    """

    def __init__(self, width: int, dropout: float, norm: Norm, epsilon: float = 1e-5) -> None:
        """Build the layer normalization for `width` D; `epsilon` is added to the variance."""
        super().__init__()
        self.norm = nn.LayerNorm(width, epsilon)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply `sublayer` to x [B, T, D]; it maps [B, T, D] to [B, T, D]."""
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
