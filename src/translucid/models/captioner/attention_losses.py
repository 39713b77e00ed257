"""The auxiliary losses of captioners: losses on the attention weights, and a detector of words in the image.

The former are those of Xu et al. 2015 (arXiv 1502.03044, sections 4.1 and 4.2.1), the latter follows Fang et al. 2015
(arXiv 1411.4952, section 3).

The weights are alpha [B, T, S]; `real` [B, T] is False at padding. Each loss on the weights is a sum over captions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.ground.special import SpecialTokens


def doubly_stochastic(weights: Tensor, real: Tensor) -> Tensor:
    """Return sum_i (1 - sum_t alpha_ti)^2 (equation 14): the attention to each cell should sum to 1 over a caption."""
    attention_to_cell = (weights * real[..., None]).sum(1)  # [B, S]
    return (1 - attention_to_cell).square().sum()


def reinforced(weights: Tensor, drawn: Tensor, real: Tensor, advantage: Tensor) -> Tensor:
    """Return -sum (log p(y) - b) log alpha of the sampled cells (equation 12; REINFORCE, Williams 1992).

    Its gradient increases the weights of the cells that made a caption more probable than the baseline b.

    Args:
        weights: alpha [B, T, S].
        drawn: [B, T, S], 1 at the sampled cell; for a caption that is trained with soft attention, the weights, which
            are ignored.
        real: [B, T], False at padding.
        advantage: log p(y) - b of each caption [B], without gradients.
    """
    is_drawn = drawn.detach().eq(1).to(weights.dtype)
    log_drawn = (weights.clamp(min=1e-10).log() * is_drawn).sum(-1)  # clamped, because log 0 = -inf and -inf * 0 = NaN
    return -(advantage[:, None] * log_drawn * real).sum()


def entropy(weights: Tensor, real: Tensor) -> Tensor:
    """Return sum_t H[alpha_t], the entropy of the attention in nats."""
    entropies = -(weights * weights.clamp(min=1e-10).log()).sum(-1)
    return (entropies * real).sum()


def undetected(scores: Tensor, words: Tensor, special: SpecialTokens[int]) -> Tensor:
    """Return the cross-entropy of a word detector, given the words of an image's captions: the mean over images [].

    A word is as probable in the image as it is in its cells together, p(v) ~ sum_i exp(score_iv). The expected words
    are the distinct words of the image's captions, weighted by inverse document frequency in the batch,
    log(B / number of images with the word).

    Args:
        scores: the score of each word in each cell [B, S, V].
        words: the ids of all captions of each image [B, k T].
        special: the ids that are no words.
    """
    expected = scores.new_zeros(len(words), scores.size(-1)).scatter_(1, words, 1.0)  # [B, V], 1 for each word
    for token in special:  # one by one: a GPU would wait for a list of indices from the host
        expected[:, token] = 0
    expected = expected * (len(words) / expected.sum(0).clamp(min=1)).log()
    share = expected / expected.sum(1, keepdim=True).clamp(min=1e-6)
    log_p = torch.logsumexp(scores.float(), 1).log_softmax(-1)
    return -(share * log_p).sum(1).mean()
