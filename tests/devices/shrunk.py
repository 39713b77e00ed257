"""Every preset at a small size for tests, with a training batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from translucid.data.batching import Batch
from translucid.language.classifier import Classifier
from translucid.language.model import LanguageModel
from translucid.language.scores import empty_source
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.presets import all_presets

VOCABULARY = 60
PIECES = [chr(97 + i % 26) * (1 + i // 26) for i in range(VOCABULARY)]
CASES: dict[str, tuple[str, list[str]]] = {preset: (preset, []) for preset in all_presets()}
_UNTIED = ["model.share_embeddings=false", "model.tie_output=false", "data.tokenizer.joint=false"]
CASES |= {
    "post-norm, learned positions": ("tiny", ["model.positions=learned", "model.norm=post"]),
    "attention to nothing, halved positions, untied, nadam": (
        "tiny",
        ["model.positions=sinusoidal-halves", "model.zero_start=true", "training.optimizer=nadam", *_UNTIED],
    ),
    "ssru": ("tiny", ["model.decoder=ssru"]),
    "muon": ("tiny", ["training.optimizer=muon"]),
    "gru, one direction": (
        "rnn-luong-dot",
        ["model.cell=gru", "model.layers=2", "model.bidirectional=false", "model.attention=luong-scaled-dot"],
    ),
    "bahdanau with two lstm layers": ("rnn-bahdanau", ["model.cell=lstm", "model.layers=2"]),
    "captioner that reads first": ("caption-soft", ["model.order=read-first", "model.detector=1.0"]),
    "captioner without attention": ("caption-soft", ["model.attention=none"]),
    "regularized lstm": ("lm-lstm", ["model.activation=2", "model.smoothness=1"]),
    "characters": ("lm-bilstm", ["model.characters=true"]),
}
SHORT: dict[str, Any] = {"max_length_ratio": 0, "max_length_extra": 3}
"""Options of searches with four steps; an emulated device does the same in each step."""
SENTENCES = [[5, 6, 7, 3], [8, 9, 3]]
"""Ids of sentences that these models read."""
SMALLER: dict[str, Any] = {"width": 16, "heads": 2, "feed_forward": 32, "hidden": 16, "dropout": 0.0}


@dataclass(frozen=True)
class Case:
    """A small model, its settings and a batch."""

    configuration: Configuration
    model: Model
    batch: Batch
    source: Tensor
    """The input of a search: ids [B, S], images [B, H, W, 3], or an empty source for a language model."""


def build_case(name: str, layers: int = 0) -> Case:
    """Build a case of `CASES`, or a preset with this many layers; always the same weights."""
    preset, assignments = CASES[name]
    configuration = resolve(preset=preset, assignments=assignments)
    options = _shrink(configuration.model, layers or (1 if name in all_presets() else 2))
    torch.manual_seed(1)
    model = options.build(VOCABULARY, VOCABULARY, PIECES)
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(4, VOCABULARY, (6, 7)))
    labels[:, -1] = 3
    labels[1, 4], labels[1, 5:] = 3, 0
    targets_in = torch.cat([torch.full((6, 1), 2), labels[:, :-1]], 1)
    targets_in[targets_in == 3] = 0
    source = labels
    if isinstance(model, Classifier):
        batch = Batch(labels, torch.zeros(6, 0, dtype=torch.long), torch.from_numpy(rng.integers(0, 3, (6, 1))))
    elif isinstance(model, LanguageModel):
        stream = labels[:, None].repeat(1, 2, 1) if getattr(options, "directions", 1) == 2 else labels
        batch, source = Batch(empty_source(6), stream, stream.clone()), empty_source(2)
    elif hasattr(options, "image_encoder"):
        source = torch.from_numpy(rng.integers(0, 255, (3, 32, 32, 3), dtype=np.uint8))
        batch = Batch(source, targets_in, labels)
    else:
        batch = Batch(labels, targets_in, labels)
    return Case(configuration, model, batch, source)


def _shrink(options: Any, layers: int) -> Any:
    """Return the options of a small model; presets get one layer, as most of them differ only in size."""
    small = options.model_dump()
    small |= {name: value for name, value in SMALLER.items() if small.get(name) is not None}
    for name in ("encoder_layers", "decoder_layers", "layers"):
        if name in small:
            small[name] = min(small[name], layers)
    if "image_encoder" in small:
        small["image_encoder"]["size"] = 32
        if not small["image_encoder"]["frozen"]:
            small["image_encoder"].update(network="small", stride=8, channels=4)
    if "language" in small:
        small["language"].update(width=16, hidden=16)
    if "labels" in small:
        small["labels"] = ["a", "b", "c"]
    if small.get("window"):
        small["window"] = 2
    if "filters" in small:
        small["filters"] = [4, 4]
    return type(options)(**small)
