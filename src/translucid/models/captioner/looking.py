"""What a captioner is taught beyond its words: where to look, and what there is to be seen.

The former is of Xu et al. 2015 (arXiv 1502.03044, sections 4.1 and 4.2.1), the latter after Fang et al. 2015 (arXiv
1411.4952, section 3).

The weights are alpha [B, T, S]; `real` [B, T] is False at padding; each cost is a sum over captions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.ground.special import SpecialTokens


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


def undetected(scores: Tensor, words: Tensor, special: SpecialTokens[int]) -> Tensor:
    """Return how surprised a detector is by the words of an image's captions, the mean over images [].

    A word is seen in the image as far as it is seen in some cell, p(v) ~ sum_i exp(score_iv); what is asked of each
    image are its different words, each as much as it tells it from the other images of the batch, log(B / images).

    Args:
        scores: [B, S, V], of each word in each cell.
        words: [B, k T] ids.
        special: ids that are no words.
    """
    told = scores.new_zeros(len(words), scores.size(-1)).scatter_(1, words, 1.0)
    told[:, list(special)] = 0
    told = told * (len(words) / told.sum(0).clamp(min=1)).log()
    share = told / told.sum(1, keepdim=True).clamp(min=1e-6)
    seen = torch.logsumexp(scores.float(), 1).log_softmax(-1)
    return -(share * seen).sum(1).mean()
