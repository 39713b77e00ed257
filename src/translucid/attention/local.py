"""Local attention with predictive alignment, "local-p" (Luong et al. 2015, arXiv 1508.04025, section 3.2)."""

import torch
from torch import Tensor, nn

from translucid.kernels.linear import Linear


class PredictiveWindow(nn.Module):
    """Each decoder state h predicts a source position p and attends to positions no further than `reach` from it.

        p = S * sigmoid(v^T tanh(W h))                       equation 9
        a(s) = align(h, y_s) * exp(-(s - p)^2 / (2 sigma^2)) equation 10, sigma = reach / 2

    `align` is the softmax over the positions of the window, so the weights `a` sum to at most 1.
    """

    def __init__(self, width: int, reach: int) -> None:
        """Build fresh weights for states of `width` D and a window from p - reach to p + reach."""
        super().__init__()
        self.hidden = Linear(width, width, bias=False)
        self.v = Linear(width, 1, bias=False)
        self.reach = reach

    def forward(self, query: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the window [.., n_q, S], a boolean mask, and the Gaussian factors [.., n_q, S].

        Args:
            query: decoder states h [.., n_q, D].
            mask: [.., 1, S], True where the sentence has a token; the sum of a row is the sentence's length.
        """
        length = mask.sum(-1, keepdim=True)  # [.., 1, 1]: without padding, unlike mask.size(-1)
        center = length * torch.sigmoid(self.v(torch.tanh(self.hidden(query))))  # p [.., n_q, 1]
        distance = torch.arange(mask.size(-1), device=mask.device) - center  # [.., n_q, S]
        gauss = torch.exp(-(distance**2) / (2 * (self.reach / 2) ** 2))
        return mask & (distance.abs() <= self.reach), gauss
