"""Captioners as sequence models whose source is an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from translucid.kernels.dropout import Dropout
from translucid.kernels.linear import Linear
from translucid.layers.embedding import Embedding, output_projection, token_embedding
from translucid.layers.positions import NoPositions, SinusoidalPositions
from translucid.models.captioner.attention_losses import doubly_stochastic, entropy, reinforced, undetected
from translucid.models.captioner.decoder import DRAWN, AttentionDecoder, BlindDecoder
from translucid.models.captioner.image_encoder import ImageEncoder
from translucid.models.captioner_options import CaptionerOptions, CaptioningTransformerOptions
from translucid.models.protocol import Maps, Memory, SequenceModel, StateT
from translucid.models.recurrent import CROSS, RecurrentDecoding, RecurrentMemory, RecurrentState
from translucid.models.transformer import BlockStacks, TransformerState


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


class CaptioningLSTM(_ImageSource[RecurrentState], RecurrentDecoding):
    """An image encoder, the decoder of Xu et al. 2015 (arXiv 1502.03044), and an output projection.

    Its one attention map, if it has attention, is `decoder.0.cross` [B, 1, T, S].
    """

    options: CaptionerOptions
    decoder: BlindDecoder | AttentionDecoder

    def __init__(self, vocabulary: int, options: CaptionerOptions) -> None:
        """Build a model with fresh weights."""
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
        self.detector = Linear(o.width, vocabulary) if o.detector else None
        looks = o.attention == "hard" or (o.attention == "soft" and o.doubly_stochastic > 0)
        self.has_auxiliary_loss = looks or self.detector is not None
        if o.attention == "hard":
            # The moving average of log p(y) in training (section 4.1); a parameter, so that checkpoints contain it.
            self.baseline = nn.Parameter(torch.zeros(()), requires_grad=False)

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> RecurrentMemory:
        """Return the cells [B, S, D] unchanged, and the decoder's first state, computed from their mean."""
        visible = mask.unsqueeze(-1).to(embedded.dtype)
        mean = (embedded * visible).sum(1) / visible.sum(1).clamp(min=1)
        hidden, cell = (torch.tanh(bridge(mean))[None] for bridge in self.bridges)
        return RecurrentMemory(embedded, mask, (hidden, cell))

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the decoder's features [N, T, D] for target ids [N, T]."""
        state = self.start(memory)
        captions = len(targets_in) // len(memory.states)  # k per image; they share its memory, but not its cells
        state = replace(state, cells=tuple(part.repeat_interleave(captions, 1) for part in state.cells))
        features, _ = self.decoder(self.target_embedding(targets_in), state, maps)
        return self.dropout(features)

    def auxiliary_loss(self, memory: Memory, labels: Tensor, maps: Maps, log_probs: Callable[[], Tensor]) -> Tensor:
        """Return the losses of `attention_losses.py` that the options select, weighted and summed."""
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
        """Build a model with fresh weights."""
        o = options
        target = Embedding(token_embedding(vocabulary, o.width), SinusoidalPositions(o.width), o.dropout)
        super().__init__(o, ImageEncoder(o, o.width, o.dropout), target)
