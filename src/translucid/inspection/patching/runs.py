"""Activation patching: states of a run on one sentence put into a run on another.

A model translates CLEAN and OTHER, which differ in a word. In the run on OTHER, the state at a place (a layer and a
word) is replaced by that of the run on CLEAN; then the run continues. How far do the log-odds of two target words a and
b, after the same target prefix y, move from OTHER to CLEAN (Vig et al. 2020, arXiv 2004.12265; Meng et al. 2022, arXiv
2202.05262)?

    L(x) = log p(a | x, y) - log p(b | x, y)
    carried = (L(OTHER, patched) - L(OTHER)) / (L(CLEAN) - L(OTHER))

At 0 the run is like that on OTHER, at 1 like that on CLEAN. Shares need not sum to 1, because several places may carry
the same information.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.attention.points import Handler, handling, points_of, recording
from translucid.ground.errors import UserError
from translucid.models.protocol import SequenceModel

Place: TypeAlias = Sequence[tuple[int, int]]
"""Positions whose states are replaced together, such as those of a word: (in the run on CLEAN, in that on OTHER)."""
ENCODER, CROSS, DECODER = "encoder states", "cross-attention outputs", "decoder states"
"""The kinds of states that are patched."""


class Runs(NamedTuple):
    """Two runs of a model, on CLEAN and on OTHER, with the same target prefix."""

    model: SequenceModel
    """The model, in evaluation mode."""
    clean: Tensor
    """The source [1, S] whose states are put into the run on the other."""
    other: Tensor
    """The other source [1, S']."""
    prefix: Tensor
    """The decoder's input [1, T]: the start token, then the target prefix."""
    pieces: tuple[int, int]
    """The ids of a and b, which may follow the prefix."""

    def log_odds(self, source: Tensor, rows: int = 1) -> Tensor:
        """Return log p(a) - log p(b) after the prefix [rows], on the CPU, for a batch of the same source."""
        memory = self.model.encode(source.expand(rows, *source.shape[1:]))
        features = self.model.features(memory, self.prefix.expand(rows, -1))[:, -1]
        # In float64 on the CPU: not every device has it. The softmax subtracts the same number from both logits.
        logits = self.model.output(features).cpu().double()
        a, b = self.pieces
        return logits[:, a] - logits[:, b]

    @torch.inference_mode()
    def patched(self, points: Sequence[str], places: Sequence[Place]) -> Tensor:
        """Return the log-odds of the run on OTHER with the states of CLEAN at each place [points, places].

        All places of a point are a batch. The states come from a batch of the same shape: in another one, they might
        differ in the last bits.
        """
        between_steps()
        with recording(self.model, points) as states:
            self.log_odds(self.clean, len(places))
        rows = []
        for point in points:
            between_steps()
            with handling(self.model, {point: replacing(states[point], places)}):
                rows.append(self.log_odds(self.other, len(places)))
        return torch.stack(rows)

    @torch.inference_mode()
    def carried(self, points: Sequence[str], places: Sequence[Place]) -> Tensor:
        """Return the share of the difference in log-odds that each place carries [points, places]."""
        between_steps()
        clean = self.log_odds(self.clean, len(places))
        between_steps()
        other = self.log_odds(self.other, len(places))
        return (self.patched(points, places) - other) / (clean - other)


def replacing(states: Tensor, places: Sequence[Place]) -> Handler:
    """Return a handler that replaces the states at place i in row i.

    Args:
        states: [places, T, D], of the run on CLEAN.
        places: a place for each row.
    """
    triples = []
    for row, place in enumerate(places):
        triples += [(row, clean, other) for clean, other in place]
    row, clean, other = torch.tensor(triples, device=states.device).reshape(-1, 3).T

    def handle(x: Tensor, first: int) -> Tensor:
        inside = (first <= other) & (other < first + x.size(-2))
        patched = x.clone()
        patched[row[inside], other[inside] - first] = states[row[inside], clean[inside]]
        return patched

    return handle


def points_by_kind(model: SequenceModel) -> dict[str, list[str]]:
    """Return the points that are patched, by kind of states and from the first layer to the last.

    Raises:
        UserError: the model has no points.
    """
    names = list(points_of(model))
    if not names:
        raise UserError("the model has no named points, at which its states could be replaced", fix="Take another run.")
    encoder = ["encoder.input", *_layers(names, "encoder", "output")]
    if len(encoder) == 1:  # a recurrent encoder
        encoder.append("encoder.output")
    points = {
        ENCODER: [name for name in encoder if name in names],
        CROSS: _layers(names, "decoder", "cross.output"),
        DECODER: _layers(names, "decoder", "output"),
    }
    return {kind: kind_points for kind, kind_points in points.items() if kind_points}


def _layers(names: Sequence[str], side: str, suffix: str) -> list[str]:
    """Return the points of all layers of a side, the first layer first."""
    layers: list[str] = []
    while (name := f"{side}.{len(layers)}.{suffix}") in names:
        layers.append(name)
    return layers


def notes_on(model: SequenceModel) -> list[str]:
    """Return a sentence on each kind of patching that does not apply to the model, or only in part."""
    names, notes = points_of(model), []
    if "decoder.0.cross.weights" not in names:
        notes.append("The model has no cross-attention.")
    elif "decoder.0.cross.output" not in names:
        notes.append("The outputs of cross-attention are the decoder's states.")
    if "encoder.0.output" not in names:
        notes.append("The decoder's first state comes from the encoder's last one, and is patched by embeddings only.")
        notes.append("A decoder state is patched at its position only; the recurrence continues from the original.")
    return notes
