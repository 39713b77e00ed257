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
from translucid.models.recurrent import CROSS, RecurrentState

DRAWN = "decoder.0.drawn"
"""The name of the map of sampled cells, for hard attention in training: 1 at the cell, 0 elsewhere [N, 1, T, S]. In a
caption that is trained with soft attention, these are the weights."""


class _Attended(NamedTuple):
    z: Tensor
    """The gated context [N, T, D]."""
    alpha: Tensor
    """The weights [N, T, S]."""
    place: Tensor
    """[N, T, S], 1 at the sampled cell of hard attention; alpha for soft attention."""


class AttentionDecoder(nn.Module):
    """Attend with the previous state, then read the last word together with the context, then predict the next word.

        e_ti = v^T tanh(W_a a_i + W_h h_{t-1}),   alpha_t = softmax(e_t)     equations 4 and 5
        beta_t = sigmoid(w h_{t-1} + b)                                      section 4.2.1
        z_t = beta_t sum_i alpha_ti a_i       soft                           equation 13
        z_t = beta_t a_i, i drawn by alpha_t  hard                           equations 8 and 9
        h_t = LSTM(h_{t-1}, [E y_{t-1}; z_t])                                equations 1 to 3
        p(y_t) ~ exp(L_o (E y_{t-1} + L_h h_t + L_z z_t))                    equation 7

    The features are the input of L_o, the output projection. Hard attention samples a cell in training, except for half
    of the captions, which are trained with soft attention (section 4.1); in evaluation it takes the most probable cell.

    In the order "read-first", h_t = LSTM(h_{t-1}, E y_{t-1}), and h_t replaces h_{t-1} as the query: one fused call
    runs the LSTM over all words, and all positions attend at once.
    """

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        width = options.width
        self.hard, self.reads_first = options.attention == "hard", options.order == "read-first"
        self.score = Concat(width, options.hidden)
        self.gate = Linear(width, 1) if options.gate else None
        inputs = width if self.reads_first else 2 * width
        self.recurrence = Recurrence("lstm", inputs, width, 1)
        self.said, self.seen = Linear(width, width), Linear(width, width, bias=False)
        for linear in (self.said, self.seen):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; k consecutive rows may share a memory of the state.

        Returns:
            The features [N, T, D] and the state after the last word.
        """
        soft = None
        if self.hard and self.training:
            soft = torch.rand(len(x), 1, 1, device=x.device) < 0.5  # one decision for a whole caption
        score = self.score.over(state.keys)
        if self.reads_first:
            hidden, cells = self.recurrence(x, state.cells)
            steps = [self._attend(hidden, state, score, soft)]
        else:
            cells, states, steps = state.cells, [], []
            for word in x.unbind(1):
                step = self._attend(cells[0][-1][:, None], state, score, soft)
                output, cells = self.recurrence.step(torch.cat([word, step.z[:, 0]], -1), cells)
                steps.append(step)
                states.append(output)
            hidden = torch.stack(states, 1)
        z, alpha, place = (torch.cat(part, 1) for part in zip(*steps, strict=True))
        if maps is not None:
            maps[CROSS] = alpha[:, None]
            if soft is not None:
                maps[DRAWN] = place[:, None]
        return x + self.said(hidden) + self.seen(z), replace(state, cells=cells)

    def _attend(
        self, h: Tensor, state: RecurrentState, score: Callable[[Tensor, Tensor], Tensor], soft: Tensor | None
    ) -> _Attended:
        """Attend with states h [N, T, D]; `soft` [N, 1, 1] says which captions are trained with soft attention."""
        # All captions of an image attend together: [k B, T, D] -> [B, k T, D].
        query = h.reshape(len(state.memory), -1, h.size(-1))
        context, alpha = attend(query, state.keys, state.memory, state.mask, score)
        weights = alpha.view(*h.shape[:2], -1)
        place = weights
        if self.hard:
            place = self._place(weights)
            if soft is not None:
                place = torch.where(soft, weights, place)
            context = place.view_as(alpha) @ state.memory
        z = context.view_as(h)
        if self.gate is not None:
            z = z * torch.sigmoid(self.gate(h))
        return _Attended(z, weights, place)

    def _place(self, alpha: Tensor) -> Tensor:
        """Choose a cell by the weights alpha [N, T, S]; return 1 there and 0 elsewhere [N, T, S]."""
        flat = alpha.detach().float().flatten(0, 1)
        chosen = torch.multinomial(flat, 1)[:, 0] if self.training else flat.argmax(-1)
        return F.one_hot(chosen, flat.size(-1)).to(alpha.dtype).view_as(alpha)


class BlindDecoder(nn.Module):
    """The decoder without attention, whose only information about the image is its first state."""

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        self.recurrence = Recurrence("lstm", options.width, options.width, 1)
        self.said = Linear(options.width, options.width)
        nn.init.xavier_uniform_(self.said.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; there are no attention maps."""
        hidden, cells = self.recurrence(x, state.cells)
        return x + self.said(hidden), replace(state, cells=cells)
