"""The bidirectional language model of Peters et al. 2018 (arXiv 1802.05365), and its vectors, ELMo, in a translator.

ELMo is a learned mean of the layers (`Mix`, section 3.2), which text classifiers and embeddings of texts read too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from translucid.ground.special import SPECIAL
from translucid.kernels.linear import Linear
from translucid.language.lstm import DroppedEmbedding, LSTMState, ProjectedLSTM, locked_dropout
from translucid.language.model import LanguageModel, Reading
from translucid.language.options import BiLSTMLanguageOptions
from translucid.layers.characters import Characters
from translucid.layers.embedding import Embedding, output_projection


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
