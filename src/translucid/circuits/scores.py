"""Why does a head look there? The score of a query and a key, split into pairs of parts.

    q_t . k_s / sqrt(d),    q_t = sum_i q_i + q_0,    k_s = sum_j k_j + k_0

With deviations held, the query and the key are sums over the parts of the sentence (`nodes.py`) and of biases, so their
score is the sum over pairs (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from rich.console import Group, RenderableType
from rich.text import Text
from torch import Tensor

from translucid.circuits.linear import HeldModel, Target, refuse_others
from translucid.circuits.nodes import Node, Parts
from translucid.circuits.transcoder import Transcoder
from translucid.data.tokenizing.pieces import without_space
from translucid.ground.console import table_of
from translucid.ground.errors import UserError
from translucid.ground.special import SPELLINGS
from translucid.inspection.ablation import refuse_unknown_heads
from translucid.inspection.explain import Case
from translucid.inspection.words import span_words, word_position, word_spans

if TYPE_CHECKING:
    from translucid.api.translator import Translator

LISTED = 20
"""The number of pairs that are shown."""


class ScorePair(NamedTuple):
    """A pair of parts of a query and of a key."""

    query: str
    """The name of the part, with the piece at its position; `bias` for the biases."""
    key: str
    score: float


@dataclass(frozen=True)
class HeadScore:
    """The score of a query and a key."""

    head: str
    query: str
    """The word whose prediction asks, or that asks."""
    key: str
    score: float
    """q k / sqrt(d)."""
    pairs: list[ScorePair]
    """The pairs with the greatest magnitudes."""
    others: float
    """The sum of all other pairs."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        pairs = [{**pair._asdict(), "score": round(pair.score, 6)} for pair in self.pairs]
        figures = {"score": round(self.score, 6), "others": round(self.others, 6)}
        return {"head": self.head, "query": self.query, "key": self.key, **figures, "pairs": pairs}


def split_score(parts: Parts, attention: str, head: int, query: int, key: int) -> Tensor:
    """Return the score of a query and a key by pairs of parts [nodes + 1, nodes + 1]; the last are the biases.

    Args:
        parts: the parts of the sentence.
        attention: the name of the attention, such as `decoder.1.cross`.
        head: the number of the head.
        query: the position of the query.
        key: the position of the key.
    """
    with torch.no_grad():
        width = parts.held.values([f"{attention}.queries"], parts.held.leaves)[f"{attention}.queries"].size(-1)
    sides = []
    for point, position in ((f"{attention}.queries", query), (f"{attention}.keys", key)):
        units = torch.eye(width, dtype=parts.held.dtype, device=parts.held.source.device)
        targets = [Target(point, (head, position), unit) for unit in units]
        effects, biases = parts.effects(parts.held.gradients(targets))  # [d, nodes]
        constants = (biases + parts.held.constants(targets))[:, None]
        sides.append(torch.cat([effects, constants], 1))
    queries, keys = sides
    return queries.T @ keys / width**0.5


def head_score(
    translator: Translator,
    transcoders: Mapping[str, Transcoder],
    text: str,
    name: str,
    query: str | int,
    key: str | int,
    *,
    target: str | None = None,
) -> HeadScore:
    """Return why a head looks at a word.

    Args:
        translator: the translator, whose model is a Transformer.
        transcoders: those of its dictionary, by sublayer.
        text: one sentence.
        name: the head, such as `decoder.1.cross.head.3`.
        query: the word that is predicted, or in the encoder that asks: the word, or the row of the map of the head,
            from 0 (`Inspected.word_map`). Of several pieces, it is the first.
        key: the word that it may look at, or the column of the map; in the decoder's self-attention, a word of the
            prefix or the start token.
        target: the translation; the model's own by default.

    Raises:
        UserError: there is no such head or word, or the model is no Transformer.
    """
    refuse_others(translator.model)
    refuse_unknown_heads([name], translator.inspector.heads)
    attention, _, head = name.rpartition(".head.")
    if target is None:
        target = translator.translate(text, split=False).text
    case = Case(translator.model, translator.pipeline, text, target)
    inspected = case.inspected
    side, _, kind = attention.split(".")
    key_spans = word_spans(inspected.source, inspected.opening[0], inspected.context)
    query_spans = key_spans if side == "encoder" else inspected.target_spans
    if (side, kind) == ("decoder", "self"):  # the decoder reads the start token first
        key_spans = word_spans([SPELLINGS.start, *inspected.target[:-1]], inspected.opening[1] + 1)
    q = word_position(span_words(query_spans), query)
    k = word_position(span_words(key_spans), key)
    (query_word, query_position, _), (key_word, key_position, _) = query_spans[q], key_spans[k]
    if (side, kind) == ("decoder", "self") and key_position > query_position:
        what = f"{key_word!r} is not before {query_word!r}, so the decoder can't look at it"
        raise UserError(what, fix="Choose an earlier word.")
    length = query_position if side == "decoder" else 0
    device = case.device
    source = torch.tensor([case.source_ids], device=device)
    if (side, kind) != ("decoder", "self") and not translator.model.source_mask(source)[0, key_position]:
        raise UserError(f"the model does not read {key_word!r} of the source", fix="Choose a word.")
    prefix = torch.tensor([[translator.model.bos, *case.target_ids[:length]]], device=device)
    parts = Parts(HeldModel(translator.model, source, prefix), transcoders)
    pairs = split_score(parts, attention, int(head), query_position, key_position)
    names = [_name(node, case) for node in parts.nodes] + ["biases"]
    return HeadScore(
        name,
        query_word,
        key_word,
        pairs.sum().item(),
        *_strongest(pairs, names),
    )


def _strongest(pairs: Tensor, names: Sequence[str]) -> tuple[list[ScorePair], float]:
    flat = pairs.flatten()
    listed = []
    for index in flat.abs().topk(min(LISTED, len(flat))).indices.tolist():
        row, column = divmod(index, len(names))
        listed.append(ScorePair(names[row], names[column], flat[index].item()))
    return listed, flat.sum().item() - sum(pair.score for pair in listed)


def _name(node: Node, case: Case) -> str:
    tokens = case.inspected.source if node.side == "encoder" else [SPELLINGS.start, *case.inspected.target]
    return f"{node.name} @ {without_space(tokens[node.position])}"


def score_view(result: HeadScore) -> RenderableType:
    """Return the score as a table of the strongest pairs."""
    pairs = table_of("part of the query", "part of the key", figures=("score",))
    for pair in result.pairs:
        pairs.add_row(pair.query, pair.key, f"{pair.score:+.3f}")
    pairs.add_row("all others", "", f"{result.others:+.3f}")
    title = Text(f"{result.head}: {result.query} looks at {result.key} with a score of {result.score:+.3f}\n", "bold")
    return Group(title, pairs)
