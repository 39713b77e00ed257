"""A Transformer of attention and nothing else: a teaching model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.masks import causal_mask
from translucid.attention.scores import Dot
from translucid.ground.special import SPECIAL, SpecialTokens
from translucid.layers.embedding import Embedding, output_projection, token_embeddings
from translucid.layers.positions import SinusoidalPositions
from translucid.models.model_options import AttentionOnlyOptions
from translucid.models.protocol import Maps, Memory, SequenceModel


class BareAttention(nn.Module):
    """softmax(g Q K^T) V with a learned scale g: no projections, no heads, no skip, no norm, no feed-forward."""

    def __init__(self, width: int) -> None:
        """`width`: D; g begins at the 1 / sqrt(D) of arXiv 1706.03762."""
        super().__init__()
        self.score = Dot(scaled=True, first=1 / math.sqrt(width))

    def forward(
        self, query: Tensor, memory: Tensor, mask: Tensor | None, maps: Maps | None = None, name: str = ""
    ) -> Tensor:
        """query [B, T, D], memory [B, S, D] -> [B, T, D]."""
        context, weights = attend(query, memory, mask=mask, score=self.score)
        if maps is not None:
            maps[name] = weights[:, None]
        return context


@dataclass(frozen=True)
class AttentionOnlyState:
    """The inputs of each layer of the decoder so far, which are its keys and values."""

    length: int
    """Tokens seen so far, t."""
    past: list[Tensor]
    """Of each layer's self-attention, [N, t, D]."""
    memory: Tensor
    """[N, S, D]."""
    mask: Tensor
    """[N, 1, S], where the source may be looked at."""

    def select(self, rows: Tensor) -> AttentionOnlyState:
        """Reorder, repeat or drop hypotheses."""
        return replace(
            self,
            past=[layer.index_select(0, rows) for layer in self.past],
            memory=self.memory.index_select(0, rows),
            mask=self.mask.index_select(0, rows),
        )


class AttentionOnly(SequenceModel[AttentionOnlyState]):
    """A stack of bare attention layers on each side."""

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        options: AttentionOnlyOptions,
        special: SpecialTokens[int] = SPECIAL,
    ) -> None:
        """Build a model with fresh weights.

        Raises:
            ValueError: embeddings are to be shared between two different vocabularies.
        """
        super().__init__(special)
        o = self.options = options
        source_tokens, target_tokens = token_embeddings(
            source_vocabulary, target_vocabulary, o.width, shared=o.share_embeddings
        )
        self.source_embedding = Embedding(source_tokens, SinusoidalPositions(o.width), o.dropout)
        self.target_embedding = Embedding(target_tokens, SinusoidalPositions(o.width), o.dropout)
        self.encoder = nn.ModuleList(BareAttention(o.width) for _ in range(o.encoder_layers))
        self.decoder_self = nn.ModuleList(BareAttention(o.width) for _ in range(o.decoder_layers))
        self.decoder_cross = nn.ModuleList(BareAttention(o.width) for _ in range(o.decoder_layers))
        self.output = output_projection(target_tokens, tied=o.tie_output)

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> Memory:
        """Read embedded sources [B, S, D] into states [B, S, D]."""
        x = embedded
        for i, look in enumerate(self.encoder):
            x = look(x, x, mask[:, None], maps, f"encoder.{i}.self")
        return Memory(x, mask)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the last decoder states [B, T, D] for target ids [B, T]."""
        x = self.target_embedding(targets_in)
        past = causal_mask(x.size(1), x.device)
        for i, (look_back, look_across) in enumerate(zip(self.decoder_self, self.decoder_cross, strict=True)):
            x = look_back(x, x, past, maps, f"decoder.{i}.self")
            x = look_across(x, memory.states, memory.mask[:, None], maps, f"decoder.{i}.cross")
        return x

    def start(self, memory: Memory) -> AttentionOnlyState:
        """Return the state before the first token."""
        nothing = memory.states[:, :0]
        return AttentionOnlyState(0, [nothing for _ in self.decoder_self], memory.states, memory.mask[:, None])

    def advance(self, tokens: Tensor, state: AttentionOnlyState) -> tuple[Tensor, AttentionOnlyState]:
        """Feed one token a row [N]: the last decoder states [N, D] and the state after it."""
        x, past = self.target_embedding(tokens[:, None], state.length), []
        for look_back, look_across, before in zip(self.decoder_self, self.decoder_cross, state.past, strict=True):
            past.append(torch.cat([before, x], 1))
            x = look_across(look_back(x, past[-1], None), state.memory, state.mask)
        return x[:, 0], replace(state, length=state.length + 1, past=past)
