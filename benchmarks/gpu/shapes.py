"""What is measured: two models, batches of made-up sentences, and the same shape as others build it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from translucid.data.batching import Batch
from translucid.data.encoded import EncodedCorpus
from translucid.models.build import build_model
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import Configuration, resolve
from translucid.training.epochs import PairEpochs

PRESETS = "tiny", "base"
SENTENCES = 40_000
LONGEST = 100
QUICK = ["model.width=32", "model.feed_forward=64", "data.tokenizer.vocabulary=500", "training.batch_tokens=500"]
"""Settings with which the whole benchmark takes seconds on a CPU."""


def configuration_of(preset: str, *, quick: bool) -> Configuration:
    """Return the settings of a preset; of a small one of its kind, if it shall only be tried out."""
    return resolve(preset=preset, assignments=QUICK if quick else [])


def model_of(configuration: Configuration) -> SequenceModel:
    """Return our model with fresh weights."""
    vocabulary = configuration.data.tokenizer.vocabulary
    torch.manual_seed(1)
    model = build_model(configuration.model, vocabulary, vocabulary)
    assert isinstance(model, SequenceModel)
    return model


def corpus_of(vocabulary: int, sentences: int = SENTENCES) -> EncodedCorpus:
    """Return made-up pairs; their lengths are those of news text, 25 tokens in the mean."""
    rng = np.random.default_rng(1)
    sides = []
    lengths = np.clip(rng.lognormal(3.1, 0.5, sentences), 3, LONGEST - 10).astype(np.int64)
    for side in (lengths, np.clip(lengths + rng.integers(-3, 4, sentences), 3, LONGEST)):
        offsets = np.concatenate([[0], side.cumsum()])
        ids = rng.integers(4, vocabulary, offsets[-1])
        ids[offsets[1:] - 1] = 3  # the end token
        sides += [ids.astype(np.int32), offsets]
    return EncodedCorpus(*sides)


def epochs_of(configuration: Configuration, sentences: int = SENTENCES) -> PairEpochs:
    """Return passes over made-up pairs, in batches of this configuration."""
    corpus = corpus_of(configuration.data.tokenizer.vocabulary, sentences)
    return PairEpochs(corpus, [sentences], batch_tokens=configuration.training.batch_tokens, seed=1)


def batches_of(configuration: Configuration) -> Iterator[Batch]:
    """Yield the same batches, in pinned memory where there is a GPU, for other programs."""
    epochs = epochs_of(configuration)
    epoch = 0
    while True:
        for shared in epochs.batches(epoch):
            assert shared.rows
            yield shared.rows
        epoch += 1


class Tutorial(nn.Module):
    """torch.nn.Transformer with sinusoidal positions and one matrix for all embeddings, as tutorials build it."""

    def __init__(self, configuration: Configuration) -> None:
        """Fresh weights of this shape."""
        super().__init__()
        shape, vocabulary = configuration.model, configuration.data.tokenizer.vocabulary
        self.scale = math.sqrt(shape.width)
        self.embedding = nn.Embedding(vocabulary, shape.width, padding_idx=0)
        angle = torch.arange(512)[:, None] * torch.exp(torch.arange(0, shape.width, 2) * (-math.log(1e4) / shape.width))
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        self.dropout = nn.Dropout(shape.dropout)
        layers = shape.encoder_layers, shape.decoder_layers
        self.transformer = nn.Transformer(
            shape.width, shape.heads, *layers, shape.feed_forward, shape.dropout, batch_first=True
        )
        self.output = nn.Linear(shape.width, vocabulary)
        self.output.weight = self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        """Return embeddings [B, T, D] of ids [B, T]."""
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.size(1)])

    def forward(self, source: Tensor, targets_in: Tensor) -> Tensor:
        """Return logits [B, T, V], teacher-forced."""
        padding = source == 0
        future = torch.ones(targets_in.size(1), targets_in.size(1), dtype=torch.bool, device=source.device).triu(1)
        states = self.transformer(
            self.embed(source),
            self.embed(targets_in),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.output(states)


def marian(configuration: Configuration) -> nn.Module:
    """Return Hugging Face's MarianMTModel of this shape, with fresh weights."""
    from transformers import MarianConfig, MarianMTModel

    shape, vocabulary = configuration.model, configuration.data.tokenizer.vocabulary
    return MarianMTModel(
        MarianConfig(
            vocab_size=vocabulary,
            d_model=shape.width,
            encoder_layers=shape.encoder_layers,
            decoder_layers=shape.decoder_layers,
            encoder_attention_heads=shape.heads,
            decoder_attention_heads=shape.heads,
            encoder_ffn_dim=shape.feed_forward,
            decoder_ffn_dim=shape.feed_forward,
            dropout=shape.dropout,
            activation_function="relu",
            max_position_embeddings=512,
            pad_token_id=0,
            bos_token_id=2,
            eos_token_id=3,
            decoder_start_token_id=2,
            forced_eos_token_id=None,
            scale_embedding=True,
        )
    )
