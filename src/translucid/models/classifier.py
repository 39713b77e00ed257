"""The text classifier of Howard and Ruder 2018 (ULMFiT, arXiv 1801.06146, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from translucid.ground.special import SPECIAL
from translucid.models.classifier_options import ClassifierOptions
from translucid.models.language.lstm import LSTMLanguageModel
from translucid.models.protocol import Model


class Classifier(Model):
    """A model of language reads the text, and two blocks make of all its states what the text is.

        h_c = [h_T, max_t h_t, mean_t h_t]
        z = relu(W_1 drop(norm(h_c)) + b_1),    p(label) = softmax(W_2 drop(norm(z)) + b_2)

    The paper normalises over the batch; here it is over the entries of each vector (Ba et al. 2016, arXiv 1607.06450),
    so that what is made of a text does not depend on its company.
    """

    options: ClassifierOptions

    def __init__(self, vocabulary: int, options: ClassifierOptions) -> None:
        """Build a model with fresh weights for `vocabulary` V and the labels of the options."""
        super().__init__()
        o = self.options = options
        self.language = LSTMLanguageModel(vocabulary, o.language)
        width = 3 * o.language.width
        self.first = nn.Sequential(nn.LayerNorm(width), nn.Dropout(o.dropout), nn.Linear(width, o.hidden))
        self.second = nn.Sequential(
            nn.LayerNorm(o.hidden), nn.Dropout(o.hidden_dropout), nn.Linear(o.hidden, len(o.labels))
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [B, labels] of texts ids [B, S], padded on the right, in the order that the model reads."""
        return self.judge(self.language.embedding(ids), ids != SPECIAL.pad)

    def judge(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """Return logits [B, labels] of embedded texts [B, S, D]; `mask` [B, S] is True where there is a token."""
        reading, _ = self.language.read_embedded(embedded, self.language.begin(len(mask), mask.device))
        return self.second(self.first(pooled(reading.features, mask)).relu())

    def after_each(self, ids: Tensor) -> Tensor:
        """Return what the labels' probabilities [B, S, labels] are when each token of ids [B, S] has just been read."""
        reading, _ = self.language.read_on(ids, self.language.begin(len(ids), ids.device))
        h = reading.features
        count = torch.arange(1, h.size(1) + 1, device=h.device, dtype=h.dtype)[:, None]
        seen = torch.cat([h, h.cummax(1).values, h.cumsum(1) / count], -1)
        return self.second(self.first(seen).relu()).float().softmax(-1)

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """See `Model`: the layers of the model of language, then the blocks."""
        return [*self.language.layer_groups(), [*self.first.parameters(), *self.second.parameters()]]


def pooled(h: Tensor, mask: Tensor) -> Tensor:
    """Return the last state, the maximum and the mean of states h [B, S, D] where mask [B, S] is True: [B, 3 D]."""
    lengths = mask.sum(1)
    last = h[torch.arange(len(h), device=h.device), lengths - 1]
    highest = h.masked_fill(~mask[..., None], -torch.inf).amax(1)
    mean = (h * mask[..., None]).sum(1) / lengths[:, None]
    return torch.cat([last, highest, mean], -1)
