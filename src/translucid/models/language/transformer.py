"""A decoder-only Transformer: causal self-attention over a window of tokens (Radford et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from translucid.attention.multi_head import KeyValue, MultiHeadAttention, append
from translucid.kernels.attention import SharedMask, share_mask
from translucid.layers.embedding import Embedding, output_projection, token_embedding
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import SinusoidalPositions
from translucid.layers.residual import Residual, final_norm
from translucid.models.language.model import LanguageModel, Reading
from translucid.models.language_options import TransformerLanguageOptions
from translucid.models.protocol import Maps, Memory


class CausalBlock(nn.Module):
    """Causal self-attention, then feed-forward."""

    def __init__(self, options: TransformerLanguageOptions) -> None:
        super().__init__()
        o = options
        self.self_attention = MultiHeadAttention(o.width, o.heads)
        self.feed_forward = FeedForward(o.width, o.feed_forward)
        self.residuals = nn.ModuleList(Residual(o.width, o.dropout, o.norm) for _ in range(2))

    def forward(
        self, x: Tensor, past: KeyValue, mask: SharedMask | None, maps: Maps | None, name: str
    ) -> tuple[Tensor, KeyValue]:
        """Compute positions x [N, T, D] after those whose keys and values are `past` [N, H, t, d]; t may be 0.

        `mask` [T, t + T] is that of `_window_mask`.

        Returns:
            The output [N, T, D], and the keys and values of all positions so far.
        """
        before, keys_and_values = past[0].size(2), past

        def self_attention(x: Tensor) -> Tensor:
            nonlocal keys_and_values
            key, value = self.self_attention.project(x)
            if before:
                key, value = append(past, key, value)
            keys_and_values = key, value
            output, weights = self.self_attention.attend_heads(
                x, key, value, mask, causal=not before, weights=maps is not None
            )
            if maps is not None and weights is not None:
                maps[f"{name}.self"] = weights
            return output

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, self.feed_forward)
        return x, keys_and_values


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
    carries = False

    def __init__(self, vocabulary: int, options: TransformerLanguageOptions) -> None:
        """Build a model with fresh weights."""
        super().__init__(vocabulary, options.width)
        o = self.options = options
        self.context = o.context
        self.embedding = Embedding(token_embedding(vocabulary, o.width), SinusoidalPositions(o.width), o.dropout)
        self.decoder = nn.ModuleList(CausalBlock(o) for _ in range(o.layers))
        self.decoder_norm = final_norm(o.width, o.norm)
        self.output = output_projection(self.embedding.tokens, tied=o.tie_output)

    def begin(self, rows: int, device: torch.device) -> WindowState:
        """Return the state of an empty window."""
        o = self.options
        no_keys = torch.zeros(rows, o.heads, 0, o.width // o.heads, device=device)
        no_tokens = torch.zeros(rows, 0, dtype=torch.long, device=device)
        return WindowState(no_tokens, ((no_keys, no_keys),) * o.layers)

    def read_on(self, ids: Tensor, state: WindowState) -> tuple[Reading, WindowState]:
        """Read tokens ids [B, T] after those of the window."""
        return self._read(ids, state, None)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the features [B, T, D] of texts that begin with the start token."""
        reading, _ = self._read(targets_in, self.start(memory), maps)
        return reading.features

    def advance(self, tokens: Tensor, state: WindowState) -> tuple[Tensor, WindowState]:
        """Feed one token per row [N]; return the features [N, D] and the state after the token."""
        if state.ids.size(1) >= self.options.context:
            # The remaining tokens have new positions, so their keys and values are computed again.
            remaining = state.ids[:, -(self.options.context // 2) :]
            _, state = self.read_on(remaining, self.begin(len(tokens), tokens.device))
        return super().advance(tokens, state)

    def _read(self, ids: Tensor, state: WindowState, maps: Maps | None) -> tuple[Reading, WindowState]:
        x = self.embedding(ids, state.ids.size(1))
        mask = _window_mask(state.ids.size(1), ids.size(1), x.device)
        layers, past = [x], []
        for i, (block, earlier) in enumerate(zip(self.decoder, state.past, strict=True)):
            x, keys_and_values = block(x, earlier, mask, maps, f"decoder.{i}")
            layers.append(x)
            past.append(keys_and_values)
        return Reading(self.decoder_norm(x), layers), WindowState(torch.cat([state.ids, ids], 1), tuple(past))


def _window_mask(before: int, length: int, device: torch.device) -> SharedMask | None:
    """Return the mask [T, t + T] of T new tokens after t earlier ones: token i may look at the first t + i + 1.

    None if no mask is needed: a single token may look at all, and without earlier tokens kernels know the causal mask.
    """
    if not before or length == 1:
        return None
    return share_mask(torch.ones(length, before + length, dtype=torch.bool, device=device).tril(before))
