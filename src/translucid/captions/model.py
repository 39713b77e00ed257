"""Image captioners, sequence models whose source is an image: that of Xu et al. 2015, and a Transformer.

"Show, Attend and Tell" is arXiv 1502.03044. Its decoder comes first, then the auxiliary losses, then the models. The
losses on the attention weights are those of the paper (sections 4.1 and 4.2.1); the detector of words in the image
follows Fang et al. 2015 (arXiv 1411.4952, section 3). The weights are alpha [B, T, S]; `real` [B, T] is False at
padding. Each loss on the weights is a sum over captions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.points import Point
from translucid.attention.scores import Concat
from translucid.captions.image_encoder import ImageEncoder
from translucid.captions.options import CaptionerOptions, CaptioningTransformerOptions
from translucid.ground.special import SpecialTokens
from translucid.kernels.dropout import Dropout
from translucid.kernels.linear import Linear
from translucid.layers.embedding import Embedding, output_projection, token_embedding
from translucid.layers.positions import NoPositions, SinusoidalPositions
from translucid.layers.recurrent import Recurrence
from translucid.models.protocol import Maps, Memory, SequenceModel, StateT
from translucid.models.recurrent import CROSS, OUTPUT, RecurrentDecoding, RecurrentMemory, RecurrentState
from translucid.models.transformer import BlockStacks, TransformerState

DRAWN = "decoder.0.drawn"
"""The name of the map of sampled cells, for hard attention in training: 1 at the cell, 0 elsewhere [N, 1, T, S]. In a
caption that is trained with soft attention, these are the weights."""


class AttentionDecoder(nn.Module):
    """Attend with the previous state, then read the last word together with the context, then predict the next word.

        e_ti = v^T tanh(W_a a_i + W_h h_{t-1}),   alpha_t = softmax(e_t)     equations 4 and 5
        beta_t = sigmoid(w h_{t-1} + b)                                      section 4.2.1
        z_t = beta_t sum_i alpha_ti a_i       soft                           equation 13
        z_t = beta_t a_i, i drawn by alpha_t  hard                           equations 8 and 9
        h_t = LSTM(h_{t-1}, [E y_{t-1}; z_t])                                equations 1 to 3
        p(y_t) ~ exp(L_o (E y_{t-1} + L_h h_t + L_z z_t))                    equation 7

    The features are the input of L_o, the output projection. Hard attention samples a cell in training, except for half
    of the captions, which are trained with soft attention (section 4.1); in evaluation it takes the most probable cell.

    In the order "read-first", h_t = LSTM(h_{t-1}, E y_{t-1}), and h_t replaces h_{t-1} as the query: one fused call
    runs the LSTM over all words, and all positions attend at once.
    """

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        width = options.width
        self.hard, self.reads_first = options.attention == "hard", options.order == "read-first"
        self.score = Concat(width, options.hidden)
        self.gate = Linear(width, 1) if options.gate else None
        inputs = width if self.reads_first else 2 * width
        self.recurrence = Recurrence("lstm", inputs, width, 1)
        self.hidden_projection = Linear(width, width)
        self.context_projection = Linear(width, width, bias=False)
        for projection in (self.hidden_projection, self.context_projection):
            nn.init.xavier_uniform_(projection.weight)
        self.at_weights, self.at_drawn = Point(f"{CROSS}.weights"), Point(f"{DRAWN}.weights")
        self.at_context, self.at_output = Point(f"{CROSS}.output"), Point(OUTPUT)

    def forward(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; k consecutive rows may share a memory of the state.

        Returns:
            The features [N, T, D] and the state after the last word.
        """
        soft = None
        if self.hard and self.training:
            soft = torch.rand(len(x), 1, 1, device=x.device) < 0.5  # one decision for a whole caption
        score = self.score.over(state.keys)
        if self.reads_first:
            hidden, cells = self.recurrence(x, state.cells)
            hidden = self.at_output(hidden, state.length)
            z = self._attend(hidden, state, score, soft, state.length)
        else:
            cells, states, contexts = state.cells, [], []
            for i, word in enumerate(x.unbind(1), state.length):
                context = self._attend(cells[0][-1][:, None], state, score, soft, i)
                output, cells = self.recurrence.step(torch.cat([word, context[:, 0]], -1), cells)
                contexts.append(context)
                states.append(output)
            hidden, z = self.at_output(torch.stack(states, 1), state.length), torch.cat(contexts, 1)
        features = x + self.hidden_projection(hidden) + self.context_projection(z)
        return features, state.after(x.size(1), cells)

    def _attend(
        self,
        h: Tensor,
        state: RecurrentState,
        score: Callable[[Tensor, Tensor], Tensor],
        soft: Tensor | None,
        first: int,
    ) -> Tensor:
        """Return the gated context z [N, T, D] of states h [N, T, D], the first of which is at the position `first`.

        `soft` [N, 1, 1] says which captions are trained with soft attention.
        """
        # All captions of an image attend together: [k B, T, D] -> [B, k T, D].
        query = h.reshape(len(state.memory), -1, h.size(-1))
        context, alpha = attend(query, state.keys, state.memory, state.mask, score)
        attention_weights = alpha.view(*h.shape[:2], -1)
        weights = self.at_weights(attention_weights[:, None], first)[:, 0]
        if self.hard:
            choice = self._choice(weights)
            if soft is not None:
                choice = torch.where(soft, weights, choice)
                self.at_drawn(choice[:, None], first)
            weights = choice
        if weights is not attention_weights:
            context = weights.view_as(alpha) @ state.memory
        z = context.view_as(h)
        if self.gate is not None:
            z = z * torch.sigmoid(self.gate(h))
        return self.at_context(z, first)

    def _choice(self, alpha: Tensor) -> Tensor:
        """Choose a cell by the weights alpha [N, T, S]; return 1 there and 0 elsewhere [N, T, S]."""
        flat = alpha.detach().float().flatten(0, 1)
        chosen = torch.multinomial(flat, 1)[:, 0] if self.training else flat.argmax(-1)
        return F.one_hot(chosen, flat.size(-1)).to(alpha.dtype).view_as(alpha)


