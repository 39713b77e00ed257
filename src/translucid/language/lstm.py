"""The AWD-LSTM language model of Merity et al. 2018 (arXiv 1708.02182): its layers, its dropouts, and the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from translucid.kernels.linear import Linear
from translucid.kernels.lstm import lstm
from translucid.language.model import LanguageModel, Reading
from translucid.language.options import LSTMLanguageOptions
from translucid.layers.embedding import output_projection, token_embedding

Cells = tuple[Tensor, Tensor]
"""Hidden state and cell, [B, H] each."""


class LSTMLayer(nn.Module):
    """One LSTM (Hochreiter and Schmidhuber 1997) with dropout on the matrix from hidden state to hidden state.

        i, f, g, o = split(W x_t + (M * U) h_{t-1} + b)
        c_t = sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g),    h_t = sigmoid(o) * tanh(c_t)

    M zeroes each weight of U with probability p and scales the others by 1 / (1 - p) (DropConnect, Wan et al. 2013).
    It is drawn once per call in training and is 1 in evaluation.
    """

    def __init__(self, inputs: int, hidden: int, weight_dropout: float = 0.0) -> None:
        """Build fresh weights W [4 H, inputs] and U [4 H, H] for `hidden` H; `weight_dropout` is p."""
        super().__init__()
        self.weight_dropout = weight_dropout
        self.w = nn.Parameter(torch.empty(4 * hidden, inputs))
        self.u = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.b = nn.Parameter(torch.empty(4 * hidden))
        nn.init.xavier_uniform_(self.w)
        nn.init.uniform_(self.u, -1 / math.sqrt(hidden), 1 / math.sqrt(hidden))
        nn.init.zeros_(self.b)
        # A forget gate that is open at first helps an LSTM to learn long dependencies (Jozefowicz et al. 2015,
        # section 2.2).
        nn.init.ones_(self.b.data.chunk(4)[1])

    def forward(self, x: Tensor, cells: Cells) -> tuple[Tensor, Cells]:
        """Continue from `cells` over x [B, T, inputs]; return h [B, T, H] and the cells after the last position."""
        u = nn.functional.dropout(self.u, self.weight_dropout, self.training)
        return lstm(x, cells, self.w, u, self.b)


class DroppedEmbedding(nn.Module):
    """sqrt(D) E w, where the whole vector of some words of the vocabulary is zero in a window (section 4.3).

    E is shared with the output projection, which needs small entries; the factor sqrt(D) gives the embedded words
    entries of variance 1.
    """

    def __init__(self, vocabulary: int, width: int, p: float) -> None:
        """Build fresh weights E [vocabulary, width]; `p` is the probability that a word is dropped."""
        super().__init__()
        self.tokens = token_embedding(vocabulary, width)
        self.scale = math.sqrt(width)
        self.p = p

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids [B, T]: [B, T, D]."""
        x = self.tokens(ids) * self.scale
        if not self.training or not self.p:
            return x
        # One draw per word of the vocabulary [V], so that all occurrences of a word are dropped together.
        mask = (torch.rand(self.tokens.num_embeddings, device=x.device) >= self.p) / (1 - self.p)
        return x * mask[ids][..., None].to(x.dtype)


def locked_dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Apply dropout to x [B, T, D] with one mask for all positions (Gal and Ghahramani 2016, arXiv 1512.05287)."""
    if not training or not p:
        return x
    mask = nn.functional.dropout(x.new_ones(x.size(0), 1, x.size(2)), p)  # [B, 1, D]
    return x * mask


class ProjectedLSTM(nn.Module):
    """L layers, each with a projection back to the width of its input and, except the first, a residual connection.

        h^1 = P_1 LSTM_1(m_1 * x),    h^l = h^{l-1} + P_l LSTM_l(m_l * h^{l-1})

    m are dropout masks, each the same at all positions. In the paper, the recurrence reads the projected state. Here it
    reads the whole state and the projection follows outside, so that one call of the fused kernel runs the layer:
    PyTorch's kernel for CPUs has no projection.
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        """Build `layers` layers that read and return vectors of `width` D, with states of `hidden` H."""
        super().__init__()
        self.dropout = dropout
        self.layers = nn.ModuleList(LSTMLayer(width, hidden) for _ in range(layers))
        self.projections = nn.ModuleList(Linear(hidden, width, bias=False) for _ in range(layers))
        for parameter in self.projections.parameters():
            nn.init.xavier_uniform_(parameter)

    def forward(self, x: Tensor, cells: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Continue from the cells h, c, h, c, .. [B, H] of all layers over x [B, T, D].

        Returns:
            h^1 .. h^L [B, T, D], and the cells after the last position.
        """
        outputs: list[Tensor] = []
        cells_after: list[Tensor] = []
        h = x
        for number, (layer, projection) in enumerate(zip(self.layers, self.projections, strict=True)):
            inputs = locked_dropout(h, self.dropout, self.training)
            states, last = layer(inputs, (cells[2 * number], cells[2 * number + 1]))
            projected = projection(states)
            h = h + projected if number else projected
            outputs.append(h)
            cells_after += last
        return outputs, cells_after


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

    def regularization(self, reading: Reading) -> Tensor | None:
        """Return alpha mean(f^2) + beta mean((h_t - h_{t+1})^2), f the features, h the last layer (section 4.6)."""
        o, last = self.options, reading.layers[-1]
        if not (o.activation or o.smoothness):
            return None
        loss = o.activation * reading.features.square().mean()
        if last.size(1) > 1:  # the mean of no differences would be NaN
            loss = loss + o.smoothness * (last[:, 1:] - last[:, :-1]).square().mean()
        return loss
