"""Language models of LSTM layers: the AWD-LSTM, and the bidirectional model whose vectors are ELMo.

The AWD-LSTM is that of Merity et al. 2018 (arXiv 1708.02182), with its layers and dropouts. The bidirectional model is
that of Peters et al. 2018 (arXiv 1802.05365). ELMo is a learned mean of its layers (`Mix`, section 3.2), which
translators, text classifiers and embeddings of texts read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from translucid.ground.special import SPECIAL
from translucid.kernels.linear import Linear
from translucid.kernels.lstm import lstm
from translucid.language.model import LanguageModel, Reading
from translucid.language.options import BiLSTMLanguageOptions, LSTMLanguageOptions
from translucid.layers.characters import Characters
from translucid.layers.embedding import Embedding, output_projection, token_embedding

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


class BidirectionalLSTM(LanguageModel[LSTMState]):
    """Two language models that read a text in opposite directions and share embeddings and output (section 3.1).

        p(w_k | w_1 .. w_{k-1}) = softmax(W f_{k-1} + b),    p(w_k | w_{k+1} .. w_N) = softmax(W g_{k+1} + b)

    f and g are the last layers of two `ProjectedLSTM` over the same embeddings, E w or the vectors of `Characters`. No
    state of one is an input of the other, so neither reads a word that it must predict. The loss is the sum of both.

    Ids [B, 2, T] are a window of a text in [:, 0] and a window of a reversed text in [:, 1]; features and layers are
    then [B, 2, T, D], first those of f, then those of g. Only f reads ids [B, T]; it is the model that generates text.
    """

    options: BiLSTMLanguageOptions

    def __init__(self, vocabulary: int, options: BiLSTMLanguageOptions, pieces: Sequence[str] = ()) -> None:
        """Build a model with fresh weights; models that read characters need the `pieces` of the vocabulary."""
        super().__init__(vocabulary, options.width)
        o = self.options = options
        if o.characters:
            if len(pieces) != vocabulary:
                raise ValueError(f"a vocabulary of {vocabulary} is read by its characters, but {len(pieces)} are given")
            self.embedding: nn.Module = Characters(pieces, o.filters, o.width)
            self.output = Linear(o.width, vocabulary)
            nn.init.xavier_uniform_(self.output.weight)
            nn.init.zeros_(self.output.bias)
        else:
            self.embedding = embedding = DroppedEmbedding(vocabulary, o.width, 0.0)
            self.output = output_projection(embedding.tokens, tied=o.tie_output)
        self.directions = nn.ModuleList(ProjectedLSTM(o.width, o.hidden, o.layers, o.dropout) for _ in range(2))

    def begin(self, rows: int, device: torch.device) -> LSTMState:
        """Return hidden states and cells of zeros; those of f come first."""
        count = 2 * 2 * self.options.layers  # two directions, and a hidden state and a cell in each layer
        return LSTMState(tuple(torch.zeros(rows, self.options.hidden, device=device) for _ in range(count)))

    def read_on(self, ids: Tensor, state: LSTMState) -> tuple[Reading, LSTMState]:
        """Continue from the state over ids [B, T] with f, or over ids [B, 2, T] with f and g."""
        per_direction = 2 * self.options.layers
        x = self.embedding(ids)
        if ids.ndim == 2:
            (features, *layers), cells = self._read_direction(0, x, state.cells[:per_direction])
            return Reading(features, layers), LSTMState((*cells, *state.cells[per_direction:]))
        x_f, x_g = x.unbind(1)
        outputs_f, cells_f = self._read_direction(0, x_f, state.cells[:per_direction])
        outputs_g, cells_g = self._read_direction(1, x_g, state.cells[per_direction:])
        features, *layers = (torch.stack(pair, 1) for pair in zip(outputs_f, outputs_g, strict=True))
        return Reading(features, layers), LSTMState((*cells_f, *cells_g))

    def _read_direction(
        self, direction: int, x: Tensor, cells: Sequence[Tensor]
    ) -> tuple[list[Tensor], Sequence[Tensor]]:
        """Continue from the cells of one direction over embedded tokens x [B, T, D].

        Returns:
            The features, the embeddings and the output of each layer, [B, T, D] each, and the cells after.
        """
        layers, cells_after = self.directions[direction](x, cells)
        features = locked_dropout(layers[-1], self.options.dropout, self.training)
        return [features, x, *layers], cells_after

    def read_both_directions(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        """Return the states of both directions for each token of whole texts, side by side: [B, S, 2 D] for each layer.

        f has read the token and all before it, g the token and all after it.

        Args:
            x: embedded texts [B, S, D], each from its start token to its end token, padded on the right.
            mask: [B, S], False where there is padding.
        """
        last = mask.sum(1, keepdim=True) - 1
        positions = torch.arange(x.size(1), device=x.device)
        # The index of the token at the same distance from the end; padding stays where it is.
        reversal = torch.where(mask, last - positions, positions)[..., None].expand_as(x)
        # A reversed text begins with the start token and ends with the end token too, so both stay in place.
        ends = ((positions == 0) | (positions == last))[..., None]
        x_reversed = torch.where(ends, x, x.gather(1, reversal))
        cells = self.begin(len(x), x.device).cells[: 2 * self.options.layers]
        forwards, backwards = self.directions
        outputs_f, _ = forwards(x, cells)
        outputs_g, _ = backwards(x_reversed, cells)
        pairs = zip([x, *outputs_f], [x_reversed, *outputs_g], strict=True)
        return [torch.cat([f, g.gather(1, reversal)], -1) for f, g in pairs]

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """Return the embeddings, then each layer of both directions; the last one includes the output projection."""
        groups = [list(self.embedding.parameters())]
        for number in range(self.options.layers):
            group: list[nn.Parameter] = []
            for direction in self.directions:
                assert isinstance(direction, ProjectedLSTM)
                group += direction.layers[number].parameters()
                group += direction.projections[number].parameters()
            groups.append(group)
        groups[-1] += self.output_weights(groups[0])
        return groups


class Mix(nn.Module):
    """E_k = gamma sum_j softmax(s)_j h_{k,j}, with s and gamma learned; at first, all layers have the same weight."""

    def __init__(self, layers: int, *, normalize: bool = False) -> None:
        """Build a mix of `layers` layers, the embeddings included; `normalize` gives each h mean 0 and variance 1."""
        super().__init__()
        self.s = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))
        self.normalize = normalize

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """Mix the states [.., D] of all layers into [.., D]."""
        h = torch.stack([*layers], -1)  # [.., D, L]
        if self.normalize:
            # Layer normalization is over the last dimension, so swap D and L and swap them back.
            h = nn.functional.layer_norm(h.transpose(-1, -2), (h.size(-2),)).transpose(-1, -2)
        return self.gamma * (h @ self.s.softmax(0))


class ContextualEmbedding(nn.Module):
    """The sum of a token's embedding and its vector from a bidirectional language model.

        x_k = embedding(w_k) + W ELMo_k,    ELMo_k = gamma sum_j softmax(s)_j h_{k,j}

    The paper concatenates ELMo_k and the embedding; a matrix after the concatenation is equivalent to adding W ELMo_k.
    W is zero at first. h_{k,j} are the states of both directions in layer j for token k, normalized to mean 0 and
    variance 1.
    """

    def __init__(self, embedding: Embedding, width: int, options: BiLSTMLanguageOptions, *, tuned: bool) -> None:
        """Combine an embedding with a bidirectional language model.

        Args:
            embedding: the embedding of V tokens.
            width: D, the width of the embedding.
            options: the options of the bidirectional language model.
            tuned: whether to train the language model too; otherwise it is frozen.
        """
        super().__init__()
        self.embedding, self.tuned = embedding, tuned
        self.language = BidirectionalLSTM(embedding.tokens.num_embeddings, options).requires_grad_(tuned)
        self.language.output.bias.requires_grad_(False)  # the language model predicts nothing here
        self.mix = Mix(1 + options.layers, normalize=True)
        self.projection = Linear(2 * options.width, width, bias=False)
        nn.init.zeros_(self.projection.weight)

    def train(self, mode: bool = True) -> ContextualEmbedding:
        """Set the mode, except that a frozen language model stays in evaluation mode, without dropout."""
        super().train(mode)
        if not self.tuned:
            self.language.eval()
        return self

    def forward(self, ids: Tensor) -> Tensor:
        """Embed sources ids [B, S], padded on the right and ending in the end token: [B, S, D]."""
        # The language model was trained on texts that begin with the start token; its position is dropped afterwards.
        ids_with_start = nn.functional.pad(ids, (1, 0), value=SPECIAL.start)
        with torch.set_grad_enabled(self.tuned and torch.is_grad_enabled()):
            embedded = self.language.embedding(ids_with_start)
            layers = self.language.read_both_directions(embedded, ids_with_start != SPECIAL.pad)
        contextual: Tensor = self.projection(self.mix([layer[:, 1:] for layer in layers]))
        return self.embedding(ids) + contextual
