"""Other toolkits' translation models of one size and with fresh weights: `torch.nn.Transformer` and MarianMTModel."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Shape(NamedTuple):
    """The size of a Transformer and its special token ids."""

    layers: int
    """The number of layers of the encoder, and of the decoder."""
    width: int
    feed_forward: int
    heads: int
    dropout: float
    entries: int
    """The size of the joint vocabulary."""
    padding: int
    start: int
    end: int


class Tutorial(nn.Module):
    """torch.nn.Transformer with sinusoidal positions and tied embeddings, as tutorials build it."""

    def __init__(self, shape: Shape, *, causal_hint: bool | None = None) -> None:
        """`causal_hint`: True tells PyTorch that the decoder's mask is causal; if not given, PyTorch looks at it."""
        super().__init__()
        self.shape, self.causal_hint = shape, causal_hint
        self.embedding = nn.Embedding(shape.entries, shape.width, padding_idx=shape.padding)
        angle = torch.arange(512)[:, None] * torch.exp(torch.arange(0, shape.width, 2) * (-math.log(1e4) / shape.width))
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        self.dropout = nn.Dropout(shape.dropout)
        self.transformer = nn.Transformer(
            shape.width, shape.heads, shape.layers, shape.layers, shape.feed_forward, shape.dropout, batch_first=True
        )
        self.output = nn.Linear(shape.width, shape.entries)
        self.output.weight = self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        """Return embeddings [B, T, D] of ids [B, T]."""
        return self.dropout(self.embedding(ids) * math.sqrt(self.shape.width) + self.positions[: ids.size(1)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits [B, T, V], teacher-forced."""
        padding = source == self.shape.padding
        future = torch.ones(target.size(1), target.size(1), dtype=torch.bool, device=target.device).triu(1)
        states = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=self.causal_hint,
        )
        return self.output(states)


def marian_model(shape: Shape, first: int) -> Any:
    """Return Hugging Face's MarianMTModel, whose decoder starts with `first`; not every environment can import it."""
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(
        MarianConfig(
            vocab_size=shape.entries,
            d_model=shape.width,
            encoder_layers=shape.layers,
            decoder_layers=shape.layers,
            encoder_attention_heads=shape.heads,
            decoder_attention_heads=shape.heads,
            encoder_ffn_dim=shape.feed_forward,
            decoder_ffn_dim=shape.feed_forward,
            dropout=shape.dropout,
            activation_function="relu",
            max_position_embeddings=512,
            pad_token_id=shape.padding,
            bos_token_id=shape.start,
            eos_token_id=shape.end,
            forced_eos_token_id=None,
            decoder_start_token_id=first,
            scale_embedding=True,
        )
    )
