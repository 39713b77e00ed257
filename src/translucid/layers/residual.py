"""The residual connection, dropout and layer normalization around every sublayer."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from translucid.kernels.dropout import Dropout


def final_norm(width: int, norm: Literal["pre", "post"]) -> nn.Module:
    """Return the layer after a stack of blocks, because pre-norm blocks leave their output without normalization."""
    return nn.LayerNorm(width) if norm == "pre" else nn.Identity()


class Residual(nn.Module):
    """Post-norm, as in the paper (section 5.4): LayerNorm(x + Dropout(sublayer(x))).

    Pre-norm (Xiong et al. 2020, arXiv 2002.04745): x + Dropout(sublayer(LayerNorm(x))), which trains deep stacks
    without a long warm-up. The stack then needs a `final_norm`.
    """

    def __init__(self, width: int, dropout: float, norm: Literal["pre", "post"]) -> None:
        """Build the layer normalization for `width` D."""
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply `sublayer` to x [B, T, D]; it maps [B, T, D] to [B, T, D]."""
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
