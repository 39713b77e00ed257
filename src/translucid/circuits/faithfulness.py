"""Does a word depend on the features of its graph? They are switched off in the original model.

    FFN'(x) = FFN(x) - sum over ablated i of f_i(x) W_d[i]        at the positions of the ablated features

Errors stay. Everything after that is computed again: attention, and f(x), whose TopK chooses again. The word changes if
greedy search with the same prefix writes another one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from translucid.attention.points import Handler, handling
from translucid.circuits.nodes import Node
from translucid.circuits.transcoder import Transcoder
from translucid.models.protocol import SequenceModel

TOP = 5
"""The number of features that are ablated together."""
DRAWS = 20
"""The number of random choices of as many other features."""


class Question(NamedTuple):
    """A word of a translation, or its first piece that tells it from another word."""

    model: SequenceModel
    source: Tensor
    """Ids [1, S], end token included."""
    prefix: Tensor
    """Ids [1, T], the start token first: what precedes the piece."""
    pieces: tuple[int, ...]
    """The ids of the word from that piece on."""
    other: int | None = None
    """The id of the piece of the other word, if there is one."""

    def logit(self, logits: Tensor) -> Tensor:
        """Return the logit of the piece minus the mean logit, or that of the other word [..], for logits [.., V]."""
        subtracted = logits.mean(-1) if self.other is None else logits[..., self.other]
        return logits[..., self.pieces[0]] - subtracted


class Outcome(NamedTuple):
    """What the model does without some features."""

    changed: bool
    """Whether it writes another word."""
    piece: int
    """The piece that it writes after the prefix."""
    logit: float
    """Of the word, as in the graph."""


@dataclass(frozen=True)
class Faithfulness:
    """What the model writes without the strongest features of a graph, and without others."""

    features: list[str]
    """The ablated features, `decoder.1.feature.412 @ 3`: with their positions."""
    logit: float
    """Without ablation."""
    top: Outcome
    """Without the strongest features of the graph."""
    predicted: float
    """The logit without them if attention, deviations and the choice of active features are held."""
    random: list[Outcome]
    """Without as many other active features of the same positions and sublayers, several draws."""
    strongest: Outcome
    """Without the features with the greatest values at the same positions and sublayers."""
    written: bool
    """Whether the model writes the word with all features: it may not, if the translation is another's."""

    @property
    def random_changed(self) -> float:
        """The share of draws in which the word changes."""
        return sum(outcome.changed for outcome in self.random) / max(len(self.random), 1)

    @property
    def random_logit(self) -> float:
        """The mean logit of the draws."""
        return sum(outcome.logit for outcome in self.random) / max(len(self.random), 1)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "features": self.features,
            "logit": round(self.logit, 4),
            "written": self.written,
            "top": {"changed": self.top.changed, "logit": round(self.top.logit, 4)},
            "random": {"changed": round(self.random_changed, 4), "logit": round(self.random_logit, 4)},
            "strongest": {"changed": self.strongest.changed, "logit": round(self.strongest.logit, 4)},
            "draws": len(self.random),
            "predicted": round(self.predicted, 4),
        }


@torch.inference_mode()
def outcomes(
    question: Question, transcoders: Mapping[str, Transcoder], ablations: Sequence[Sequence[Node]]
) -> tuple[float, list[Outcome]]:
    """Return the logit of the unchanged model, and what it does without each set of features.

    Args:
        question: the word.
        transcoders: the transcoders by sublayer.
        ablations: sets of features with their positions.
    """
    model, rows = question.model, len(ablations) + 1  # the first row is without ablation
    more = torch.tensor([question.pieces[:-1]], dtype=question.prefix.dtype, device=question.prefix.device)
    inputs = torch.cat([question.prefix, more], 1)
    by_sublayer: dict[str, list[tuple[int, int, int]]] = {}
    for row, nodes in enumerate(ablations, 1):
        for node in nodes:
            by_sublayer.setdefault(node.place, []).append((row, node.position, node.number))
    handlers: dict[str, Handler] = {}
    for sublayer, places in by_sublayer.items():
        handlers |= _ablating(sublayer, transcoders[sublayer], torch.tensor(places, device=inputs.device))
    with handling(model, handlers):
        memory = model.encode(question.source.expand(rows, -1))
        features = model.features(memory, inputs.expand(rows, -1))
    # On the CPU: not every device has float64.
    logits = model.output(features[:, -len(question.pieces) :]).cpu().double()  # [rows, pieces, V]
    values, written = question.logit(logits[:, 0]).tolist(), logits.argmax(-1)  # [rows, pieces]
    changed = (written[1:] != written[0]).any(-1).tolist()
    results = []
    for row, is_changed in enumerate(changed, 1):
        results.append(Outcome(is_changed, int(written[row, 0]), values[row]))
    return values[0], results


