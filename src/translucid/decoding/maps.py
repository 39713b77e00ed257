"""Attention maps of a translation by one teacher-forced pass, and the alignment layer on top of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from translucid.attention.points import recording_weights
from translucid.ground.errors import UserError
from translucid.models.protocol import Maps, Memory, SequenceModel

WIDTH = 128
"""The width of the queries and keys."""


class ForcedPass(NamedTuple):
    """The result of forced decoding."""

    maps: Maps
    """Attention weights by name, [B, H, T, S] each; empty if they were not requested."""
    log_probs: Tensor
    """[B, T], of each target token, given the source and the tokens before it."""
    links: Tensor | None
    """[B, T, S], the links between target and source tokens by an alignment layer; None without one."""


@torch.inference_mode()
def forced_pass(
    model: SequenceModel,
    source: Tensor,
    target: Tensor,
    *,
    with_attention: bool = True,
    layer: AlignmentLayer | None = None,
) -> ForcedPass:
    """Compute attention maps and log-probabilities of given targets by forced decoding.

    Row t of `decoder.*.cross` is the attention with which target token t was *predicted*: the input was token t-1.

    Args:
        model: the model, in evaluation mode.
        source: the input of `model.encode`, such as ids [B, S], end token included.
        target: ids [B, T], end token included.
        with_attention: whether to return attention weights.
        layer: the alignment layer of the model, if it has one.
    """
    recorder: AbstractContextManager[Maps] = recording_weights(model) if with_attention else nullcontext({})
    with recorder as maps:
        memory = model.encode(source)
        features = forced_features(model, memory, target)
    links = layer(features, model.output.weight[target], memory.states, memory.mask) if layer else None
    return ForcedPass(dict(maps), _log_probs(model, features, target), links)


def forced_log_probs(model: SequenceModel, memory: Memory, target: Tensor) -> Tensor:
    """Return the log-probability of each target token [B, T], through which gradients flow."""
    return _log_probs(model, forced_features(model, memory, target), target)


def _log_probs(model: SequenceModel, features: Tensor, target: Tensor) -> Tensor:
    return model.output(features).float().log_softmax(-1).gather(-1, target[..., None])[..., 0]


def forced_features(model: SequenceModel, memory: Memory, target: Tensor) -> Tensor:
    """Return the features [B, T, D] from which each target token is predicted, given the tokens before it."""
    return model.features(memory, _decoder_input(model, target))


@torch.inference_mode()
def cross_attention(
    model: SequenceModel, source: Tensor, target: Tensor, layer: int | None = None, head: int | None = None
) -> Tensor:
    """Return the cross-attention of given targets [B, T, S] of a layer and a head, or averaged over all of them.

    Args:
        model: the model, in evaluation mode.
        source: the input of `model.encode`, such as ids [B, S], end token included.
        target: ids [B, T], end token included.
        layer: a decoder layer, from 0; all if not given.
        head: from 0; all if not given.
    """
    memory = model.encode(source)
    with recording_weights(model) as maps:
        forced_features(model, memory, target)
    names = chosen_maps({name: weights.size(1) for name, weights in maps.items()}, "cross", layer, head)
    cross = torch.stack([maps[name].float() for name in names], 1)  # [B, layers, H, T, S]
    if head is not None:
        cross = cross[:, :, head : head + 1]
    return cross.mean((1, 2))


def _decoder_input(model: SequenceModel, target: Tensor) -> Tensor:
    """Return the decoder's input for a target [B, T]: the start token and all target tokens but the last."""
    return torch.cat([torch.full_like(target[:, :1], model.bos), target[:, :-1]], dim=1)


