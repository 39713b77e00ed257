"""One attention head term by term: the queries, keys and values that a model had, and what it made of them.

The terms are caught on their way by hooks on a copy of the modules that has the same weights, so that nothing is kept
on the model, and who else uses it meanwhile is not seen. The copy takes the exact path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from translucid.attention.attend import scaled_dot_product
from translucid.attention.masks import causal_mask
from translucid.attention.multi_head import MultiHeadAttention
from translucid.attention.scores import Concat
from translucid.decoding.maps import forced_features, forced_pass
from translucid.ground.errors import UserError
from translucid.ground.special import SPELLED
from translucid.models.attention_only import BareAttention
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import RecurrentModel
from translucid.models.recurrent.plain import PlainDecoder
from translucid.models.transformer import BlockStacks


@dataclass(frozen=True)
class Equation:
    """context = weights value, weights = softmax(scores), scores = score(query, key): one head, one sentence.

    Of a Transformer the scores are Q K^T / sqrt(d), so that this is equation 1 of arXiv 1706.03762.
    """

    name: str
    """Of the attention, such as `decoder.1.cross`."""
    head: int
    looks: list[str]
    """What is being written (or, in an encoder, read) at each query: n_q pieces of words."""
    seen: list[str]
    """What each key is of: n_k pieces of words."""
    query: Tensor
    """[n_q, d_k]"""
    key: Tensor
    """[n_k, d_k], what the score compares a query with."""
    value: Tensor
    """[n_k, d_v]"""
    mask: Tensor
    """[n_q, n_k] boolean, True = may look."""
    scores: Tensor
    """[n_q, n_k], before the mask."""
    weights: Tensor
    """[n_q, n_k], the model's own; each row sums to 1, less with Luong's local attention."""
    context: Tensor
    """[n_q, d_v], weights times values."""

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the equation with its shapes, and the scores and weights as a table."""
        sizes = ", ".join(
            f"{name} [{', '.join(map(str, tensor.shape))}]"
            for name, tensor in (("query", self.query), ("key", self.key), ("value", self.value))
        )
        head = "".join(f"<th>{escape(piece)}</th>" for piece in self.seen)
        rows = []
        for piece, scores, weights, allowed in zip(
            self.looks, self.scores.tolist(), self.weights.tolist(), self.mask.tolist(), strict=True
        ):
            cells = "".join(
                f"<td style='background:rgba(37,99,235,{weight:.3f})' title='score {score:.3f}'>"
                f"{f'{weight:.2f}' if may else '·'}</td>"
                for score, weight, may in zip(scores, weights, allowed, strict=True)
            )
            rows.append(f"<tr><th style='text-align:right'>{escape(piece)}</th>{cells}</tr>")
        told = f"<code>{escape(self.name)}</code>, head {self.head}: context = softmax(scores) value; {sizes}"
        return f"<p>{told}</p><table><tr><td></td>{head}</tr>{''.join(rows)}</table>"


@torch.inference_mode()
def equation(
    model: SequenceModel,
    source: Sequence[int],
    target: Sequence[int],
    name: str,
    head: int = 0,
    device: torch.device | str = "cpu",
    pieces: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Equation:
    """Let a model write a given target, and return the terms of one head of one attention.

    Args:
        model: in evaluation mode.
        source: ids, end token included.
        target: ids, end token included.
        name: of the attention, such as `decoder.1.cross`.
        head: from 0.
        device: where the model is.
        pieces: names of the tokens of source and target; the ids if not given.

    Raises:
        UserError: the model has no such attention or no such head.
    """
    double = deepcopy(model, {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())})
    ids = [torch.tensor([list(side)], device=device) for side in (source, target)]
    maps = forced_pass(double, ids[0], ids[1]).maps
    if name not in maps:
        has = f"It has {', '.join(maps)}." if maps else "It has none at all."
        raise UserError(f"this model has no attention {name!r}", fix=has)
    if not 0 <= head < maps[name].size(1):
        raise UserError(f"there is no head {head}", fix=f"Choose one of 0 to {maps[name].size(1) - 1}.")
    query, key, value, score = _terms(double, ids[0], ids[1], name, head)
    weights = maps[name][0, head]
    read, written = pieces or (list(map(str, source)), list(map(str, target)))
    fed = [SPELLED.start, *written[:-1]]
    own = name.startswith("decoder.") and name.endswith(".self")
    mask = causal_mask(len(query), query.device) if own else torch.ones_like(weights, dtype=torch.bool)
    if isinstance(double, RecurrentModel) and (window := getattr(double.decoder, "window", None)):
        mask, _ = window(query, mask[:1])
    return Equation(
        name,
        head,
        list(read if name.startswith("encoder.") else written),
        list(fed if own else read),
        *(term.cpu() for term in (query, key, value, mask, score(query, key), weights, weights @ value)),
    )


Terms = tuple[Tensor, Tensor, Tensor, Callable[[Tensor, Tensor], Tensor]]
"""Query [n_q, d_k], key [n_k, d_k], value [n_k, d_v], and the score."""


def _terms(model: SequenceModel, source: Tensor, target: Tensor, name: str, head: int) -> Terms:
    """Return the terms of one head, caught while the model, a copy, writes the target."""
    side, layer, kind = name.split(".")
    if isinstance(model, RecurrentModel):
        assert not isinstance(model.decoder, PlainDecoder)
        score = model.decoder.score
        caught = _given(score.query if isinstance(score, Concat) else score, model, source, target)
        state = model.start(model.encode(source))
        query = torch.cat([given[0] for given in caught], 1)
        return query[0], state.keys[0], state.memory[0], score
    if isinstance(model, BlockStacks):
        attention = getattr(model, side)[int(layer)].get_submodule(f"{kind}_attention")
        assert isinstance(attention, MultiHeadAttention)
        ((x,),) = _given(attention.query, model, source, target)
        ((memory,),) = _given(attention.key_value, model, source, target)
        query = attention.query(x).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
        key, value = attention.project(memory)
        return query[0, head], key[0, head], value[0, head], scaled_dot_product
    bare = model.get_submodule(f"{'encoder' if side == 'encoder' else f'decoder_{kind}'}.{layer}")
    assert isinstance(bare, BareAttention)
    ((query, key),) = _given(bare.score, model, source, target)
    return query[0], key[0], key[0], bare.score


def _given(module: nn.Module, model: SequenceModel, source: Tensor, target: Tensor) -> list[tuple[Any, ...]]:
    """Return what a module of a model is given, call by call, while the model writes the target."""
    calls: list[tuple[Any, ...]] = []
    hook = module.register_forward_pre_hook(partial(_note, calls))
    try:
        forced_features(model, model.encode(source, {}), target, {})
    finally:
        hook.remove()
    return calls


def _note(calls: list[tuple[Any, ...]], _: nn.Module, given: tuple[Any, ...]) -> None:
    calls.append(given)
