"""Attribution graphs: from which tokens, through which features, a word of a translation comes.

The logit of a word is the sum of direct effects of tokens, positions, active features and errors of the source and of
the target prefix, and of a constant (`linear.py`). A feature's value before TopK is such a sum, too: an edge into it is
a direct effect on it. The influence of a node is the sum over all paths to the logit of the products of |edges|, each
divided by the sum over all edges into its end (Ameisen et al. 2025, "Circuit Tracing", appendix on pruning). The graph
keeps the smallest set of nodes with 80 % of the influence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from translucid.circuits.faithfulness import TOP, Faithfulness, Question, faithfulness
from translucid.circuits.linear import HeldModel, Target, refuse_others
from translucid.circuits.nodes import Node, Parts
from translucid.circuits.transcoder import Transcoder
from translucid.data.tokenizing.pieces import SPACE
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.inspection.explain import Case
from translucid.inspection.patching import choice_between
from translucid.inspection.words import word_position

if TYPE_CHECKING:
    from translucid.api.translator import Translator

SHARE = 0.8
"""The share of the influence that is kept."""
MOST_NODES = 40
"""The maximum number of nodes."""
EXPANDED = 256
"""The maximum number of features whose incoming edges are computed, those with the greatest influence first."""
REST = 0.05
"""The share of the influence below which other features are only ends of paths, not on them."""
BATCH = 64
"""The number of features after which influence is computed again."""


@dataclass(frozen=True)
class Influence:
    """Effects on the logit and on features, and the influence of all nodes."""

    direct: Tensor
    """[nodes], direct effects on the logit."""
    expanded: list[int]
    """The features whose incoming edges are known."""
    edges: Tensor
    """[expanded, nodes], direct effects on these features before TopK."""
    influence: Tensor
    """[nodes]."""


def logit_target(question: Question) -> tuple[Target, float]:
    """Return a logit minus the mean logit, or minus that of another piece, as a target, and the output layer's bias."""
    weight, bias = question.model.output.weight.detach(), question.model.output.bias.detach()
    piece, other = question.pieces[0], question.other
    subtracted = (weight.mean(0), bias.mean()) if other is None else (weight[other], bias[other])
    place = (question.prefix.size(1) - 1,)
    return Target("decoder.output", place, weight[piece] - subtracted[0]), (bias[piece] - subtracted[1]).item()


def influence(parts: Parts, logit: Target, expanded: int = EXPANDED, rest: float = REST) -> tuple[Influence, float]:
    """Return the effects on a logit, the influence of all nodes, and the constant part of the logit.

    Args:
        parts: the parts of the sentence.
        logit: that of `logit_target`.
        expanded: the maximum number of features whose incoming edges are computed.
        rest: the share of the influence that other features may have.
    """
    direct, biases = parts.effects(parts.held.gradients([logit]))
    constant = (biases + parts.held.constants([logit])).item()
    result = Influence(direct[0], [], direct[:0], _normalized(direct)[0])
    features = torch.tensor(parts.features, dtype=torch.long)
    while len(result.expanded) < min(expanded, len(features)):
        strength = result.influence.index_select(0, features.to(direct.device))
        done = torch.isin(features, torch.tensor(result.expanded, dtype=torch.long))
        strength = strength.cpu().masked_fill(done, -1.0)
        if result.expanded and strength.clamp(min=0).sum() < rest * result.influence.sum():
            break
        count = min(BATCH, expanded - len(result.expanded), len(features) - len(result.expanded))
        chosen = features[strength.topk(count).indices].tolist()
        result = with_edges(parts, result, chosen)
    return result, constant


def with_edges(parts: Parts, known: Influence, features: Sequence[int]) -> Influence:
    """Compute the edges into further features, and the influence again."""
    rows, _ = parts.effects(parts.held.gradients([parts.target(index) for index in features]))
    expanded, edges = [*known.expanded, *features], torch.cat([known.edges, rows])
    shares = _normalized(edges)
    step = _normalized(known.direct[None])[0]
    total = step.clone()
    for _ in parts.held.sublayers:  # no path is longer
        step = step[expanded] @ shares
        total = total + step
    return Influence(known.direct, expanded, edges, total)


def _normalized(effects: Tensor) -> Tensor:
    """Divide the magnitudes of effects [targets, nodes] by the sum of those on each target."""
    magnitudes = effects.abs()
    return magnitudes / magnitudes.sum(-1, keepdim=True).clamp(min=1e-30)


def total_effects(parts: Parts, logit: Target) -> Tensor:
    """Return the effect of each node on a logit through all paths of features [nodes], the active features held."""
    effects, _ = parts.effects(parts.held.gradients([logit], parts.transcoders))
    return effects[0]


