"""A Transformer's decoder without a source: causal self-attention over a window of tokens (Radford et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from translucid.attention.multi_head import MultiHeadAttention
from translucid.kernels.attention import SharedMask, share_mask
from translucid.layers.embedding import Embedding, output_projection, token_embedding
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import SinusoidalPositions
from translucid.layers.residual import Residual
from translucid.models.language.model import LanguageModel, Reading
from translucid.models.language_options import TransformerLanguageOptions
from translucid.models.protocol import Maps, Memory

KeyValue = tuple[Tensor, Tensor]


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
        """Positions x [N, T, D] after those whose keys and values are `past` [N, H, t, d]; t may be 0.

        `mask` [T, t + T]: see `_window_mask`.

        Returns:
            [N, T, D], and the keys and values of all positions so far.
        """
        before, seen = past[0].size(2), past

        def self_attention(x: Tensor) -> Tensor:
            nonlocal seen
            key, value = self.self_attention.project(x)
            if before:
                key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
            seen = key, value
            output, weights = self.self_attention.look(x, key, value, mask, causal=not before, weights=maps is not None)
            if maps is not None and weights is not None:
                maps[f"{name}.self"] = weights
            return output

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, self.feed_forward)
        return x, seen


@dataclass(frozen=True)
class WindowState:
    """What is remembered of a window: its tokens, and the keys and values of each layer."""

    ids: Tensor
    """[N, t]."""
    past: tuple[KeyValue, ...]
    """Of each layer, [N, H, t, d]."""

    def select(self, rows: Tensor) -> WindowState:
        """Reorder, repeat or drop hypotheses."""
        return self.of(tuple(part.index_select(0, rows) for part in self.tensors()))

    def tensors(self) -> tuple[Tensor, ...]:
        """See `Carried`."""
        return (self.ids, *(part.detach() for pair in self.past for part in pair))

    @classmethod
    def of(cls, tensors: tuple[Tensor, ...]) -> WindowState:
        """See `Carried`."""
        ids, *parts = tensors
        return cls(ids, tuple(zip(parts[::2], parts[1::2], strict=True)))


class TransformerLanguageModel(LanguageModel[WindowState]):
    """L causal blocks between embeddings and an output projection that shares them.

        x^0_t = E w_t + P_t,  x^l = block(x^{l-1}),  p(w_{t+1}) = softmax(W x^L_t + b)

    P_t says how far a token is from the beginning of its window. Nothing is carried from window to window: where one
    has `context` tokens, its last half becomes the beginning of the next.
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
        # A stack of pre-norm blocks ends without a norm, so it gets one.
        self.decoder_norm = nn.LayerNorm(o.width) if o.norm == "pre" else nn.Identity()
        self.output = output_projection(self.embedding.tokens, tied=o.tie_output)

    def begin(self, rows: int, device: torch.device) -> WindowState:
        """See `LanguageModel`."""
        o = self.options
        none = torch.zeros(rows, o.heads, 0, o.width // o.heads, device=device)
        return WindowState(torch.zeros(rows, 0, dtype=torch.long, device=device), ((none, none),) * o.layers)

    def read_on(self, ids: Tensor, state: WindowState) -> tuple[Reading, WindowState]:
        """See `LanguageModel`."""
        return self._read(ids, state, None)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the features [B, T, D] of texts that begin with the start token."""
        return self._read(targets_in, self.start(memory), maps)[0].features

    def advance(self, tokens: Tensor, state: WindowState) -> tuple[Tensor, WindowState]:
        """Feed one token a row [N]: the features [N, D] and the state after it."""
        if state.ids.size(1) >= self.options.context:
            kept = state.ids[:, -(self.options.context // 2) :]
            _, state = self.read_on(kept, self.begin(len(tokens), tokens.device))
        return super().advance(tokens, state)

    def _read(self, ids: Tensor, state: WindowState, maps: Maps | None) -> tuple[Reading, WindowState]:
        x = self.embedding(ids, state.ids.size(1))
        mask = _window_mask(state.ids.size(1), ids.size(1), x.device)
        seen, past = [x], []
        for i, (block, before) in enumerate(zip(self.decoder, state.past, strict=True)):
            x, after = block(x, before, mask, maps, f"decoder.{i}")
            seen.append(x)
            past.append(after)
        return Reading(self.decoder_norm(x), seen), WindowState(torch.cat([state.ids, ids], 1), tuple(past))


def _window_mask(before: int, length: int, device: torch.device) -> SharedMask | None:
    """Return the mask [T, t + T] of T new tokens after t: token i sees t + i + 1 of all.

    None where it is not needed: one token sees all, and without a past the mask is the causal one, which kernels know.
    """
    if not before or length == 1:
        return None
    return share_mask(torch.ones(length, before + length, dtype=torch.bool, device=device).tril(before))
