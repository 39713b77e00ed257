"""The AWD-LSTM language model of Merity et al. 2018 (arXiv 1708.02182)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from translucid.layers.embedding import output_projection
from translucid.layers.language_lstm import DroppedEmbedding, LSTMLayer, locked_dropout
from translucid.models.language.model import LanguageModel, Reading
from translucid.models.language_options import LSTMLanguageOptions


@dataclass(frozen=True)
class LSTMState:
    """The hidden state and cell of each layer, [N, H] each: h, c, h, c, .."""

    cells: tuple[Tensor, ...]

    def select(self, rows: Tensor) -> LSTMState:
        """Return the state of the hypotheses `rows` [N], which may repeat, reorder or drop them."""
        return LSTMState(tuple(part.index_select(0, rows) for part in self.cells))

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the cells without gradients."""
        return tuple(part.detach() for part in self.cells)

    @classmethod
    def of(cls, tensors: tuple[Tensor, ...]) -> LSTMState:
        """Return the state with these cells."""
        return cls(tensors)


class LSTMLanguageModel(LanguageModel[LSTMState]):
    """Embeddings, a stack of LSTM layers, and an output projection that shares the embeddings.

        x_t = m_in * E w_t
        h^1 = LSTM(x; U * M),  h^l = LSTM(m_l * h^{l-1}; U * M)
        p(w_{t+1}) = softmax(W (m_out * h^L_t) + b)

    m are dropout masks, drawn once per window for all positions (Gal and Ghahramani 2016, arXiv 1512.05287), and M is
    the mask of DropConnect on the matrix U from hidden state to hidden state. As the masks are the same at all
    positions, one fused call runs a layer over the window.
    """

    options: LSTMLanguageOptions

    def __init__(self, vocabulary: int, options: LSTMLanguageOptions) -> None:
        """Build a model with fresh weights."""
        super().__init__(vocabulary, options.width)
        o = self.options = options
        self.embedding = DroppedEmbedding(vocabulary, o.width, o.embedding_dropout)
        self.widths = [o.width, *[o.hidden] * (o.layers - 1), o.width]
        self.layers = nn.ModuleList(LSTMLayer(*widths, o.weight_dropout) for widths in pairwise(self.widths))
        self.output = output_projection(self.embedding.tokens, tied=o.tie_output)

    def begin(self, rows: int, device: torch.device) -> LSTMState:
        """Return hidden states and cells of zeros."""
        dtype = self.embedding.tokens.weight.dtype
        cells: list[Tensor] = []
        for width in self.widths[1:]:
            cells += torch.zeros(2, rows, width, device=device, dtype=dtype).unbind()
        return LSTMState(tuple(cells))

    def read_on(self, ids: Tensor, state: LSTMState) -> tuple[Reading, LSTMState]:
        """Embed tokens ids [B, T] and continue from the state over them."""
        return self.read_embedded(self.embedding(ids), state)

    def read_embedded(self, x: Tensor, state: LSTMState) -> tuple[Reading, LSTMState]:
        """Continue from the state over embedded tokens x [B, T, D]."""
        o = self.options
        layers: list[Tensor] = [x]
        cells_after: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            p = o.hidden_dropout if number else o.input_dropout
            inputs = locked_dropout(x, p, self.training)
            x, cells = layer(inputs, (state.cells[2 * number], state.cells[2 * number + 1]))
            layers.append(x)
            cells_after += cells
        features = locked_dropout(x, o.dropout, self.training)
        return Reading(features, layers), LSTMState(tuple(cells_after))

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """Return the embeddings, then each layer; embeddings that the output projection shares count as the lowest."""
        groups = [list(module.parameters()) for module in (self.embedding, *self.layers)]
        groups[-1] += self.output_weights(groups[0])
        return groups

    def regularisation(self, reading: Reading) -> Tensor | None:
        """Return alpha mean(f^2) + beta mean((h_t - h_{t+1})^2), f the features, h the last layer (section 4.6)."""
        o, last = self.options, reading.layers[-1]
        if not (o.activation or o.smoothness):
            return None
        loss = o.activation * reading.features.square().mean()
        if last.size(1) > 1:  # the mean of no differences would be NaN
            loss = loss + o.smoothness * (last[:, 1:] - last[:, :-1]).square().mean()
        return loss
