"""An attention-only Transformer, for teaching."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.masks import causal_mask
from translucid.attention.scores import Dot
from translucid.layers.embedding import Embedding, output_projection, token_embeddings
from translucid.layers.positions import SinusoidalPositions
from translucid.models.model_options import AttentionOnlyOptions
from translucid.models.protocol import Maps, Memory, SequenceModel


class BareAttention(nn.Module):
    """softmax(g Q K^T) V with a learned scale g: no projections, heads, residuals, normalisation or feed-forward."""

    def __init__(self, width: int) -> None:
        """Start with g = 1 / sqrt(D), as in arXiv 1706.03762, for `width` D."""
        super().__init__()
        self.score = Dot(scaled=True, first=1 / math.sqrt(width))

    def forward(
        self, query: Tensor, memory: Tensor, mask: Tensor | None, maps: Maps | None = None, name: str = ""
    ) -> Tensor:
        """Attend from a query [B, T, D] to a memory [B, S, D] and return the context [B, T, D]."""
        context, weights = attend(query, memory, mask=mask, score=self.score)
        if maps is not None:
            maps[name] = weights[:, None]  # [B, T, S] -> [B, 1, T, S]: one head
        return context


@dataclass(frozen=True)
class AttentionOnlyState:
    """The inputs of each decoder layer so far, which are its keys and values."""

    length: int
    """t, the number of tokens so far."""
    past: list[Tensor]
    """The keys of each layer's self-attention, [N, t, D]."""
    memory: Tensor
    """The encoder's output [N, S, D]."""
    mask: Tensor
    """[N, 1, S], True where the decoder may look."""

    def select(self, rows: Tensor) -> AttentionOnlyState:
        """Return the state of the hypotheses `rows` [N], which may repeat, reorder or drop them."""
        return replace(
            self,
            past=[layer.index_select(0, rows) for layer in self.past],
            memory=self.memory.index_select(0, rows),
            mask=self.mask.index_select(0, rows),
        )


class AttentionOnly(SequenceModel[AttentionOnlyState]):
    """A stack of bare attention layers on each side."""

    def __init__(self, source_vocabulary: int, target_vocabulary: int, options: AttentionOnlyOptions) -> None:
        """Build a model with fresh weights.

        Raises:
            ValueError: the options share embeddings between two different vocabularies.
        """
        super().__init__()
        o = self.options = options
        source, target = token_embeddings(source_vocabulary, target_vocabulary, o.width, shared=o.share_embeddings)
        self.source_embedding = Embedding(source, SinusoidalPositions(o.width), o.dropout)
        self.target_embedding = Embedding(target, SinusoidalPositions(o.width), o.dropout)
        self.encoder = nn.ModuleList(BareAttention(o.width) for _ in range(o.encoder_layers))
        self.decoder_self = nn.ModuleList(BareAttention(o.width) for _ in range(o.decoder_layers))
        self.decoder_cross = nn.ModuleList(BareAttention(o.width) for _ in range(o.decoder_layers))
        self.output = output_projection(target, tied=o.tie_output)

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> Memory:
        """Read embedded sources [B, S, D] into states [B, S, D]."""
        x = embedded
        for i, self_attention in enumerate(self.encoder):
            x = self_attention(x, x, mask[:, None], maps, f"encoder.{i}.self")
        return Memory(x, mask)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the last decoder states [B, T, D] for target ids [B, T]."""
        x = self.target_embedding(targets_in)
        no_future = causal_mask(x.size(1), x.device)
        for i, (self_attention, cross_attention) in enumerate(zip(self.decoder_self, self.decoder_cross, strict=True)):
            x = self_attention(x, x, no_future, maps, f"decoder.{i}.self")
            x = cross_attention(x, memory.states, memory.mask[:, None], maps, f"decoder.{i}.cross")
        return x

    def start(self, memory: Memory) -> AttentionOnlyState:
        """Return the state before the first token."""
        no_keys = memory.states[:, :0]  # [N, 0, D]
        return AttentionOnlyState(0, [no_keys] * len(self.decoder_self), memory.states, memory.mask[:, None])

    def advance(self, tokens: Tensor, state: AttentionOnlyState) -> tuple[Tensor, AttentionOnlyState]:
        """Feed one token per row [N]; return the last decoder states [N, D] and the state after the token."""
        x = self.target_embedding(tokens[:, None], state.length)
        past = []
        layers = zip(self.decoder_self, self.decoder_cross, state.past, strict=True)
        for self_attention, cross_attention, keys in layers:
            keys = torch.cat([keys, x], 1)
            past.append(keys)
            x = self_attention(x, keys, None)  # the last position may look at all before it, so it needs no mask
            x = cross_attention(x, state.memory, state.mask)
        return x[:, 0], replace(state, length=state.length + 1, past=past)
