"""An attention-only Transformer, for teaching."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.masks import causal_mask
from translucid.attention.points import Point
from translucid.attention.scores import Dot
from translucid.layers.embedding import Embedding, output_projection, token_embeddings
from translucid.layers.positions import SinusoidalPositions
from translucid.models.model_options import AttentionOnlyOptions
from translucid.models.protocol import Memory, SequenceModel


class BareAttention(nn.Module):
    """softmax(g Q K^T) V with a learned scale g: no projections, heads, residuals, normalization or feed-forward."""

    def __init__(self, width: int, name: str, output: str) -> None:
        """Start with g = 1 / sqrt(D), as in arXiv 1706.03762, for `width` D.

        `name` is that of the point of the weights, such as `encoder.0.self`, `output` that of the point of the context.
        """
        super().__init__()
        self.score = Dot(scaled=True, initial_scale=1 / math.sqrt(width))
        self.at_weights, self.at_output = Point(f"{name}.weights"), Point(output)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None, first: int = 0) -> Tensor:
        """Attend from a query [B, T, D] to a memory [B, S, D] and return the context [B, T, D].

        `first` is the position of the first query, for the points.
        """
        replacement = self.at_weights.replacement(first, single_head=True)
        context, _ = attend(query, memory, mask=mask, score=self.score, replacement=replacement)
        return self.at_output(context, first)


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
    """[N, 1, S], True where the decoder may attend."""

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

    has_layer_states = True

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
        self.encoder, self.decoder_self, self.decoder_cross = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for i in range(o.encoder_layers):
            self.encoder.append(BareAttention(o.width, f"encoder.{i}.self", f"encoder.{i}.output"))
        for i in range(o.decoder_layers):
            self.decoder_self.append(BareAttention(o.width, f"decoder.{i}.self", f"decoder.{i}.after_self"))
            self.decoder_cross.append(BareAttention(o.width, f"decoder.{i}.cross", f"decoder.{i}.output"))
        self.output = output_projection(target, tied=o.tie_output)
        self.encoder_input, self.encoder_output = Point("encoder.input"), Point("encoder.output")
        self.decoder_input, self.decoder_output = Point("decoder.input"), Point("decoder.output")

    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        """Read embedded sources [B, S, D] into states [B, S, D]."""
        x = self.encoder_input(embedded)
        for self_attention in self.encoder:
            x = self_attention(x, x, mask[:, None])
        return Memory(self.encoder_output(x), mask)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the last decoder states [B, T, D] for target ids [B, T]."""
        x = self.decoder_input(self.target_embedding(targets_in))
        no_future = causal_mask(x.size(1), x.device)
        for self_attention, cross_attention in zip(self.decoder_self, self.decoder_cross, strict=True):
            x = self_attention(x, x, no_future)
            x = cross_attention(x, memory.states, memory.mask[:, None])
        return self.decoder_output(x)

    def start(self, memory: Memory) -> AttentionOnlyState:
        """Return the state before the first token."""
        no_keys = memory.states[:, :0]  # [N, 0, D]
        return AttentionOnlyState(0, [no_keys] * len(self.decoder_self), memory.states, memory.mask[:, None])

    def advance(self, tokens: Tensor, state: AttentionOnlyState) -> tuple[Tensor, AttentionOnlyState]:
        """Feed one token per row [N]; return the last decoder states [N, D] and the state after the token."""
        first, past = state.length, []
        x = self.decoder_input(self.target_embedding(tokens[:, None], first), first)
        layers = zip(self.decoder_self, self.decoder_cross, state.past, strict=True)
        for self_attention, cross_attention, keys in layers:
            keys = torch.cat([keys, x], 1)
            past.append(keys)
            x = self_attention(x, keys, None, first)  # the last position may attend to all before it: no mask
            x = cross_attention(x, state.memory, state.mask, first)
        return self.decoder_output(x, first)[:, 0], replace(state, length=first + 1, past=past)
