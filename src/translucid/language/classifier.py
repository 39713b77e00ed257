"""The text classifier of Howard and Ruder 2018 (ULMFiT, arXiv 1801.06146, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.language.lstm import BidirectionalLSTM, LSTMLanguageModel, Mix
from translucid.language.options import BiLSTMLanguageOptions, ClassifierOptions
from translucid.models.protocol import Model


class Classifier(Model):
    """A language model that reads the text, and two blocks that compute the label from all its states.

        h_c = [norm(h_T), norm(max_t h_t), norm(mean_t h_t)]
        z = relu(W_1 drop(h_c) + b_1),    p(label) = softmax(W_2 drop(norm(z)) + b_2)

    h are the features of an `LSTMLanguageModel`, or ELMo's vectors, the mix of all layers of a `BidirectionalLSTM`
    (Peters et al. 2018, arXiv 1802.05365, equation 1).

    The paper uses batch normalization. Layer normalization (Ba et al. 2016, arXiv 1607.06450) makes the result for a
    text independent of the other texts in its batch. It is separate for the three parts, as maxima are larger than
    means.
    """

    options: ClassifierOptions

    def __init__(self, vocabulary: int, options: ClassifierOptions, pieces: Sequence[str] = ()) -> None:
        """Build a model with fresh weights for a vocabulary of V `pieces` and the labels of the options."""
        super().__init__()
        o = self.options = options
        self.language: LSTMLanguageModel | BidirectionalLSTM
        if isinstance(o.language, BiLSTMLanguageOptions):
            self.language = BidirectionalLSTM(vocabulary, o.language, pieces)
            self.mix = Mix(1 + o.language.layers, normalize=True)
        else:
            self.language = LSTMLanguageModel(vocabulary, o.language)
        width = 3 * o.language.directions * o.language.width
        self.first = nn.Sequential(ThirdsNorm(width), nn.Dropout(o.dropout), nn.Linear(width, o.hidden))
        self.second = nn.Sequential(
            nn.LayerNorm(o.hidden), nn.Dropout(o.hidden_dropout), nn.Linear(o.hidden, len(o.labels))
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [B, labels] for texts ids [B, S], padded on the right, in the model's reading order."""
        return self.classify(self.language.embedding(ids), ids != SPECIAL.pad)

    def classify(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """Return logits [B, labels] for embedded texts [B, S, D]; `mask` [B, S] is True where there is a token."""
        h = self._states(embedded, mask)
        return self.second(self.first(pooled(h, mask)).relu())

    def _states(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """Return h [B, S, D], or [B, S, 2 D] for two directions."""
        if isinstance(self.language, BidirectionalLSTM):
            return self.mix(self.language.read_both_directions(embedded, mask))
        start = self.language.begin(len(mask), mask.device)
        reading, _ = self.language.read_embedded(embedded, start)
        return reading.features

    def prefix_probabilities(self, ids: Tensor) -> Tensor:
        """Return the probabilities of the labels [B, S, labels] after each token of ids [B, S].

        Raises:
            UserError: the model reads from both ends.
        """
        if isinstance(self.language, BidirectionalLSTM):
            fix = "See translucid explain, which leaves words out."
            raise UserError("a classifier that reads from both ends has read the whole text at each word", fix=fix)
        reading, _ = self.language.read_on(ids, self.language.begin(len(ids), ids.device))
        h = reading.features
        count = torch.arange(1, h.size(1) + 1, device=h.device, dtype=h.dtype)[:, None]
        # `pooled` for every prefix of the text: the last state, the running maximum and the running mean.
        prefixes = torch.cat([h, h.cummax(1).values, h.cumsum(1) / count], -1)  # [B, S, 3 D]
        return self.second(self.first(prefixes).relu()).float().softmax(-1)

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """Return the layers of the language model, then the blocks of the classifier as one group."""
        blocks = [weight for name, weight in self.named_parameters() if not name.startswith("language.")]
        return [*self.language.layer_groups(), blocks]


class ThirdsNorm(nn.LayerNorm):
    """Layer normalization of each third of a vector separately."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize x [.., 3 D]."""
        thirds = x.unflatten(-1, (3, -1))
        return F.layer_norm(thirds, thirds.shape[-1:], eps=self.eps).flatten(-2) * self.weight + self.bias


def pooled(h: Tensor, mask: Tensor) -> Tensor:
    """Concatenate the last, the maximum and the mean of states h [B, S, D] where `mask` [B, S] is True: [B, 3 D]."""
    lengths = mask.sum(1)
    last = h[torch.arange(len(h), device=h.device), lengths - 1]
    highest = h.masked_fill(~mask[..., None], -torch.inf).amax(1)
    mean = (h * mask[..., None]).sum(1) / lengths[:, None]
    return torch.cat([last, highest, mean], -1)