def strongest(values: Tensor, share: float = SHARE, most: int = MOST_NODES) -> list[int]:
    """Return the fewest nodes whose influences [nodes] have a share of the sum, at most `most`, the strongest first."""
    order = values.argsort(descending=True, stable=True)
    reached = (values[order].cumsum(0) < share * values.sum()).sum().item() + 1
    return order[: min(int(reached), most)].tolist()


class Edge(NamedTuple):
    """A direct effect."""

    source: int
    """The index of a node of the graph."""
    target: int | None
    """The index of a feature of the graph; None is the logit."""
    effect: float
    """On the logit, or on the feature before TopK."""
    share: float
    """The magnitude of the effect, as a share of the sum of those of all nodes on this target."""


class GraphNode(NamedTuple):
    """A node of a graph."""

    part: Node
    token: str
    """The piece at its position."""
    effect: float
    """The direct effect on the logit."""
    total: float
    """The effect on the logit through all paths, with the active features held."""
    influence: float
    """Its share of the influence of all nodes."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        part = self.part
        record: dict[str, Any] = {"name": part.name, "kind": part.kind, "layer": part.place, "position": part.position}
        record |= {"token": self.token, "effect": round(self.effect, 6), "total": round(self.total, 6)}
        record["influence"] = round(self.influence, 6)
        if part.kind == "feature":
            record["activation"] = round(part.activation, 6)
        return record


@dataclass(frozen=True)
class AttributionGraph:
    """From what a word of a translation comes."""

    text: str
    translation: str
    word: str
    instead_of: str | None
    """The other word; None if the logit is that of the word minus the mean logit."""
    source: list[str]
    """The source pieces."""
    prefix: list[str]
    """The pieces that the decoder reads, the start token first."""
    piece: str
    """The piece whose logit it is."""
    probability: float
    """That of the piece, from 0 to 1."""
    logit: float
    bias: float
    """The part of the logit that comes from biases."""
    remainder: float
    """The part of the logit that comes from nodes that are not in the graph."""
    share: float
    """The share of the influence that the graph keeps."""
    by_kind: Mapping[str, float]
    """The direct effects of all features, errors, tokens and positions, each summed."""
    count: int
    """The number of all nodes."""
    nodes: list[GraphNode]
    """The most influential ones, from the source to the output."""
    edges: list[Edge]
    """All edges between them, those on the logit first."""
    ties: list[tuple[str, int]]
    """Sublayers and positions at which the last active feature and the first inactive one are nearly tied."""
    faithfulness: Faithfulness | None
    """What the model writes without the strongest features; None without features."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as files and the server contain them."""
        edges = []
        for edge in self.edges:
            target = "logit" if edge.target is None else edge.target
            effect, share = round(edge.effect, 6), round(edge.share, 6)
            edges.append({"source": edge.source, "target": target, "effect": effect, "share": share})
        names = ("text", "translation", "word", "instead_of", "source", "prefix", "piece", "count")
        figures = ("probability", "logit", "bias", "remainder", "share")
        return {
            **{name: getattr(self, name) for name in names},
            **{name: round(getattr(self, name), 6) for name in figures},
            "by_kind": {kind: round(effect, 6) for kind, effect in self.by_kind.items()},
            "nodes": [node.to_json() for node in self.nodes],
            "edges": edges,
            "ties": [{"sublayer": sublayer, "position": position} for sublayer, position in self.ties],
            "faithfulness": self.faithfulness.to_json() if self.faithfulness else None,
        }


class WordQuestion(NamedTuple):
    """A question in words."""

    question: Question
    case: Case
    word: str
    instead_of: str | None
    translation: str
    source: list[str]
    prefix: list[str]
    piece: str


def ask(
    translator: Translator, text: str, word: int | str, instead_of: str | None = None, target: str | None = None
) -> WordQuestion:
    """Ask for a word of a translation.

    Args:
        translator: the translator.
        text: one sentence.
        word: a word of the translation, or its position from 0. Of several pieces, it is the first, if that is more
            than a space.
        instead_of: another word in its place. Of several pieces, it is the first that differs.
        target: the translation; the model's own by default.

    Raises:
        UserError: the translation lacks the word, or a text has no words or is too long.
    """
    if target is None:
        target = translator.translate(text, split=False).text
    translator.inspector.refuse_too_long(translator.pipeline.pairs([(text, target)]))
    model, tokenizer = translator.model, translator.tokenizer
    case = Case(model, translator.pipeline, text, target)
    position = word_position(case.target_words, word)
    start, end = case.target_spans[position]
    pieces, ids, other = [SPELLINGS.start, *case.inspected.target], case.target_ids, None
    if pieces[start + 1] == SPACE and end > start + 1 and instead_of is None:
        start += 1
    if instead_of is not None:
        other_ids = tokenizer.encode_target([instead_of])[0][len(tokenizer.target_opening) :]
        if not other_ids or SPECIAL.unknown in other_ids:
            raise UserError(f"the model can't write {instead_of!r}", fix="Choose another word.")
        words = case.target_words[position], instead_of
        choice = choice_between(words, ids, [*ids[:start], *other_ids])
        start, other = len(choice.prefix), choice.pieces[1]
        end = max(end, start + 1)
    source = torch.tensor([case.source_ids], device=case.device)
    prefix = torch.tensor([[model.bos, *ids[:start]]], device=case.device)
    question = Question(model, source, prefix, tuple(ids[start:end]), other)
    names = target, case.inspected.source, pieces[: start + 1], pieces[start + 1]
    return WordQuestion(question, case, case.target_words[position], instead_of, *names)


