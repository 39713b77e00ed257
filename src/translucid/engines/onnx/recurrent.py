"""The recurrent translators as two graphs: the encoder, and one step of the decoder."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from translucid.attention.scores import Concat, Dot, General
from translucid.engines.onnx.graph import Graph
from translucid.engines.onnx.transformer import embedded
from translucid.models.recurrent import BahdanauDecoder, LuongDecoder, RecurrentModel


def encoder(graph: Graph, model: RecurrentModel) -> None:
    """ids [B, S], lengths [B] -> the memory and keys of the attention [B, S, D], the decoder's first states [B, D]."""
    modules: Any = model
    ids, lengths = graph.input("ids", integer=True), graph.input("lengths", integer=True)
    rnn = modules.encoder.recurrence.rnn
    lengths = graph.add("Cast", lengths, to=6)  # int32
    x = graph.add("Transpose", embedded(graph, modules.source_embedding, ids), perm=[1, 0, 2])  # [S, B, D]
    for layer in range(rnn.num_layers):
        x, last_states = _read(graph, rnn, layer, x, lengths)
        for kind, state in enumerate(last_states):
            initial = graph.linear(state, modules.encoder.bridges[kind])
            if kind == 0:
                initial = graph.add("Tanh", initial)
            graph.output(f"past.{layer}.{kind}", initial)
    if getattr(modules.decoder, "feeds", False):  # no attentional state yet
        graph.output("past.feed", graph.zeros(graph.shape(ids, 1, modules.options.width)))
    score = getattr(modules.decoder, "score", None)
    if score is None:
        return
    memory = graph.add("Transpose", x, perm=[1, 0, 2])  # [B, S, D]
    graph.output("memory.values", memory)
    if isinstance(score, Dot):
        return
    projection = score.weight if isinstance(score, General) else score.key
    keys = graph.linear(graph.reshape(memory, -1, projection.in_features), projection)
    shape = graph.shape(ids, 1, -1, projection.out_features)  # [B, S, D]
    if isinstance(score, Concat):
        shape = graph.shape(ids, 1, 1, -1, projection.out_features)  # [B, 1, S, D], for pairs with every query
    graph.output("memory.keys", graph.add("Reshape", keys, shape))


def step(graph: Graph, model: RecurrentModel, tokens: str, parent: str) -> str:
    """One token for each of the rows [N] -> features [N, D].

    `parent` [N] is the row of the previous step that a row extends.
    """
    modules: Any = model
    width: int = modules.options.width
    decoder, rnn = modules.decoder, modules.decoder.recurrence.rnn
    word = embedded(graph, modules.target_embedding, tokens)  # [N, D]
    previous = _states_before(graph, rnn, parent)
    if isinstance(decoder, BahdanauDecoder):
        query = previous[-1][0]
        context = _context(graph, decoder.score, query, width)
        hidden = _advance(graph, rnn, graph.add("Concat", word, context, axis=1), previous)
        inputs = graph.add("Concat", hidden, word, context, axis=1)
        # Maxout: the larger one of each pair of neighbors.
        pairs = graph.reshape(graph.linear(inputs, decoder.readout), -1, width, 2)
        return graph.add("ReduceMax", pairs, graph.numbers(2), keepdims=0)
    if not isinstance(decoder, LuongDecoder):
        return _advance(graph, rnn, word, previous)
    if decoder.feeds:
        feed = graph.add("Gather", graph.input("past.feed"), parent)
        word = graph.add("Concat", word, feed, axis=1)
    hidden = _advance(graph, rnn, word, previous)
    context = _context(graph, decoder.score, hidden, width)
    features = graph.add("Tanh", graph.linear(graph.add("Concat", context, hidden, axis=1), decoder.combine))
    if decoder.feeds:
        graph.output("after.past.feed", features)
    return features


def _states_before(graph: Graph, rnn: nn.RNNBase, parent: str) -> list[list[str]]:
    """Return the states [N, D] of each layer before the step: hidden ones, and the cells of an LSTM."""
    kinds = 2 if isinstance(rnn, nn.LSTM) else 1
    previous = []
    for layer in range(rnn.num_layers):
        names = [f"past.{layer}.{kind}" for kind in range(kinds)]
        previous.append([graph.add("Gather", graph.input(name), parent) for name in names])
    return previous


