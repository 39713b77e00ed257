"""The Transformer as two graphs: the encoder, and one step of the decoder.

Queries, keys and values come from one product, and one operator of ONNX Runtime computes the attention of all heads.
Every linear layer has all rows in one matrix [rows, width].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from translucid.attention.multi_head import MultiHeadAttention
from translucid.engines.ctranslate2.conventions import POSITIONS
from translucid.engines.onnx.graph import CONTRIB, Graph
from translucid.layers.embedding import Embedding
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import NoPositions
from translucid.layers.residual import Residual
from translucid.layers.ssru import SSRU
from translucid.models.transformer import DecoderBlock, Transformer


def encoder(graph: Graph, model: Transformer) -> None:
    """ids [B, S], bias [B, 1, S, S] -> the keys and values of the cross-attentions, [B, H, S, d] each."""
    modules: Any = model  # its submodules have no static types
    width, heads = model.options.width, model.options.heads
    ids, bias = graph.input("ids", integer=True), graph.input("bias")
    table = _positions(graph, modules.source_embedding, model)
    x = embedded(graph, modules.source_embedding, ids)
    if table:
        length = graph.add("Shape", ids, start=1, end=2)
        encodings = graph.add("Slice", table, graph.numbers(0), length, graph.numbers(0))
        x = graph.add("Add", x, encodings)
    shape = graph.shape(ids, 2, 3 * width)
    x = graph.reshape(x, -1, width)  # [B S, D]
    for block in modules.encoder:

        def attend(x: str, attention: MultiHeadAttention = block.self_attention) -> str:
            projected = graph.add("Reshape", graph.linear(x, attention.query, attention.key_value), shape)
            parts = graph.add_several("Split", 3, projected, axis=2, num_outputs=3)  # [B, S, D] each
            context = graph.add("MultiHeadAttention", *parts, "", "", bias, domain=CONTRIB, num_heads=heads)
            return graph.linear(graph.reshape(context, -1, width), attention.output)

        x = _residual(graph, x, block.residuals[0], attend)
        x = _residual(graph, x, block.residuals[1], partial(_feed_forward, graph, block.feed_forward))
    x = graph.norm(x, modules.encoder_norm)
    by_head = graph.shape(ids, 2, 2, heads, width // heads)
    for number, block in enumerate(modules.decoder):
        keys_values = graph.add("Reshape", graph.linear(x, block.cross_attention.key_value), by_head)  # [B, S, 2, H, d]
        keys_values = graph.add("Transpose", keys_values, perm=[2, 0, 3, 1, 4])  # [2, B, H, S, d]
        key, value = graph.add_several("Split", 2, keys_values, axis=0, num_outputs=2)
        for name, tensor in (("key", key), ("value", value)):
            projected = graph.add("Squeeze", tensor, graph.numbers(0))
            graph.output(f"memory.{number}.{name}", projected)
            if block.ssru is None:
                empty = graph.add("Slice", projected, graph.numbers(0), graph.numbers(0), graph.numbers(2))
                graph.output(f"past.{number}.{name}", empty)  # no position yet: [B, H, 0, d]
        if block.ssru is not None:
            graph.output(f"past.{number}.cell", graph.zeros(graph.shape(ids, 1, width)))


def step(graph: Graph, model: Transformer, tokens: str, parent: str) -> str:
    """One token for each of the rows [N] -> features [N, D].

    `parent` [N] is the row of the previous step that a row extends.
    """
    modules: Any = model
    width, heads = model.options.width, model.options.heads
    bias, grid = graph.input("bias"), graph.input("grid", integer=True)  # [B, 1, K, S]; B, K and D
    x = embedded(graph, modules.target_embedding, tokens)
    table = _positions(graph, modules.target_embedding, model)
    if table:
        x = graph.add("Add", x, graph.add("Gather", table, graph.input("position", integer=True)))
    for number, block in enumerate(modules.decoder):

        def mix_positions(x: str, number: int = number, block: DecoderBlock = block) -> str:
            attention = block.self_attention
            if attention is None:
                assert block.ssru is not None
                return _ssru(graph, x, block.ssru, f"past.{number}.cell", parent)
            projected = graph.linear(x, attention.query, attention.key_value)
            one_position = graph.reshape(projected, -1, 1, 3 * width)
            query, key, value = graph.add_several("Split", 3, one_position, axis=2, num_outputs=3)
            names = [f"past.{number}.{name}" for name in ("key", "value")]
            past = [graph.add("Gather", graph.input(name), parent) for name in names]  # [N, H, t, d]
            context, *present = graph.add_several(
                "MultiHeadAttention", 3, query, key, value, "", "", "", *past, domain=CONTRIB, num_heads=heads
            )
            for name, tensor in zip(names, present, strict=True):
                graph.output(f"after.{name}", tensor)
            return graph.linear(graph.reshape(context, -1, width), attention.output)

        def attend_source(x: str, number: int = number, attention: MultiHeadAttention = block.cross_attention) -> str:
            query = graph.add("Reshape", graph.linear(x, attention.query), grid)  # [B, K, D]
            memory = [graph.input(f"memory.{number}.{name}") for name in ("key", "value")]
            context = graph.add("MultiHeadAttention", query, *memory, "", "", bias, domain=CONTRIB, num_heads=heads)
            return graph.linear(graph.reshape(context, -1, width), attention.output)

        x = _residual(graph, x, block.residuals[0], mix_positions)
        x = _residual(graph, x, block.residuals[1], attend_source)
        x = _residual(graph, x, block.residuals[2], partial(_feed_forward, graph, block.feed_forward))
    return graph.norm(x, modules.decoder_norm)


def embedded(graph: Graph, embedding: Embedding, ids: str) -> str:
    """Embed ids [..] without their positions: [.., D]."""
    table = embedding.tokens.weight
    if embedding.zero_token is not None:
        table = table.detach().clone()
        table[embedding.zero_token] = 0.0
    x = graph.add("Gather", graph.constant(table), ids)
    if embedding.scale == 1:
        return x
    return graph.add("Mul", x, graph.constant(np.array(embedding.scale, np.float32)))


def _ssru(graph: Graph, x: str, ssru: SSRU, name: str, parent: str) -> str:
    """Return the output [N, D] of an SSRU for x [N, D]; `name`: that of its cell."""
    forget, value = graph.add_several("Split", 2, graph.linear(x, ssru.projection), axis=1, num_outputs=2)
    forget = graph.add("Sigmoid", graph.add("Add", forget, graph.constant(ssru.forget_bias)))
    previous = graph.add("Gather", graph.input(name), parent)
    # f c + (1 - f) v = v + f (c - v)
    cell = graph.add("Add", value, graph.add("Mul", forget, graph.add("Sub", previous, value)))
    graph.output(f"after.{name}", cell)
    return graph.add("Relu", cell)


def _positions(graph: Graph, embedding: Embedding, model: Transformer) -> str | None:
    """Return the position encodings [length, D]; None for a model without."""
    if isinstance(embedding.positions, NoPositions):
        return None
    return graph.constant(embedding.positions(model.max_length or POSITIONS).detach().clone())


def _residual(graph: Graph, x: str, residual: Residual, sublayer: Callable[[str], str]) -> str:
    """Wrap a sublayer as `Residual` does."""
    if residual.pre:
        return graph.add("Add", x, sublayer(graph.norm(x, residual.norm)))
    return graph.norm(graph.add("Add", x, sublayer(x)), residual.norm)


def _feed_forward(graph: Graph, module: FeedForward, x: str) -> str:
    """Return FFN(x) of x [N, D]."""
    inner = graph.linear(x, module.inner)
    if module.nonlinearity == "relu":
        inner = graph.add("Relu", inner)
    elif module.nonlinearity == "gelu":
        inner = graph.add("Gelu", inner, domain=CONTRIB)
    else:
        inner = graph.add("Mul", inner, graph.add("Sigmoid", inner))
    return graph.linear(inner, module.outer)