def attribution_graph(
    translator: Translator,
    transcoders: Mapping[str, Transcoder],
    text: str,
    word: int | str,
    *,
    instead_of: str | None = None,
    target: str | None = None,
    share: float = SHARE,
    most: int = MOST_NODES,
) -> AttributionGraph:
    """Return the attribution graph of a word of a translation.

    Args:
        translator: the translator, whose model is a Transformer.
        transcoders: those of its dictionary, by sublayer.
        text: one sentence.
        word: as for `ask`, as are `instead_of` and `target`.
        instead_of: another word.
        target: the translation.
        share: the share of the influence that is kept, unless it needs more nodes than `most`.
        most: the maximum number of nodes.

    Raises:
        UserError: as for `ask`, or the model is no Transformer.
    """
    refuse_others(translator.model)
    asked = ask(translator, text, word, instead_of, target)
    question = asked.question
    parts = Parts(HeldModel(question.model, question.source, question.prefix), transcoders)
    logit, output_bias = logit_target(question)
    known, constant = influence(parts, logit)
    chosen = strongest(known.influence, share, most)
    unknown = [index for index in chosen if parts.nodes[index].kind == "feature" and index not in known.expanded]
    if unknown:
        known = with_edges(parts, known, unknown)
    kept_share = (known.influence[chosen].sum() / known.influence.sum()).item()
    totals = total_effects(parts, logit)
    influences, chosen = known.influence / known.influence.sum(), sorted(chosen)
    kept = known.direct[chosen].sum().item()
    bias, value = constant + output_bias, known.direct.sum().item() + constant + output_bias
    logits = question.model.output(parts.held.states["decoder.output"][0, -1])
    nodes = []
    for index in chosen:
        node = parts.nodes[index]
        tokens = asked.source if node.side == "encoder" else asked.prefix
        effects = (values[index].item() for values in (known.direct, totals, influences))
        nodes.append(GraphNode(node, tokens[node.position], *effects))
    by_kind: dict[str, float] = {}
    for node, effect in zip(parts.nodes, known.direct.tolist(), strict=True):
        by_kind[node.kind] = by_kind.get(node.kind, 0.0) + effect
    return AttributionGraph(
        text,
        asked.translation,
        asked.word,
        instead_of,
        asked.source,
        asked.prefix,
        asked.piece,
        logits.softmax(-1)[question.pieces[0]].item(),
        value,
        bias,
        value - bias - kept,
        kept_share,
        by_kind,
        len(parts),
        nodes,
        _edges(known, chosen),
        parts.ties,
        _faithfulness(question, parts, logit, output_bias, totals, chosen),
    )


def _edges(known: Influence, chosen: Sequence[int]) -> list[Edge]:
    """Return the edges between chosen nodes."""
    edges = []
    rows: list[tuple[int | None, Tensor]] = [(None, known.direct)]
    for number, index in enumerate(chosen):
        if index in known.expanded:
            rows.append((number, known.edges[known.expanded.index(index)]))
    for target, effects in rows:
        shares = _normalized(effects[None])[0]
        for source, index in enumerate(chosen):
            effect = effects[index].item()
            if effect:
                edges.append(Edge(source, target, effect, shares[index].item()))
    return edges


def _faithfulness(
    question: Question, parts: Parts, logit: Target, output_bias: float, totals: Tensor, chosen: Sequence[int]
) -> Faithfulness | None:
    """Ablate the features of the graph that add most to the logit."""
    features = [index for index in chosen if parts.nodes[index].kind == "feature"]
    top = sorted(features, key=lambda index: -totals[index].item())[:TOP]
    if not top:
        return None
    values = parts.held.values([logit.point], parts.without(top), through=parts.transcoders)
    predicted = (values[logit.point][(0, *logit.place)] @ logit.vector).item() + output_bias
    return faithfulness(question, parts.transcoders, parts.nodes, [parts.nodes[index] for index in top], predicted)
