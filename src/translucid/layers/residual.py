"""The wrapping of every sublayer: residual connection, dropout and layer normalisation."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from translucid.kernels.dropout import Dropout


class Residual(nn.Module):
    """Post-norm, as in the paper (section 5.4): LayerNorm(x + Dropout(sublayer(x))).

    Pre-norm (Xiong et al. 2020, arXiv 2002.04745): x + Dropout(sublayer(LayerNorm(x))), which trains deep stacks
    without a long warm-up; the stack then ends with a LayerNorm of its own.
    """

    def __init__(self, width: int, dropout: float, norm: Literal["pre", "post"]) -> None:
        """`width`: D."""
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """[B, T, D] -> [B, T, D]."""
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
