"""The decoder of Bahdanau et al. 2015 (arXiv 1409.0473), section 3.1 and appendix A.2."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.scores import Concat
from translucid.kernels.linear import Linear
from translucid.layers.recurrent import Recurrence
from translucid.models.model_options import RecurrentOptions
from translucid.models.protocol import Maps
from translucid.models.recurrent.state import CROSS, RecurrentState


class BahdanauDecoder(nn.Module):
    """Attend with the previous state, then read the last word together with the context, then predict the next word.

        alpha_i = softmax(e_i),  e_ij = v^T tanh(W s_{i-1} + U y_j)     equation 6
        c_i = sum_j alpha_ij y_j                                        equation 5
        s_i = f(s_{i-1}, [E w_{i-1}; c_i])                              section 3.1, f an LSTM or GRU
        t_i = max over pairs of U_o s_i + V_o E w_{i-1} + C_o c_i       equation 4, as the maxout layer of A.2.2

    With several layers, the state of the last layer is the query.
    """

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        width = options.width
        self.score = Concat(width)
        self.recurrence = Recurrence(options.cell, 2 * width, width, options.layers, dropout=options.dropout)
        self.readout = Linear(3 * width, 2 * width)
        nn.init.xavier_uniform_(self.readout.weight)

    def forward(self, x: Tensor, state: RecurrentState, maps: Maps | None = None) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; return t [N, T, D] and the state after."""
        cells, hidden, contexts, weights = state.cells, [], [], []
        score = self.score.over(state.keys)
        for word in x.unbind(1):  # w_{i-1} [N, D]; each query needs the state that depends on the context before
            query = cells[0][-1][:, None]  # s_{i-1} of the last layer [N, 1, D]
            context, alpha = attend(query, state.keys, state.memory, state.mask, score)
            output, cells = self.recurrence.step(torch.cat([word, context[:, 0]], -1), cells)
            hidden.append(output)
            contexts.append(context)
            weights.append(alpha)
        if maps is not None:
            maps[CROSS] = torch.cat(weights, 1)[:, None]  # [N, 1, T, S]
        inputs = torch.cat([torch.stack(hidden, 1), x, torch.cat(contexts, 1)], -1)  # [s; E w; c] [N, T, 3 D]
        # Maxout: one matrix computes both members of each pair, [N, T, 2 D] -> [N, T, D, 2] -> [N, T, D].
        features = self.readout(inputs).unflatten(-1, (-1, 2)).amax(-1)
        return features, replace(state, cells=cells)