def _advance(graph: Graph, rnn: nn.RNNBase, x: str, previous: list[list[str]]) -> str:
    """Feed x [N, inputs] to all layers; return the hidden states of the last one [N, D]."""
    for layer, states in enumerate(previous):
        one_position = graph.add("Unsqueeze", x, graph.numbers(0))
        single_direction = [graph.add("Unsqueeze", state, graph.numbers(0)) for state in states]
        _, *next_states = _operator(graph, rnn, layer, one_position, "", single_direction)
        next_states = [graph.add("Squeeze", state, graph.numbers(0)) for state in next_states]
        x = next_states[0]
        for kind, state in enumerate(next_states):
            graph.output(f"after.past.{layer}.{kind}", state)
    return x


def _context(graph: Graph, score: nn.Module, query: str, width: int) -> str:
    """Attend from each row of queries [N, D] to the source of its sentence; return the contexts [N, D]."""
    values = graph.input("memory.values")  # [B, S, D]
    keys = values if isinstance(score, Dot) else graph.input("memory.keys")
    grid, mask = graph.input("grid", integer=True), graph.input("mask")  # B, K and D; [B, 1, S]
    if isinstance(score, Concat):
        query = graph.add("Reshape", graph.linear(query, score.query), grid)  # [B, K, D]
        query = graph.add("Unsqueeze", query, graph.numbers(2))  # [B, K, 1, D]
        hidden = graph.add("Tanh", graph.add("Add", query, keys))  # [B, K, S, D]
        scores = graph.add("MatMul", graph.reshape(hidden, -1, width), graph.constant(score.v.detach()[:, None]))
        scores = graph.add("Reshape", scores, graph.add("Shape", hidden, end=3))  # [B, K, S]
    else:
        transposed = graph.add("Transpose", keys, perm=[0, 2, 1])
        scores = graph.add("MatMul", graph.add("Reshape", query, grid), transposed)
        if isinstance(score, Dot) and score.scale is not None:
            scores = graph.add("Mul", scores, graph.constant(score.scale))
    weights = graph.add("Softmax", graph.add("Add", scores, mask), axis=-1)  # [B, K, S]
    context = graph.add("MatMul", weights, values)
    return graph.reshape(context, -1, width)


def _read(graph: Graph, rnn: nn.RNNBase, layer: int, x: str, lengths: str) -> tuple[str, list[str]]:
    """Read x [S, B, inputs] in one or both directions; return outputs [S, B, D] and the last states [B, D]."""
    outputs, *last_states = _operator(graph, rnn, layer, x, lengths, [])
    outputs = graph.reshape(graph.add("Transpose", outputs, perm=[0, 2, 1, 3]), 0, 0, -1)
    side_by_side = []
    for state in last_states:  # [directions, B, H]
        side_by_side.append(graph.reshape(graph.add("Transpose", state, perm=[1, 0, 2]), 0, -1))
    return outputs, side_by_side


def _operator(graph: Graph, rnn: nn.RNNBase, layer: int, x: str, lengths: str, initial: list[str]) -> list[str]:
    """Return the outputs of ONNX's recurrent operator for x [T, N, inputs] and the states `initial` [1, N, D]."""
    is_lstm = isinstance(rnn, nn.LSTM)
    directions = [f"_l{layer}"]
    if rnn.bidirectional:
        directions.append(f"_l{layer}_reverse")
    weights = [_gates(rnn, name, directions) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    inputs, hidden, *biases = weights
    options: dict[str, Any] = {"hidden_size": rnn.hidden_size}
    if rnn.bidirectional:
        options["direction"] = "bidirectional"
    if not is_lstm:
        options["linear_before_reset"] = 1  # as in PyTorch: n = tanh(W x + r * (U h + b))
    constants = [graph.constant(array) for array in (inputs, hidden, torch.cat(biases, 1))]
    operator, count = ("LSTM", 3) if is_lstm else ("GRU", 2)
    return graph.add_several(operator, count, x, *constants, lengths, *initial, **options)


def _gates(rnn: nn.RNNBase, name: str, directions: list[str]) -> Tensor:
    """Return weights [directions, gates * H, ..] in ONNX's order of the gates."""
    # From PyTorch's i, f, g, o to i, o, f, c for an LSTM, and from r, z, n to z, r, h for a GRU.
    order = (0, 3, 1, 2) if isinstance(rnn, nn.LSTM) else (1, 0, 2)
    sides = []
    for direction in directions:
        gates = getattr(rnn, name + direction).detach().chunk(len(order))
        sides.append(torch.cat([gates[gate] for gate in order]))
    return torch.stack(sides)
