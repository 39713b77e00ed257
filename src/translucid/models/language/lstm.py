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
    """Hidden state and cell of each layer, [N, H] each: h, c, h, c, .."""

    cells: tuple[Tensor, ...]

    def select(self, rows: Tensor) -> LSTMState:
        """Reorder, repeat or drop hypotheses."""
        return LSTMState(tuple(part.index_select(0, rows) for part in self.cells))

    def tensors(self) -> tuple[Tensor, ...]:
        """See `Carried`."""
        return tuple(part.detach() for part in self.cells)

    @classmethod
    def of(cls, tensors: tuple[Tensor, ...]) -> LSTMState:
        """See `Carried`."""
        return cls(tensors)


class LSTMLanguageModel(LanguageModel[LSTMState]):
    """Embeddings, LSTM layers one on the other, and an output projection that shares the embeddings.

        x_t = m_in * E w_t
        h^1 = LSTM(x; U * M),  h^l = LSTM(m_l * h^{l-1}; U * M)
        p(w_{t+1}) = softmax(W (m_out * h^L_t) + b)

    m are the masks of dropout, drawn once a window for all positions (Gal and Ghahramani 2016, arXiv 1512.05287), M
    that of DropConnect on the matrix U from hidden state to hidden state. As these are the same at all positions, a
    layer runs over the window in one fused call.
    """

    options: LSTMLanguageOptions

    def __init__(self, vocabulary: int, options: LSTMLanguageOptions) -> None:
        """Build a model with fresh weights."""
        super().__init__(vocabulary, options.width)
        o = self.options = options
        self.embedding = DroppedEmbedding(vocabulary, o.width, o.embedding_dropout)
        widths = [o.width, *[o.hidden] * (o.layers - 1), o.width]
        self.layers = nn.ModuleList(
            LSTMLayer(inputs, outputs, o.weight_dropout) for inputs, outputs in pairwise(widths)
        )
        self.output = output_projection(self.embedding.tokens, tied=o.tie_output)

    def begin(self, rows: int, device: torch.device) -> LSTMState:
        """See `LanguageModel`."""
        widths = [layer.hidden for layer in self.layers if isinstance(layer, LSTMLayer)]
        kind = self.embedding.tokens.weight.dtype
        zeros = (torch.zeros(rows, width, device=device, dtype=kind) for width in widths for _ in range(2))
        return LSTMState(tuple(zeros))

    def read_on(self, ids: Tensor, state: LSTMState) -> tuple[Reading, LSTMState]:
        """See `LanguageModel`."""
        return self.read_embedded(self.embedding(ids), state)

    def read_embedded(self, x: Tensor, state: LSTMState) -> tuple[Reading, LSTMState]:
        """Do as `read_on` with embedded tokens x [B, T, D]."""
        o = self.options
        seen: list[Tensor] = [x]
        after: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            p = o.hidden_dropout if number else o.input_dropout
            dropped = locked_dropout(x, p, self.training)
            x, cells = layer(dropped, (state.cells[2 * number], state.cells[2 * number + 1]))
            seen.append(x)
            after += cells
        return Reading(locked_dropout(x, o.dropout, self.training), seen), LSTMState(tuple(after))

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """See `Model`; the embeddings are the lowest, even where the output shares them."""
        groups = [[*self.embedding.parameters()], *([*layer.parameters()] for layer in self.layers)]
        lower = {id(parameter) for parameter in groups[0]}
        groups[-1] += [parameter for parameter in self.output.parameters() if id(parameter) not in lower]
        return groups

    def regularisation(self, reading: Reading) -> Tensor | None:
        """alpha mean(f^2) + beta mean((h_t - h_{t+1})^2), f the features and h the last layer (section 4.6)."""
        o, last = self.options, reading.layers[-1]
        if not (o.activation or o.smoothness):
            return None
        cost = o.activation * reading.features.square().mean()
        return cost + o.smoothness * (last[:, 1:] - last[:, :-1]).square().mean() if last.size(1) > 1 else cost
