"""The bidirectional language model of Peters et al. 2018 (arXiv 1802.05365), whose states are ELMo's vectors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from translucid.kernels.linear import Linear
from translucid.layers.characters import Characters
from translucid.layers.embedding import output_projection
from translucid.layers.language_lstm import DroppedEmbedding, locked_dropout
from translucid.layers.projected_lstm import ProjectedLSTM
from translucid.models.language.lstm import LSTMState
from translucid.models.language.model import LanguageModel, Reading
from translucid.models.language_options import BiLSTMLanguageOptions


class BidirectionalLSTM(LanguageModel[LSTMState]):
    """Two language models that read a text from its two ends, and share only their words (section 3.1).

        p(w_k | w_1 .. w_{k-1}) = softmax(W f_{k-1} + b),    p(w_k | w_{k+1} .. w_N) = softmax(W g_{k+1} + b)

    f and g are the last layers of two `ProjectedLSTM` over the same embeddings, E w or what `Characters` makes of w.
    Nothing of one reaches the other, so neither ever sees a word that it is to predict. The loss is the sum of both.

    Ids [B, 2, T] are a window of a text in [:, 0] and a window of a text read from its end in [:, 1]; features and
    layers are then [B, 2, T, D], those of f and of g. Ids [B, T] are read by f alone, the language model that writes.
    """

    options: BiLSTMLanguageOptions

    def __init__(self, vocabulary: int, options: BiLSTMLanguageOptions, pieces: Sequence[str] = ()) -> None:
        """Build a model with fresh weights; `pieces`: how the vocabulary is written, needed for characters."""
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
        """See `LanguageModel`; the cells of f come first."""
        count = 2 * 2 * self.options.layers
        return LSTMState(tuple(torch.zeros(rows, self.options.hidden, device=device) for _ in range(count)))

    def read_on(self, ids: Tensor, state: LSTMState) -> tuple[Reading, LSTMState]:
        """See `LanguageModel`, and above for ids [B, 2, T]."""
        both, each = ids.ndim == 3, 2 * self.options.layers
        x = self.embedding(ids)
        seen, after = [], []
        for number, own in enumerate(x.unbind(1) if both else [x]):
            layers, cells = self.directions[number](own, state.cells[number * each : (number + 1) * each])
            features = locked_dropout(layers[-1], self.options.dropout, self.training)
            seen.append([features, own, *layers])
            after += cells
        features, *every = (torch.stack(parts, 1) if both else parts[0] for parts in zip(*seen, strict=True))
        return Reading(features, every), LSTMState((*after, *state.cells[len(after) :]))

    def both_ways(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        """Return what both directions make of each token of whole texts, side by side: of each layer [B, S, 2 D].

        f has read the token and all before it, g the token and all after it.

        Args:
            x: embedded texts [B, S, D], each from its start token to its end token, padded on the right.
            mask: [B, S], False where there is padding.
        """
        last, places = mask.sum(1, keepdim=True) - 1, torch.arange(x.size(1), device=x.device)
        turned = torch.where(mask, last - places, places)[..., None].expand_as(x)  # of each place, that from the end
        # Read from its end, a text begins with the start token too, and ends with the end token.
        ends = ((places == 0) | (places == last))[..., None]
        back = torch.where(ends, x, x.gather(1, turned))
        cells = self.begin(len(x), x.device).cells[: 2 * self.options.layers]
        forwards, backwards = self.directions
        of_f, of_g = [x, *forwards(x, cells)[0]], [back, *backwards(back, cells)[0]]
        return [torch.cat([f, g.gather(1, turned)], -1) for f, g in zip(of_f, of_g, strict=True)]

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """See `Model`: the embeddings, then of each layer both directions, the output projection with the last one."""
        groups = [[*self.embedding.parameters()]]
        for number in range(self.options.layers):
            names = (f"directions.{way}.{part}.{number}" for way in range(2) for part in ("layers", "projections"))
            groups.append([parameter for name in names for parameter in self.get_submodule(name).parameters()])
        lower = {id(parameter) for parameter in groups[0]}
        groups[-1] += [parameter for parameter in self.output.parameters() if id(parameter) not in lower]
        return groups
