"""The decoder of "Show, Attend and Tell" (Xu et al. 2015, arXiv 1502.03044)."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.scores import Concat
from translucid.kernels.linear import Linear
from translucid.layers.recurrent import Recurrence
from translucid.models.captioner_options import CaptionerOptions
from translucid.models.protocol import Maps
from translucid.models.recurrent.state import RecurrentState

CROSS = "decoder.0.cross"
"""The weights alpha [N, 1, T, S]."""
DRAWN = "decoder.0.drawn"
"""Of hard attention in training, the cells that were looked at, 1 there and 0 elsewhere [N, 1, T, S]; in a caption that
learns softly they are the weights."""


class LookingDecoder(nn.Module):
    """Look first, with the state before; then read the last word together with what was seen; then speak.

        e_ti = v^T tanh(W_a a_i + W_h h_{t-1}),   alpha_t = softmax(e_t)     equations 4 and 5
        beta_t = sigmoid(w h_{t-1} + b)                                      section 4.2.1
        z_t = beta_t sum_i alpha_ti a_i       soft                           equation 13
        z_t = beta_t a_i, i drawn by alpha_t  hard                           equations 8 and 9
        h_t = LSTM(h_{t-1}, [E y_{t-1}; z_t])                                equations 1 to 3
        p(y_t) ~ exp(L_o (E y_{t-1} + L_h h_t + L_z z_t))                    equation 7

    The features are what L_o, the output projection, is given. Hard attention draws in training, and half of the
    captions learn softly (section 4.1); otherwise it looks at the likeliest cell.
    """

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        width = options.width
        self.hard = options.attention == "hard"
        self.score = Concat(width)
        self.gate = Linear(width, 1) if options.gate else None
        self.recurrence = Recurrence("lstm", 2 * width, width, 1)
        self.said, self.seen = Linear(width, width), Linear(width, width, bias=False)
        for linear in (self.said, self.seen):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """Go on from `state` over embedded words x [N, T, D]; k rows in a row may share a memory of the state.

        Returns:
            The features [N, T, D] and the state after.
        """
        cells, hidden, contexts, weights, drawn = state.cells, [], [], [], []
        images = len(state.memory)
        soft = torch.rand(len(x), 1, device=x.device) < 0.5 if self.hard and self.training else None
        score = self.score.over(state.keys)
        for word in x.unbind(1):
            h = cells[0][-1]
            asking = h.unflatten(0, (images, -1))  # [B, k, D]
            context, alpha = attend(asking, state.keys, state.memory, state.mask, score)
            weights.append(alpha.flatten(0, 1))
            if self.hard:
                place = self._place(weights[-1])
                if soft is not None:
                    place = torch.where(soft, weights[-1], place)
                drawn.append(place)
                context = place.view_as(alpha) @ state.memory
            z = context.flatten(0, 1)
            if self.gate is not None:
                z = z * torch.sigmoid(self.gate(h))
            output, cells = self.recurrence.step(torch.cat([word, z], -1), cells)
            hidden.append(output)
            contexts.append(z)
        features = x + self.said(torch.stack(hidden, 1)) + self.seen(torch.stack(contexts, 1))
        if maps is not None:
            maps[CROSS] = torch.stack(weights, 1)[:, None]
            if soft is not None:
                maps[DRAWN] = torch.stack(drawn, 1)[:, None]
        return features, replace(state, cells=cells)

    def _place(self, alpha: Tensor) -> Tensor:
        """Return 1 at one cell and 0 elsewhere, like alpha [N, S]."""
        flat = alpha.detach().float()
        chosen = torch.multinomial(flat, 1)[:, 0] if self.training else flat.argmax(-1)
        return F.one_hot(chosen, flat.size(-1)).to(alpha.dtype)


class BlindDecoder(nn.Module):
    """The same without attention: all it knows of the image is the state that it starts from."""

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        self.recurrence = Recurrence("lstm", options.width, options.width, 1)
        self.said = Linear(options.width, options.width)
        nn.init.xavier_uniform_(self.said.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """See `LookingDecoder`; there are no maps."""
        hidden, cells = self.recurrence(x, state.cells)
        return x + self.said(hidden), replace(state, cells=cells)