def chosen_maps(
    heads: Mapping[str, int], kind: str = "cross", layer: int | None = None, head: int | None = None
) -> list[str]:
    """Return the names of the maps of a kind, of one layer or of all.

    Args:
        heads: the number of heads of each map of the model, by name.
        kind: `cross`, `encoder` or `decoder` (the two self-attentions).
        layer: the number of a layer, from 0.
        head: the number of a head, from 0.

    Raises:
        UserError: the model has no map of that kind, no such layer or no such head.
    """
    side, attention = kind, "self"
    if kind == "cross":
        side, attention = "decoder", "cross"
    candidates = [name for name in heads if name.startswith(f"{side}.") and name.endswith(f".{attention}")]
    if not candidates and kind == "cross":
        fix = 'Train one that has, such as `model="rnn-luong-general"`.'
        raise UserError("this model has no attention to look at", fix=fix)
    if not candidates:
        fix = f"It has {', '.join(heads)}." if heads else "It has no attention at all."
        raise UserError(f"this model has no self-attention in its {side}", fix=fix)
    if layer is not None and not 0 <= layer < len(candidates):
        raise UserError(f"there is no layer {layer}", fix=f"Choose one of 0 to {len(candidates) - 1}.")
    names = candidates if layer is None else [f"{side}.{layer}.{attention}"]
    head_count = min(heads[name] for name in names)
    if head is not None and not 0 <= head < head_count:
        raise UserError(f"there is no head {head}", fix=f"Choose one of 0 to {head_count - 1}.")
    return names


def rollout(maps: Maps) -> Tensor:
    """Return the share of each source position in each target position [T, S], through all layers.

    Attention rollout (Abnar and Zuidema 2020, arXiv 2005.00928, section 3): the output of a layer is half its input and
    half the values it attends to, averaged over heads. A decoder layer does so twice: with the target positions before,
    then with the source. Rows sum to 1, except for positions of the first layer that no source has reached yet.

    Args:
        maps: the attention maps of one sentence, [H, T, S] each.
    """
    mean = {name: weights.float().mean(0) for name, weights in maps.items()}
    cross = [weights for name, weights in mean.items() if name.endswith(".cross")]
    length, sources = cross[0].shape
    encoder = torch.eye(sources)
    for name, weights in mean.items():
        if name.startswith("encoder."):
            encoder = 0.5 * encoder + 0.5 * weights @ encoder
    # The embeddings of the target contain nothing of the source.
    flow = torch.zeros(length, sources)
    for layer, weights in enumerate(cross):
        before = mean.get(f"decoder.{layer}.self")
        if before is not None:
            flow = 0.5 * flow + 0.5 * before @ flow
        flow = 0.5 * flow + 0.5 * weights @ encoder
    return flow / flow.sum(-1, keepdim=True)


class AlignmentLayer(nn.Module):
    """Attention that was trained on word links alone.

    A translator's own attention weights what the next word is predicted from, which need not be the word that it
    translates. This layer reads the model's states and the target piece itself, which is known by then (Garg et al.
    2019, arXiv 1909.02074: full target context), and the model does not change (Zenkel et al. 2019, arXiv 1901.11359,
    whose layer learns without links; here it places fewer tags correctly than the model's own attention).
    """

    def __init__(self, features: int, states: int) -> None:
        """`features` D: the width of the decoder's last states; `states` M: the width of the memory."""
        super().__init__()
        self.feature_norm, self.state_norm = nn.LayerNorm(features), nn.LayerNorm(states)
        self.query, self.key = nn.Linear(2 * features, WIDTH), nn.Linear(states, WIDTH)

    def forward(self, features: Tensor, pieces: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Return softmax(q k^T / sqrt(d)) [B, T, S].

        Args:
            features: [B, T, D], the decoder's states from which each target piece was predicted.
            pieces: [B, T, D], the row of the output matrix of each target piece.
            states: [B, S, M], the states of the memory.
            mask: [B, S], True where a source position may be linked.
        """
        query = self.query(torch.cat([self.feature_norm(features), pieces], -1))
        scores = query @ self.key(self.state_norm(states)).transpose(1, 2) / math.sqrt(WIDTH)
        return scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
