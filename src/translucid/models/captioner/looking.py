"""What it costs where a captioner looks (Xu et al. 2015, arXiv 1502.03044, sections 4.1 and 4.2.1).

The weights are alpha [B, T, S]; `real` [B, T] is False at padding; each cost is a sum over captions.
"""

from __future__ import annotations

from torch import Tensor


def doubly_stochastic(weights: Tensor, real: Tensor) -> Tensor:
    """Return sum_i (1 - sum_t alpha_ti)^2 (equation 14): a caption is to look at every cell once, all in all."""
    looked = (weights * real[..., None]).sum(1)
    return (1 - looked).square().sum()


def reinforced(weights: Tensor, drawn: Tensor, real: Tensor, advantage: Tensor) -> Tensor:
    """Return -sum (log p(y) - b) log alpha of the cells that were drawn (equation 12; Williams 1992).

    Its gradient makes those cells likelier after which the caption was likelier than most.

    Args:
        weights: alpha.
        drawn: [B, T, S], 1 at the cell that was drawn; where a caption learned softly, the weights, which have no part.
        real: see above.
        advantage: [B], log p(y) - b of each caption, without gradients.
    """
    one = drawn.detach().eq(1).to(weights.dtype)
    log_drawn = (weights.clamp(min=1e-10).log() * one).sum(-1)
    return -(advantage[:, None] * log_drawn * real).sum()


def entropy(weights: Tensor, real: Tensor) -> Tensor:
    """Return sum_t H[alpha_t], in nats: how undecided the draws are."""
    spread = -(weights * weights.clamp(min=1e-10).log()).sum(-1)
    return (spread * real).sum()
