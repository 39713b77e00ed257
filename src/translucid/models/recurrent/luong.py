"""The decoder of Luong et al. 2015 (arXiv 1508.04025)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.local import PredictiveWindow
from translucid.attention.scores import Concat, Dot, General, Score
from translucid.kernels.linear import Linear
from translucid.layers.recurrent import Recurrence
from translucid.models.model_options import RecurrentOptions
from translucid.models.protocol import Maps
from translucid.models.recurrent.state import CROSS, RecurrentState
from translucid.models.user_code import load_score


class LuongDecoder(nn.Module):
    """Read the last word, then attend with the new state, then predict the next word from both.

        h_t = f(h_{t-1}, E w_{t-1})                      f an LSTM or GRU
        a_t = softmax(score(h_t, y))                     equation 7
        c_t = sum_s a_ts y_s
        h~_t = tanh(W_c [c_t; h_t])                      equation 5

    Without input feeding, no state depends on the attention, so one fused call runs the recurrence over all words, and
    all positions attend at once. With input feeding (section 3.3), the input is the word together with h~_{t-1}.
    """

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        o = options
        self.score = _score(o)
        self.window = PredictiveWindow(o.width, o.window) if o.window else None
        self.feeds = o.input_feeding
        inputs = 2 * o.width if self.feeds else o.width
        self.recurrence = Recurrence(o.cell, inputs, o.width, o.layers, dropout=o.dropout)
        self.combine = Linear(2 * o.width, o.width, bias=False)
        nn.init.xavier_uniform_(self.combine.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; return h~ [N, T, D] and the state after."""
        if self.feeds:
            features, weights, state = self._word_by_word(x, state)
        else:
            hidden, cells = self.recurrence(x, state.cells)
            features, weights = self._attend(hidden, state)
            state = replace(state, cells=cells)
        if maps is not None:
            maps[CROSS] = weights[:, None]  # [N, 1, T, S]
        return features, state

    def _attend(self, hidden: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor]:
        """Return h~ [N, T, D] and the weights [N, T, S] of states h [N, T, D]."""
        mask, focus = (state.mask, None) if self.window is None else self.window(hidden, state.mask)
        context, weights = attend(hidden, state.keys, state.memory, mask, self.score, focus)
        return torch.tanh(self.combine(torch.cat([context, hidden], -1))), weights

    def _word_by_word(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor, RecurrentState]:
        """Do the same with input feeding, where every step needs h~ of the step before."""
        cells, feed = state.cells, state.feed
        if feed is None:  # the first word
            feed = torch.zeros_like(x[:, 0])
        features, weights = [], []
        for word in x.unbind(1):
            hidden, cells = self.recurrence.step(torch.cat([word, feed], -1), cells)
            attentional, alpha = self._attend(hidden[:, None], state)
            feed = attentional[:, 0]
            features.append(attentional)
            weights.append(alpha)
        return torch.cat(features, 1), torch.cat(weights, 1), replace(state, cells=cells, feed=feed)


def _score(options: RecurrentOptions) -> Score:
    if options.code:
        return load_score(options.code, options.width)
    if options.attention == "luong-general":
        return General(options.width)
    if options.attention == "luong-concat":
        return Concat(options.width)
    return Dot(scaled=options.attention == "luong-scaled-dot")
