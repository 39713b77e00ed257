"""The decoder of "Show, Attend and Tell" (Xu et al. 2015, arXiv 1502.03044)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

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


class _Look(NamedTuple):
    z: Tensor
    """[N, T, D], what was seen."""
    alpha: Tensor
    """[N, T, S]."""
    place: Tensor
    """[N, T, S], 1 at the cell that hard attention looked at; of soft attention alpha."""


class AttentionDecoder(nn.Module):
    """Look first, with the state before; then read the last word together with what was seen; then speak.

        e_ti = v^T tanh(W_a a_i + W_h h_{t-1}),   alpha_t = softmax(e_t)     equations 4 and 5
        beta_t = sigmoid(w h_{t-1} + b)                                      section 4.2.1
        z_t = beta_t sum_i alpha_ti a_i       soft                           equation 13
        z_t = beta_t a_i, i drawn by alpha_t  hard                           equations 8 and 9
        h_t = LSTM(h_{t-1}, [E y_{t-1}; z_t])                                equations 1 to 3
        p(y_t) ~ exp(L_o (E y_{t-1} + L_h h_t + L_z z_t))                    equation 7

    The features are what L_o, the output projection, is given. Hard attention draws in training, and half of the
    captions learn softly (section 4.1); otherwise it looks at the likeliest cell.

    In the order "read-first", h_t = LSTM(h_{t-1}, E y_{t-1}), and h_t takes the place of h_{t-1} in looking: the LSTM
    runs over all words in one fused call and all positions look at once.
    """

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        width = options.width
        self.hard, self.reads_first = options.attention == "hard", options.order == "read-first"
        self.score = Concat(width, options.hidden)
        self.gate = Linear(width, 1) if options.gate else None
        self.recurrence = Recurrence("lstm", width if self.reads_first else 2 * width, width, 1)
        self.said, self.seen = Linear(width, width), Linear(width, width, bias=False)
        for linear in (self.said, self.seen):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """Go on from `state` over embedded words x [N, T, D]; k rows in a row may share a memory of the state.

        Returns:
            The features [N, T, D] and the state after.
        """
        soft = torch.rand(len(x), 1, 1, device=x.device) < 0.5 if self.hard and self.training else None
        score = self.score.over(state.keys)
        if self.reads_first:
            hidden, cells = self.recurrence(x, state.cells)
            looks = [self._look(hidden, state, score, soft)]
        else:
            cells, states, looks = state.cells, [], []
            for word in x.unbind(1):
                looks.append(self._look(cells[0][-1][:, None], state, score, soft))
                output, cells = self.recurrence.step(torch.cat([word, looks[-1].z[:, 0]], -1), cells)
                states.append(output)
            hidden = torch.stack(states, 1)
        z, alpha, place = (torch.cat(part, 1) for part in zip(*looks, strict=True))
        if maps is not None:
            maps[CROSS] = alpha[:, None]
            if soft is not None:
                maps[DRAWN] = place[:, None]
        return x + self.said(hidden) + self.seen(z), replace(state, cells=cells)

    def _look(
        self, h: Tensor, state: RecurrentState, score: Callable[[Tensor, Tensor], Tensor], soft: Tensor | None
    ) -> _Look:
        """Look with states h [N, T, D]; `soft` [N, 1, 1] says which captions learn softly."""
        asking = h.reshape(len(state.memory), -1, h.size(-1))  # [B, k T, D]
        context, alpha = attend(asking, state.keys, state.memory, state.mask, score)
        weights = alpha.view(*h.shape[:2], -1)
        place = weights
        if self.hard:
            place = self._place(weights)
            if soft is not None:
                place = torch.where(soft, weights, place)
            context = place.view_as(alpha) @ state.memory
        z = context.view_as(h)
        return _Look(z if self.gate is None else z * torch.sigmoid(self.gate(h)), weights, place)

    def _place(self, alpha: Tensor) -> Tensor:
        """Return 1 at one cell and 0 elsewhere, like alpha [N, T, S]."""
        flat = alpha.detach().float().flatten(0, 1)
        chosen = torch.multinomial(flat, 1)[:, 0] if self.training else flat.argmax(-1)
        return F.one_hot(chosen, flat.size(-1)).to(alpha.dtype).view_as(alpha)


class BlindDecoder(nn.Module):
    """The same without attention: all it knows of the image is the state that it starts from."""

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        self.recurrence = Recurrence("lstm", options.width, options.width, 1)
        self.said = Linear(options.width, options.width)
        nn.init.xavier_uniform_(self.said.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """See `AttentionDecoder`; there are no maps."""
        hidden, cells = self.recurrence(x, state.cells)
        return x + self.said(hidden), replace(state, cells=cells)
