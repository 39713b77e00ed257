"""Inputs of the GPU benchmarks: two models, synthetic batches, and other toolkits' models of the same size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from benchmarks.peers.modules import Shape, marian_model
from translucid.data.batching import Batch
from translucid.data.stores.encoded import EncodedCorpus
from translucid.ground.special import SPECIAL
from translucid.models.build import build_model
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import Configuration, resolve
from translucid.training.data_loader import PairDataLoader

PRESETS = "tiny", "base"
SENTENCES = 40_000
LONGEST = 100
QUICK = [
    *("model.width=32", "model.feed_forward=64", "model.encoder_layers=2", "model.decoder_layers=2"),
    *("data.tokenizer.vocabulary=500", "training.batch_tokens=500"),
]
"""Settings with which the whole benchmark takes seconds on a CPU."""


def configuration_of(preset: str, *, quick: bool) -> Configuration:
    """Return the settings of a preset, or of a small model of its kind for a rehearsal."""
    return resolve(preset=preset, assignments=QUICK if quick else [])


def model_of(configuration: Configuration) -> SequenceModel:
    """Return our model with fresh weights."""
    vocabulary = configuration.data.tokenizer.vocabulary
    torch.manual_seed(1)
    model = build_model(configuration.model, vocabulary, vocabulary)
    assert isinstance(model, SequenceModel)
    return model


def corpus_of(vocabulary: int, sentences: int = SENTENCES) -> EncodedCorpus:
    """Return synthetic pairs with the lengths of news text, 25 tokens on average."""
    rng = np.random.default_rng(1)
    sides = []
    lengths = np.clip(rng.lognormal(3.1, 0.5, sentences), 3, LONGEST - 10).astype(np.int64)
    for side in (lengths, np.clip(lengths + rng.integers(-3, 4, sentences), 3, LONGEST)):
        offsets = np.concatenate([[0], side.cumsum()])
        ids = rng.integers(4, vocabulary, offsets[-1])
        ids[offsets[1:] - 1] = SPECIAL.end
        sides += [ids.astype(np.int32), offsets]
    return EncodedCorpus(*sides)


def epochs_of(configuration: Configuration, sentences: int = SENTENCES) -> PairDataLoader:
    """Return epochs of synthetic pairs, in batches of this configuration."""
    corpus = corpus_of(configuration.data.tokenizer.vocabulary, sentences)
    options = configuration.training
    return PairDataLoader(
        corpus, [sentences], max_tokens=LONGEST, batch_tokens=options.batch_tokens, seed=1, packed=options.packed
    )


def batches_of(configuration: Configuration) -> Iterator[Batch]:
    """Yield the same batches, in pinned memory where there is a GPU, for other programs."""
    epochs = epochs_of(configuration)
    epoch = 0
    while True:
        for shared in epochs.batches(epoch):
            assert shared.rows
            yield shared.rows
        epoch += 1


def shape_of(configuration: Configuration) -> Shape:
    """Return the size of a configuration for other toolkits' models."""
    o, entries = configuration.model, configuration.data.tokenizer.vocabulary
    ids = {"entries": entries, "padding": SPECIAL.pad, "start": SPECIAL.start, "end": SPECIAL.end}
    return Shape(o.encoder_layers, o.width, o.feed_forward, o.heads, o.dropout, **ids)


def marian(configuration: Configuration) -> nn.Module:
    """Return Hugging Face's MarianMTModel of this shape, with fresh weights."""
    shape = shape_of(configuration)
    return marian_model(shape, first=shape.start)