class BlindDecoder(nn.Module):
    """The decoder without attention, whose only information about the image is its first state."""

    def __init__(self, options: CaptionerOptions) -> None:
        super().__init__()
        self.recurrence = Recurrence("lstm", options.width, options.width, 1)
        self.hidden_projection = Linear(options.width, options.width)
        nn.init.xavier_uniform_(self.hidden_projection.weight)
        self.at_output = Point(OUTPUT)

    def forward(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; there are no attention maps."""
        hidden, cells = self.recurrence(x, state.cells)
        features = x + self.hidden_projection(self.at_output(hidden, state.length))
        return features, state.after(x.size(1), cells)


class _ImageSource(SequenceModel[StateT]):
    """A sequence model whose source is an image."""

    options: CaptionerOptions | CaptioningTransformerOptions

    def source_mask(self, source: Tensor) -> Tensor:
        """Return a mask [B, S] that is True everywhere: an image has no padding."""
        rows, columns = self.options.grid
        return torch.ones(len(source), rows * columns, dtype=torch.bool, device=source.device)

    def empty_source(self) -> Tensor:
        """Return a black image."""
        size = self.options.image_encoder.size
        return torch.zeros(1, size, size, 3, dtype=torch.uint8)


def doubly_stochastic(weights: Tensor, real: Tensor) -> Tensor:
    """Return sum_i (1 - sum_t alpha_ti)^2 (equation 14): the attention to each cell should sum to 1 over a caption."""
    attention_to_cell = (weights * real[..., None]).sum(1)  # [B, S]
    return (1 - attention_to_cell).square().sum()


def reinforced(weights: Tensor, drawn: Tensor, real: Tensor, advantage: Tensor) -> Tensor:
    """Return -sum (log p(y) - b) log alpha of the sampled cells (equation 12; REINFORCE, Williams 1992).

    Its gradient increases the weights of the cells that made a caption more probable than the baseline b.

    Args:
        weights: alpha [B, T, S].
        drawn: [B, T, S], 1 at the sampled cell; for a caption that is trained with soft attention, the weights, which
            are ignored.
        real: [B, T], False at padding.
        advantage: log p(y) - b of each caption [B], without gradients.
    """
    is_drawn = drawn.detach().eq(1).to(weights.dtype)
    log_drawn = (weights.clamp(min=1e-10).log() * is_drawn).sum(-1)  # clamped, because log 0 = -inf and -inf * 0 = NaN
    return -(advantage[:, None] * log_drawn * real).sum()


def entropy(weights: Tensor, real: Tensor) -> Tensor:
    """Return sum_t H[alpha_t], the entropy of the attention in nats."""
    entropies = -(weights * weights.clamp(min=1e-10).log()).sum(-1)
    return (entropies * real).sum()


def undetected(scores: Tensor, words: Tensor, special: SpecialTokens[int]) -> Tensor:
    """Return the cross-entropy of a word detector, given the words of an image's captions: the mean over images [].

    A word is as probable in the image as it is in its cells together, p(v) ~ sum_i exp(score_iv). The expected words
    are the distinct words of the image's captions, weighted by inverse document frequency in the batch,
    log(B / number of images with the word).

    Args:
        scores: the score of each word in each cell [B, S, V].
        words: the ids of all captions of each image [B, k T].
        special: the ids that are no words.
    """
    expected = scores.new_zeros(len(words), scores.size(-1)).scatter_(1, words, 1.0)  # [B, V], 1 for each word
    for token in special:  # one by one: a GPU would wait for a list of indices from the host
        expected[:, token] = 0
    expected = expected * (len(words) / expected.sum(0).clamp(min=1)).log()
    share = expected / expected.sum(1, keepdim=True).clamp(min=1e-6)
    log_p = torch.logsumexp(scores.float(), 1).log_softmax(-1)
    return -(share * log_p).sum(1).mean()


class CaptioningLSTM(_ImageSource[RecurrentState], RecurrentDecoding):
    """An image encoder, the decoder of Xu et al. 2015 (arXiv 1502.03044), and an output projection.

    Its one attention map, if it has attention, is `decoder.0.cross` [B, 1, T, S].
    """

    options: CaptionerOptions
    decoder: BlindDecoder | AttentionDecoder

    def __init__(self, vocabulary: int, options: CaptionerOptions) -> None:
        super().__init__()
        o = self.options = options
        tokens = token_embedding(vocabulary, o.width)
        self.source_embedding = ImageEncoder(o, o.width, o.dropout)
        self.target_embedding = Embedding(tokens, NoPositions(), o.dropout)
        # Section 3.1.2: c_0 and h_0 are predicted from the mean of the annotation vectors, each by a perceptron.
        self.bridges = nn.ModuleList(Linear(o.width, o.width) for _ in range(2))
        self.decoder = BlindDecoder(o) if o.attention == "none" else AttentionDecoder(o)
        self.dropout = Dropout(o.dropout)
        self.output = output_projection(tokens, tied=o.tie_output)
        self.encoder_output = Point("encoder.output")
        self.decoder_input, self.decoder_output = Point("decoder.input"), Point("decoder.output")
        self.detector = Linear(o.width, vocabulary) if o.detector else None
        looks = o.attention == "hard" or (o.attention == "soft" and o.doubly_stochastic > 0)
        self.has_auxiliary_loss = looks or self.detector is not None
        if o.attention == "hard":
            # The moving average of log p(y) in training (section 4.1); a parameter, so that checkpoints contain it.
            self.baseline = nn.Parameter(torch.zeros(()), requires_grad=False)

    def read(self, embedded: Tensor, mask: Tensor) -> RecurrentMemory:
        """Return the cells [B, S, D] unchanged, and the decoder's first state, computed from their mean."""
        embedded = self.encoder_output(embedded)
        visible = mask.unsqueeze(-1).to(embedded.dtype)
        mean = (embedded * visible).sum(1) / visible.sum(1).clamp(min=1)
        hidden, cell = (torch.tanh(bridge(mean))[None] for bridge in self.bridges)
        return RecurrentMemory(embedded, mask, (hidden, cell))

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the decoder's features [N, T, D] for target ids [N, T]."""
        state = self.start(memory)
        captions = len(targets_in) // len(memory.states)  # k per image; they share its memory, but not its cells
        state = replace(state, cells=tuple(part.repeat_interleave(captions, 1) for part in state.cells))
        features, _ = self.read_on(targets_in, state)
        return features

    def auxiliary_loss(self, memory: Memory, labels: Tensor, maps: Maps, log_probs: Callable[[], Tensor]) -> Tensor:
        """Return the auxiliary losses that the options select, weighted and summed."""
        o, real = self.options, labels != self.pad
        loss = memory.states.new_zeros(())
        if o.attention != "none" and o.doubly_stochastic:
            loss = loss + o.doubly_stochastic * doubly_stochastic(maps[CROSS][:, 0], real)
        if o.attention == "hard":
            reward = log_probs().sum(1)
            with torch.no_grad():
                # A baseline of 0 is still the initial value; the first reward replaces it, the others move it by 10 %.
                self.baseline.lerp_(reward.mean(), torch.where(self.baseline == 0, 1.0, 0.1))
            weights, advantage = maps[CROSS][:, 0], reward - self.baseline
            loss = loss + o.reinforce * reinforced(weights, maps[DRAWN][:, 0], real, advantage)
            loss = loss - o.entropy * entropy(weights, real)
        if self.detector is not None:
            missed = undetected(self.detector(memory.states), labels.view(len(memory.states), -1), self.special)
            # A mean over images; the other losses are sums over tokens, like cross-entropy.
            loss = loss + o.detector * real.sum() * missed
        return loss


class CaptioningTransformer(_ImageSource[TransformerState], BlockStacks):
    """An image encoder, and the blocks of a Transformer (arXiv 1706.03762) over its grid."""

    options: CaptioningTransformerOptions

    def __init__(self, vocabulary: int, options: CaptioningTransformerOptions) -> None:
        o = options
        target = Embedding(token_embedding(vocabulary, o.width), SinusoidalPositions(o.width), o.dropout)
        super().__init__(o, ImageEncoder(o, o.width, o.dropout), target)
