"""Write the two graphs of a translator for ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from translucid.decoding.search import RestrictedVocabulary
from translucid.engines.onnx import recurrent, transformer
from translucid.engines.onnx.graph import Graph
from translucid.engines.onnx.search import ENCODER, STEP
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
            are indices into them.
    """
    kind: Any = transformer if isinstance(model, Transformer) else recurrent
    assert isinstance(model, Transformer | RecurrentModel)
    graph = Graph()
    kind.encoder(graph, model)
    folder.mkdir(parents=True, exist_ok=True)
    graph.save(folder / ENCODER)
    graph = Graph()
    tokens, parent = graph.input("tokens", integer=True), graph.input("parent", integer=True)
    ids, output = tokens, model.output
    if pieces is not None:
        ids = graph.add("Gather", graph.numbers(*pieces), tokens)
        restricted: SequenceModel = RestrictedVocabulary(model, torch.tensor(pieces))
        output = restricted.output
    features = kind.step(graph, model, ids, parent)
    log_probs = graph.add("LogSoftmax", graph.linear(features, output), axis=1)
    values, piece_ids = graph.add_several("TopK", 2, log_probs, graph.input("count", integer=True), axis=1)
    end = graph.add("Gather", log_probs, graph.numbers(model.eos), axis=1)
    for name, value in (("values", values), ("end", end)):
        graph.output(name, value)
    graph.output("pieces", piece_ids, integer=True)
    graph.save(folder / STEP)
