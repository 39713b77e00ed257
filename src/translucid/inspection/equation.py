"""One attention head term by term: queries, keys, values, scores, weights and context.

Hooks record the terms on a copy of the modules that shares the weights, so that nothing is stored on the model, and
other threads that use the model are not recorded. The copy takes the exact path.
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
from translucid.attention.points import recording
from translucid.attention.scores import Concat
from translucid.decoding.maps import forced_features, forced_pass
from translucid.ground.errors import UserError
from translucid.ground.special import SPELLINGS
from translucid.models.attention_only import BareAttention
from translucid.models.protocol import SequenceModel
from translucid.models.recurrent import PlainDecoder, RecurrentModel
from translucid.models.transformer import BlockStacks

CELL = 14
"""The height of a cell of a heat map in pixels, and its width if the columns are pieces of words."""
MAP_WIDTH = 160
"""The width in pixels of a heat map whose columns are dimensions."""


@dataclass(frozen=True, repr=False)
class Equation:
    """context = weights value, weights = softmax(scores), scores = score(query, key): one head, one sentence.

    The scores of a Transformer are Q K^T / sqrt(d), so that this is equation 1 of arXiv 1706.03762.
    """

    name: str
    """The name of the attention, such as `decoder.1.cross`."""
    head: int
    query_pieces: list[str]
    """The piece that is predicted (or, in an encoder, read) at each query: n_q pieces of words."""
    key_pieces: list[str]
    """The piece to which each key belongs: n_k pieces of words."""
    query: Tensor
    """[n_q, d_k]"""
    key: Tensor
    """[n_k, d_k], with which the score compares a query."""
    value: Tensor
    """[n_k, d_v]"""
    mask: Tensor
    """[n_q, n_k] boolean, True = may attend."""
    scores: Tensor
    """[n_q, n_k], before the mask."""
    weights: Tensor
    """[n_q, n_k], the model's own weights; each row sums to 1, or to less with Luong's local attention."""
    context: Tensor
    """[n_q, d_v], weights times values."""

    def __repr__(self) -> str:
        """Return the name and the shapes; the terms themselves have hundreds of numbers."""
        shapes = ", ".join(f"{name} {[*tensor.shape]}" for name, tensor in self._tensors().items())
        return f"Equation({self.name!r}, head {self.head}: {shapes})"

    def _tensors(self) -> dict[str, Tensor]:
        names = "query", "key", "value", "scores", "weights", "context"
        return {name: getattr(self, name) for name in names}

    def _repr_html_(self) -> str:
        """Show itself in a notebook: each term as a small heat map, in which a cell's title is its number."""
        html = f"<p><code>{escape(self.name)}</code>, head {self.head}: context = softmax(scores) value</p>"
        html += "<div style='display:flex;flex-wrap:wrap;gap:1em;align-items:start'>"
        for name, tensor in self._tensors().items():
            rows = self.key_pieces if name in ("key", "value") else self.query_pieces
            columns = self.key_pieces if name in ("scores", "weights") else None
            html += _heat_map(f"{name} {[*tensor.shape]}", tensor, rows, columns)
        return html + "</div>"