def _ablating(sublayer: str, transcoder: Transcoder, places: Tensor) -> dict[str, Handler]:
    """Return handlers that subtract what features write; `places` [n, 3] are rows, positions and features."""
    rows, positions, numbers = places.T
    seen: list[Tensor] = []

    def read(x: Tensor, first: int) -> Tensor:
        seen[:] = [x]
        return x

    def write(output: Tensor, first: int) -> Tensor:
        values = transcoder.features(seen[0][rows, positions])  # [n, F]
        values = values.gather(1, numbers[:, None])  # [n, 1]
        written = (values * transcoder.decoder_weight[numbers]).to(output)
        # Several features may be ablated at one place, so their sums are subtracted.
        return output.index_put((rows, positions), -written, accumulate=True)

    return {f"{sublayer}.feed_forward_input": read, f"{sublayer}.feed_forward": write}


def others(nodes: Sequence[Node], chosen: Sequence[Node], draws: int = DRAWS, seed: int = 1) -> list[list[Node]]:
    """Return random sets of active features that have the positions and sublayers of chosen ones, and are not chosen.

    Args:
        nodes: all nodes.
        chosen: features; one without others at its place has no counterpart.
        draws: the number of sets.
        seed: of the random numbers.
    """
    by_place = _by_place(node for node in nodes if node not in set(chosen))
    counts = {place: len(group) for place, group in _by_place(chosen).items()}
    generator, sets = random.Random(seed), []
    for _ in range(draws):
        drawn: list[Node] = []
        for place, count in counts.items():
            candidates = by_place.get(place, [])
            drawn += generator.sample(candidates, min(count, len(candidates)))
        sets.append(drawn)
    return sets


def most_active(nodes: Sequence[Node], chosen: Sequence[Node]) -> list[Node]:
    """Return the features with the greatest values at the positions and in the sublayers of chosen ones, as many."""
    by_place, strongest = _by_place(nodes), []
    for place, group in _by_place(chosen).items():
        strongest += sorted(by_place[place], key=lambda node: -node.activation)[: len(group)]
    return strongest


def _by_place(nodes: Any) -> dict[tuple[str, int], list[Node]]:
    groups: dict[tuple[str, int], list[Node]] = {}
    for node in nodes:
        if node.kind == "feature":
            groups.setdefault((node.place, node.position), []).append(node)
    return groups


def faithfulness(
    question: Question,
    transcoders: Mapping[str, Transcoder],
    nodes: Sequence[Node],
    chosen: Sequence[Node],
    predicted: float,
) -> Faithfulness:
    """Switch off features, and others for comparison.

    Args:
        question: the word.
        transcoders: the transcoders by sublayer.
        nodes: all nodes of the sentence.
        chosen: the strongest features of its graph.
        predicted: the logit without them that the held model predicts.
    """
    ablations = [[], chosen, most_active(nodes, chosen), *others(nodes, chosen)]
    logit, results = outcomes(question, transcoders, ablations)
    names = [f"{node.name} @ {node.position}" for node in chosen]
    written = results[0].piece == question.pieces[0]
    return Faithfulness(names, logit, results[1], predicted, results[3:], results[2], written)
