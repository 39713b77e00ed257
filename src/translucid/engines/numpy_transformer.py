"""Forced decoding of a Transformer in NumPy: the cross-attention of a pair, for an installation without PyTorch.

The equations, one pair at a time and without padding, are those of `models.transformer`, which explains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.runs.transformer_weights import TransformerWeights

Floats = NDArray[np.float32]

EPSILON = 1e-5
"""What PyTorch's layer normalization adds to the variance."""


class ForcedPair(NamedTuple):
    """What forced decoding computes for a pair."""

    cross: Floats
    """[layers, H, T, S], the cross-attention with which each target token was predicted."""
    features: Floats
    """[T, D], the decoder's last states."""
    states: Floats
    """[S, D], the encoder's last states."""


class NumPyTransformer:
    """A Transformer that computes forced decoding in NumPy."""

    def __init__(self, weights: TransformerWeights) -> None:
        self.options, self.arrays, self.positions = weights

    def forced(self, source: Sequence[int], target: Sequence[int]) -> ForcedPair:
        """Compute a pair of ids, end tokens included; the decoder reads the start token and all but the last.

        Raises:
            UserError: there are more tokens than positions.
        """
        hidden = 0 if self.options.source_end else 1  # the end token, which has weight 0
        states = self._embedded("source", source[: len(source) - hidden], self.positions[0])
        for layer in range(self.options.encoder_layers):
            states = self._encoder_block(f"encoder.{layer}", states)
        states = self._final_norm("encoder", states)
        features = self._embedded("target", [SPECIAL.start, *target[:-1]], self.positions[1])
        maps = []
        for layer in range(self.options.decoder_layers):
            features, cross = self._decoder_block(f"decoder.{layer}", features, states)
            maps.append(cross)
        weights = np.pad(np.stack(maps), ((0, 0), (0, 0), (0, 0), (0, hidden)))
        return ForcedPair(weights, self._final_norm("decoder", features), np.pad(states, ((0, hidden), (0, 0))))

    def weights(self, pair: ForcedPair, options: AlignmentOptions) -> Floats:
        """Return the attention [T, S] of the layer and head of the options; see `Inspected.cross`.

        Attention weights take the place of contributions, which are not computed here.

        Raises:
            UserError: there is no such layer or head.
        """
        layers, heads, _, _ = pair.cross.shape
        if (options.layer or 0) >= layers or (options.head or 0) >= heads:
            what = f"there is no layer {options.layer or 0} with a head {options.head or 0}"
            raise UserError(what, fix=f"The model has {layers} layers with {heads} heads: change alignment.layer.")
        if options.method == "norms":
            layer_weights = self._norms(pair, options.head)
        elif options.head is None:
            layer_weights = pair.cross.mean(1)
        else:
            layer_weights = pair.cross[:, options.head]
        weights: Floats = layer_weights.mean(0) if options.layer is None else layer_weights[options.layer]
        if options.shift:
            return np.concatenate([weights[1:], weights[-1:]])
        return weights

    def aligned(self, pair: ForcedPair, target: Sequence[int], layer: Mapping[str, Floats]) -> Floats:
        """Return the weights [T, S] of a trained alignment layer; see `decoding.maps.AlignmentLayer`."""
        features = _norm(layer, "feature_norm", pair.features)
        piece_vectors = self.arrays["output.weight"][list(target)]
        query = _linear(layer, "query", np.concatenate([features, piece_vectors], -1))
        key = _linear(layer, "key", _norm(layer, "state_norm", pair.states))
        scores = query @ key.T / math.sqrt(key.shape[1])
        if not self.options.source_end:
            scores[:, -1] = -np.inf
        return _softmax(scores)

    def _embedded(self, side: str, ids: Sequence[int], positions: Floats) -> Floats:
        tokens = list(ids)
        if len(tokens) > len(positions):
            what = f"a text has {len(tokens)} tokens, the model takes {len(positions)}"
            raise UserError(what, fix="Split it into sentences.")
        embedded = self.arrays[f"{side}_embedding.tokens.weight"][tokens]
        if self.options.scale_embeddings:
            embedded = embedded * np.float32(math.sqrt(self.options.width))
        if self.options.zero_start and side == "target":
            embedded[0] = 0
        return embedded + positions[: len(tokens)]

    def _encoder_block(self, block: str, x: Floats) -> Floats:
        x = self._residual(f"{block}.residuals.0", x, lambda x: self._attention(f"{block}.self_attention", x, x)[0])
        return self._residual(f"{block}.residuals.1", x, lambda x: self._feed_forward(block, x))

    def _decoder_block(self, block: str, x: Floats, states: Floats) -> tuple[Floats, Floats]:
        """Return the output [T, D] and the cross-attention [H, T, S]."""
        cross = np.empty(0, np.float32)

        def self_attention(x: Floats) -> Floats:
            return self._attention(f"{block}.self_attention", x, x, causal=True)[0]

        def cross_attention(x: Floats) -> Floats:
            nonlocal cross
            output, cross = self._attention(f"{block}.cross_attention", x, states)
            return output

        x = self._residual(f"{block}.residuals.0", x, self_attention)
        x = self._residual(f"{block}.residuals.1", x, cross_attention)
        return self._residual(f"{block}.residuals.2", x, lambda x: self._feed_forward(block, x)), cross

    def _attention(self, name: str, x: Floats, memory: Floats, *, causal: bool = False) -> tuple[Floats, Floats]:
        """Attend from x [T, D] to a memory [S, D]: return the output [T, D] and the weights [H, T, S]."""
        query = self._heads(_linear(self.arrays, f"{name}.query", x))
        key, value = np.split(_linear(self.arrays, f"{name}.key_value", memory), 2, axis=-1)
        scores = query @ self._heads(key).transpose(0, 2, 1) / np.float32(math.sqrt(query.shape[-1]))
        if causal:
            future = np.triu(np.ones(scores.shape[1:], np.bool_), 1)
            scores[:, future] = -np.inf
        weights = _softmax(scores)
        context = (weights @ self._heads(value)).transpose(1, 0, 2).reshape(len(x), -1)
        return _linear(self.arrays, f"{name}.output", context), weights

    def _norms(self, pair: ForcedPair, head: int | None) -> Floats:
        """Return norm-based attention [layers, T, S], of a head or of all; see `inspection.attention_terms`."""
        layers = []
        for layer, cross in enumerate(pair.cross):
            inputs = self._inputs(f"decoder.{layer}.cross_attention", pair.states)
            if head is None:
                norms = np.linalg.norm(np.einsum("hts,hsd->tsd", cross, inputs), axis=-1)
            else:
                norms = cross[head] * np.linalg.norm(inputs[head], axis=-1)
            layers.append(norms / norms.sum(-1, keepdims=True))
        return np.stack(layers)

    def _inputs(self, name: str, memory: Floats) -> Floats:
        """Return the values of a memory [S, D] in the output of each head [H, S, D]."""
        value = np.split(_linear(self.arrays, f"{name}.key_value", memory), 2, axis=-1)[1]
        matrix = self.arrays[f"{name}.output.weight"]  # [D, H d]
        return self._heads(value) @ matrix.reshape(len(matrix), self.options.heads, -1).transpose(1, 2, 0)

    def _heads(self, x: Floats) -> Floats:
        """Split [T, D] into heads: [H, T, d]."""
        return x.reshape(len(x), self.options.heads, -1).transpose(1, 0, 2)

    def _feed_forward(self, block: str, x: Floats) -> Floats:
        inner = _linear(self.arrays, f"{block}.feed_forward.inner", x)
        return _linear(self.arrays, f"{block}.feed_forward.outer", _nonlinear(inner, self.options.nonlinearity))

    def _residual(self, name: str, x: Floats, sublayer: Callable[[Floats], Floats]) -> Floats:
        if self.options.norm == "pre":
            return x + sublayer(_norm(self.arrays, f"{name}.norm", x))
        return _norm(self.arrays, f"{name}.norm", x + sublayer(x))

    def _final_norm(self, side: str, x: Floats) -> Floats:
        return _norm(self.arrays, f"{side}_norm", x) if self.options.has_final_norm else x


def _linear(arrays: Mapping[str, Floats], name: str, x: Floats) -> Floats:
    return x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]


def _norm(arrays: Mapping[str, Floats], name: str, x: Floats) -> Floats:
    centered = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + EPSILON)
    normalized: Floats = centered / deviation * arrays[f"{name}.weight"] + arrays[f"{name}.bias"]
    return normalized


def _softmax(scores: Floats) -> Floats:
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    weights: Floats = exponentials / exponentials.sum(-1, keepdims=True)
    return weights


def _nonlinear(x: Floats, name: str) -> Floats:
    if name == "relu":
        return x.clip(min=0)
    if name == "swish":
        return x / (1 + np.exp(-x))
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))).astype(np.float32) / 2  # NumPy has no erf