def _heat_map(title: str, values: Tensor, rows: Sequence[str], columns: Sequence[str] | None) -> str:
    """Return a table of colored cells [rows, columns]: positive numbers are blue, negative ones orange."""
    scale = max(values.abs().max().item(), 1e-9)
    width = CELL if columns else max(1, MAP_WIDTH // values.size(1))
    html = "<table style='border-collapse:collapse;font-size:11px'>"
    html += f"<caption style='text-align:left'>{escape(title)}</caption>"
    if columns:
        html += "<tr><td></td>"
        for piece in columns:
            style = "writing-mode:vertical-rl;font-weight:normal"
            html += f"<th style='{style}'>{escape(piece)}</th>"
        html += "</tr>"
    for piece, numbers in zip(rows, values.tolist(), strict=True):
        html += f"<tr><th style='text-align:right;font-weight:normal;padding-right:4px'>{escape(piece)}</th>"
        for number in numbers:
            color = "37,99,235" if number >= 0 else "234,88,12"
            style = f"background:rgba({color},{abs(number) / scale:.2f});width:{width}px;height:{CELL}px;padding:0"
            html += f"<td style='{style}' title='{number:.3f}'></td>"
        html += "</tr>"
    return html + "</table>"


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
    """Decode a given target (forced decoding), and return the terms of one head of one attention.

    Args:
        model: the model, in evaluation mode.
        source: ids, end token included.
        target: ids, end token included.
        name: the name of the attention, such as `decoder.1.cross`.
        head: from 0.
        device: the device of the model.
        pieces: names of the tokens of source and target; the ids if not given.

    Raises:
        UserError: the model has no such attention or no such head.
    """
    # The tensors of the second argument, the weights, are shared instead of copied.
    copy = deepcopy(model, {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())})
    source_ids = torch.tensor([list(source)], device=device)  # [1, S]
    target_ids = torch.tensor([list(target)], device=device)  # [1, T]
    maps = forced_pass(copy, source_ids, target_ids).maps
    if name not in maps:
        fix = f"It has {', '.join(maps)}." if maps else "It has none at all."
        raise UserError(f"this model has no attention {name!r}", fix=fix)
    if not 0 <= head < maps[name].size(1):
        raise UserError(f"there is no head {head}", fix=f"Choose one of 0 to {maps[name].size(1) - 1}.")
    query, key, value, score = _terms(copy, source_ids, target_ids, name, head)
    weights = maps[name][0, head]
    source_pieces, target_pieces = pieces or (list(map(str, source)), list(map(str, target)))
    query_pieces, key_pieces = list(target_pieces), list(source_pieces)
    mask = torch.ones_like(weights, dtype=torch.bool)
    if name.startswith("encoder."):
        query_pieces = list(source_pieces)
    elif name.endswith(".self"):  # a decoder's self-attention is causal, over the tokens that are its input
        key_pieces = [SPELLINGS.start, *target_pieces[:-1]]
        mask = causal_mask(len(query), query.device)
    if isinstance(copy, RecurrentModel) and (window := getattr(copy.decoder, "window", None)):
        mask, _ = window(query, mask[:1])  # Luong's local attention
    terms = query, key, value, mask, score(query, key), weights, weights @ value
    return Equation(name, head, query_pieces, key_pieces, *map(Tensor.cpu, terms))


Terms = tuple[Tensor, Tensor, Tensor, Callable[[Tensor, Tensor], Tensor]]
"""Query [n_q, d_k], key [n_k, d_k], value [n_k, d_v], and the score."""


def _terms(model: SequenceModel, source: Tensor, target: Tensor, name: str, head: int) -> Terms:
    """Return the terms of one head, recorded while the model, a copy, decodes the target."""
    side, layer, kind = name.split(".")
    if isinstance(model, RecurrentModel):
        assert not isinstance(model.decoder, PlainDecoder)
        score = model.decoder.score
        scoring = score.query if isinstance(score, Concat) else score
        state = model.start(model.encode(source))
        steps = [query for query, *_ in _recorded(scoring, model, source, target)]  # one call for each target token
        return torch.cat(steps, 1)[0], state.keys[0], state.memory[0], score
    if isinstance(model, BlockStacks):
        names = [f"{name}.{term}" for term in ("queries", "keys", "values")]
        with recording(model, names) as record:
            forced_features(model, model.encode(source), target)
        query, key, value = (record[point][0, head] for point in names)
        return query, key, value, scaled_dot_product
    stack = "encoder" if side == "encoder" else f"decoder_{kind}"
    bare = model.get_submodule(f"{stack}.{layer}")
    assert isinstance(bare, BareAttention)
    ((query, key),) = _recorded(bare.score, model, source, target)
    return query[0], key[0], key[0], bare.score  # the keys are also the values


def _recorded(module: nn.Module, model: SequenceModel, source: Tensor, target: Tensor) -> list[tuple[Any, ...]]:
    """Return the arguments of each call of a module while the model decodes the target."""
    calls: list[tuple[Any, ...]] = []
    hook = module.register_forward_pre_hook(partial(_record, calls))
    try:
        forced_features(model, model.encode(source), target)
    finally:
        hook.remove()
    return calls


def _record(calls: list[tuple[Any, ...]], _: nn.Module, arguments: tuple[Any, ...]) -> None:
    calls.append(arguments)
