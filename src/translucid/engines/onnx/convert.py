"""Write the two graphs of a translator for ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from translucid.engines.onnx import recurrent, transformer
from translucid.engines.onnx.graph import Graph
from translucid.engines.onnx.model import ENCODER, STEP
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer


@torch.no_grad()
def save_onnx(model: SequenceModel, folder: Path, pieces: Sequence[int] | None = None) -> None:
    """Write a model into a folder that `OnnxModel` opens.

    The encoder maps ids [B, S], padded on the right, to `memory.*`, which stay the same for a sentence, and `past.*`,
    which each step replaces by `after.past.*`. A step maps `tokens` [N], their `parent` rows [N], `count` [1], the
    memory and the past to the highest log-probabilities `values` [N, count] and their `pieces` [N, count], sorted, and
    the log-probability `end` [N, 1] of the end token.

    Args:
        model: a Transformer or a recurrent model that `is_supported`.
        folder: the folder.
        pieces: the target pieces that are candidates, special tokens first; all by default. Target ids of the graphs
            are places among them.
    """
    if pieces is not None:
        model = _narrowed(model, torch.tensor(pieces))
    kind: Any = transformer if isinstance(model, Transformer) else recurrent
    assert isinstance(model, Transformer | RecurrentModel)
    graph = Graph()
    kind.encoder(graph, model)
    folder.mkdir(parents=True, exist_ok=True)
    graph.save(folder / ENCODER)
    graph = Graph()
    tokens, parent = graph.input("tokens", whole=True), graph.input("parent", whole=True)
    features = kind.step(graph, model, tokens, parent)
    log_probs = graph.add("LogSoftmax", graph.linear(features, model.output), axis=1)
    values, places = graph.add_several("TopK", 2, log_probs, graph.input("count", whole=True), axis=1)
    end = graph.add("Gather", log_probs, graph.numbers(model.eos), axis=1)
    for name, value in (("values", values), ("end", end)):
        graph.output(name, value)
    graph.output("pieces", places, whole=True)
    graph.save(folder / STEP)


def _narrowed(model: Any, pieces: torch.Tensor) -> Any:
    """Return a copy of a model that shares its weights but has only some target pieces."""
    narrowed = copy(model)
    narrowed._modules = dict(model._modules)
    embedding = copy(model.target_embedding)
    embedding._modules = dict(embedding._modules)
    embedding.tokens = nn.Embedding.from_pretrained(model.target_embedding.tokens.weight[pieces])
    output = nn.utils.skip_init(nn.Linear, model.output.in_features, len(pieces))
    output.weight = nn.Parameter(model.output.weight[pieces], requires_grad=False)
    output.bias = nn.Parameter(model.output.bias[pieces], requires_grad=False)
    narrowed.target_embedding, narrowed.output = embedding, output
    return narrowed
