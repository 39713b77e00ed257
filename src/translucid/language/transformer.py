"""The decoder-only Transformer: causal self-attention over a window of tokens (Radford et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from translucid.attention.multi_head import MultiHeadAttention, append_to_kv_cache
from translucid.attention.points import Point
from translucid.attention.tree import KeyValue
from translucid.kernels.attention import SharedMask, share_mask
from translucid.language.model import LanguageModel, Reading
from translucid.language.options import TransformerLanguageOptions
from translucid.layers.embedding import Embedding, output_projection, token_embedding
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import SinusoidalPositions
from translucid.layers.residual import Residual, final_norm


class CausalBlock(nn.Module):
    """Causal self-attention, then feed-forward."""

    def __init__(self, options: TransformerLanguageOptions, name: str) -> None:
        """`name`: that of the block's points, such as `decoder.0`."""
        super().__init__()
        o = options
        self.self_attention = MultiHeadAttention(o.width, o.heads, f"{name}.self")
        self.feed_forward = FeedForward(o.width, o.feed_forward)
        self.residuals = nn.ModuleList(Residual(o.width, o.dropout, o.norm) for _ in range(2))
        self.after_self = Point(f"{name}.after_self")
        self.at_feed_forward_input = Point(f"{name}.feed_forward_input")
        self.at_feed_forward, self.at_output = Point(f"{name}.feed_forward"), Point(f"{name}.output")

    def forward(self, x: Tensor, kv_cache: KeyValue, mask: SharedMask | None) -> tuple[Tensor, KeyValue]:
        """Compute positions x [N, T, D] after those whose keys and values are `kv_cache` [N, H, t, d]; t may be 0.

        `mask` [T, t + T] is that of `_window_mask`.

        Returns:
            The output [N, T, D], and the keys and values of all positions so far.
        """
        first, keys_and_values = kv_cache[0].size(2), kv_cache

        def self_attention(x: Tensor) -> Tensor:
            nonlocal keys_and_values
            key, value = self.self_attention.project(x)
            if first:
                key, value = append_to_kv_cache(kv_cache, key, value)
            keys_and_values = key, value
            return self.self_attention.attend_heads(x, key, value, mask, causal=not first, first=first)

        def feed_forward(x: Tensor) -> Tensor:
            return self.at_feed_forward(self.feed_forward(self.at_feed_forward_input(x, first)), first)

        x = self.after_self(self.residuals[0](x, self_attention), first)
        x = self.residuals[1](x, feed_forward)
        return self.at_output(x, first), keys_and_values


@dataclass(frozen=True)
class WindowState:
    """The state of a window: its tokens, and the keys and values of each layer."""

    ids: Tensor
    """The tokens [N, t]."""
    past: tuple[KeyValue, ...]
    """The keys and values of each layer, [N, H, t, d]."""

    def select(self, rows: Tensor) -> WindowState:
        """Return the state of the hypotheses `rows` [N], which may repeat, reorder or drop them."""
        return self.of(tuple(part.index_select(0, rows) for part in self.tensors()))

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tokens, then the keys and values of each layer, without gradients."""
        return (self.ids, *(part.detach() for part in chain.from_iterable(self.past)))

    @classmethod
    def of(cls, tensors: tuple[Tensor, ...]) -> WindowState:
        """Return the state with the tensors that `tensors` returned."""
        ids, *parts = tensors
        return cls(ids, tuple(zip(parts[::2], parts[1::2], strict=True)))


class TransformerLanguageModel(LanguageModel[WindowState]):
    """L causal blocks between embeddings and an output projection that shares them.

        x^0_t = E w_t + P_t,  x^l = block(x^{l-1}),  p(w_{t+1}) = softmax(W x^L_t + b)

    P_t is the distance of a token from the beginning of its window. Training carries no state from window to window. In
    generation, a window of `context` tokens is full, and its last half becomes the beginning of the next one.
    """

    options: TransformerLanguageOptions
    carries_state = False
    has_layer_states = True

    def __init__(self, vocabulary: int, options: TransformerLanguageOptions) -> None:
        super().__init__(vocabulary, options.width)
        o = self.options = options
        self.context = o.context
        self.embedding = Embedding(token_embedding(vocabulary, o.width), SinusoidalPositions(o.width), o.dropout)
        self.decoder = nn.ModuleList(CausalBlock(o, f"decoder.{i}") for i in range(o.layers))
        self.decoder_norm = final_norm(o.width, o.norm)
        self.output = output_projection(self.embedding.tokens, tied=o.tie_output)
        self.decoder_input, self.decoder_output = Point("decoder.input"), Point("decoder.output")

    def begin(self, rows: int, device: torch.device) -> WindowState:
        """Return the state of an empty window."""
        o = self.options
        no_keys = torch.zeros(rows, o.heads, 0, o.width // o.heads, device=device)
        no_tokens = torch.zeros(rows, 0, dtype=torch.long, device=device)
        return WindowState(no_tokens, ((no_keys, no_keys),) * o.layers)

    def read_on(self, ids: Tensor, state: WindowState) -> tuple[Reading, WindowState]:
        """Read tokens ids [B, T] after those of the window."""
        first = state.ids.size(1)
        x = self.decoder_input(self.embedding(ids, first), first)
        mask = _window_mask(first, ids.size(1), x.device)
        layers, past = [x], []
        for block, layer_past in zip(self.decoder, state.past, strict=True):
            x, keys_and_values = block(x, layer_past, mask)
            layers.append(x)
            past.append(keys_and_values)
        features = self.decoder_output(self.decoder_norm(x), first)
        return Reading(features, layers), WindowState(torch.cat([state.ids, ids], 1), tuple(past))

    def advance(self, tokens: Tensor, state: WindowState) -> tuple[Tensor, WindowState]:
        """Feed one token per row [N]; return the features [N, D] and the state after the token."""
        if state.ids.size(1) >= self.options.context:
            # The remaining tokens have new positions, so their keys and values are computed again.
            remaining = state.ids[:, -(self.options.context // 2) :]
            _, state = self.read_on(remaining, self.begin(len(tokens), tokens.device))
        return super().advance(tokens, state)


def _window_mask(past_length: int, length: int, device: torch.device) -> SharedMask | None:
    """Return the mask [T, t + T] of T new tokens after t earlier ones: token i may attend to the first t + i + 1.

    None if no mask is needed: a single token may attend to all, and without earlier tokens, the kernel is causal.
    """
    if not past_length or length == 1:
        return None
    return share_mask(torch.ones(length, past_length + length, dtype=torch.bool, device=device).tril(past_length))
