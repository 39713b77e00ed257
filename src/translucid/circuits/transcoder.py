"""A transcoder: a feed-forward sublayer as a sum of few features (Dunefsky et al. 2024, arXiv 2406.11944, section 3.1).

    FFN(x) = W_d f(x) + b_d + error,    f(x) = TopK(max(0, W_e x + b_e))

F features replace the neurons of the sublayer; at most k of them are active at a position. A feature reads the
direction W_e[i] of the input and writes the direction W_d[i], of length 1, to the output: its value f_i(x) is the
length of what it writes. TopK (Gao et al. 2024, arXiv 2406.04093, section 2.3) keeps the k largest values, so that the
number of active features is known and needs no penalty, which would make all values too small.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from translucid.layers.feed_forward import FeedForward


class Transcoder(nn.Module):
    """FFN(x) ≈ W_d f(x) + b_d. F is the number of features here, not the width of the feed-forward layer."""

    def __init__(self, width: int, features: int, k: int) -> None:
        """Build F random `features` for states of `width` D, of which at most `k` are active at a position.

        Raises:
            ValueError: there are fewer than k features.
        """
        super().__init__()
        if not 1 <= k <= features:
            raise ValueError(f"{k} of {features} features can't be active")
        self.k = k
        directions = nn.functional.normalize(torch.randn(features, width), dim=-1)
        self.encoder_weight = nn.Parameter(directions / math.sqrt(width))
        self.encoder_bias = nn.Parameter(torch.zeros(features))
        self.decoder_weight = nn.Parameter(directions.clone())
        self.decoder_bias = nn.Parameter(torch.zeros(width))

    @property
    def width(self) -> int:
        """F, the number of features."""
        return len(self.encoder_weight)

    def pre_activations(self, x: Tensor) -> Tensor:
        """Return W_e x + b_e [.., F] of the inputs x [.., D] of the sublayer."""
        return nn.functional.linear(x, self.encoder_weight, self.encoder_bias)

    def features(self, x: Tensor) -> Tensor:
        """Return the values f(x) [.., F] of the inputs x [.., D]; at most k are above 0."""
        return top_k(self.pre_activations(x), self.k)

    def decode(self, f: Tensor) -> Tensor:
        """Return W_d f + b_d [.., D], the output for the values f [.., F] of features."""
        return f @ self.decoder_weight + self.decoder_bias

    def forward(self, x: Tensor) -> Tensor:
        """Return what stands for the output of the sublayer [.., D], given its inputs x [.., D]."""
        return self.decode(self.features(x))

    @torch.no_grad()
    def normalize(self) -> None:
        """Scale what features write to length 1, and what they read by the inverse; the function stays the same."""
        lengths = self.decoder_weight.norm(dim=-1).clamp(min=1e-8)
        self.decoder_weight.div_(lengths[:, None])
        self.encoder_weight.mul_(lengths[:, None])
        self.encoder_bias.mul_(lengths)

    @classmethod
    def of_neurons(cls, sublayer: FeedForward, features: int, k: int) -> Transcoder:
        """Return a transcoder that begins with the neurons of a sublayer, each as a feature; further ones are random.

        A neuron with a ReLU writes max(0, w_1 x + b_1) w_2. Its scaling to a w_2 of length 1 is exact, so with k = F
        the transcoder computes what the sublayer computes, and with a smaller k the neurons that write most. For other
        nonlinearities it is an approximation. If there are fewer features than neurons, those with the longest
        w_1 and w_2 are taken. The random features have a bias that keeps them from displacing neurons.

        Args:
            sublayer: the sublayer, W_1 [D', D] and W_2 [D, D'].
            features: F.
            k: the number of features that may be active.
        """
        inner, outer = sublayer.inner, sublayer.outer
        transcoder = cls(inner.in_features, features, k).to(inner.weight.device, inner.weight.dtype)
        with torch.no_grad():
            lengths = inner.weight.norm(dim=-1) * outer.weight.norm(dim=0)
            neurons = lengths.topk(min(features, len(lengths))).indices.sort().values
            count = len(neurons)
            transcoder.encoder_weight[:count] = inner.weight[neurons]
            transcoder.encoder_bias[:count] = inner.bias[neurons]
            transcoder.decoder_weight[:count] = outer.weight.T[neurons]
            transcoder.decoder_bias.copy_(outer.bias)
            transcoder.normalize()
            scale = transcoder.encoder_weight[:count].norm(dim=-1).mean()
            transcoder.encoder_weight[count:] *= 0.1 * scale / transcoder.encoder_weight[count:].norm(dim=-1)[:, None]
        return transcoder


def top_k(values: Tensor, k: int) -> Tensor:
    """Return the k largest positive values in the last dimension [.., F] at their places, and zeros elsewhere."""
    largest = values.relu().topk(k, dim=-1)
    return torch.zeros_like(values).scatter(-1, largest.indices, largest.values)
