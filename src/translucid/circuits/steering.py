"""Steering: features that are switched off, set to a value or made stronger, wherever they are active.

    FFN'(x) = FFN(x) + W_d (f'(x) - f(x))

The error of the transcoder stays, so that an unchanged feature changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from translucid.circuits.dictionary import OUTPUT, Dictionary
from translucid.circuits.replacement import with_sublayers
from translucid.circuits.transcoder import Transcoder
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.models.model_shape import ModelShape
    from translucid.models.protocol import SequenceModel

LARGEST = 1e6
"""The largest factor or value of a feature."""


class Change(NamedTuple):
    """f' = factor f, or f' = value at every position."""

    factor: float | None = None
    value: float | None = None

    @classmethod
    def parse(cls, text: str) -> Change:
        """Read `3x`, a factor, or `0` or `2.5`, a value at every position; 0 switches the feature off.

        Raises:
            UserError: it is neither.
        """
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(x?)", text, re.ASCII)
        number = float(match[1]) if match else -1
        if match is None or number > LARGEST:
            fix = "Give 0, a value such as 2.5, or a factor as 3x."
            raise UserError(f"{text!r} is no change of a feature", fix=fix)
        return cls(factor=number) if match[2] else cls(value=number)

    def __str__(self) -> str:
        return f"{self.value:g}" if self.factor is None else f"{self.factor:g}x"

    def of(self, f: Tensor) -> Tensor:
        """Return f' [.., n] for the values f [.., n] of features."""
        if self.factor is None:
            assert self.value is not None
            return torch.full_like(f, self.value)
        return self.factor * f


class SteeredFeedForward(nn.Module):
    """FFN'(x), which has no state."""

    def __init__(self, sublayer: nn.Module, transcoder: Transcoder, changes: Mapping[int, Change]) -> None:
        """`changes`: the changes of features by their numbers."""
        super().__init__()
        self.sublayer, self.transcoder, self.changes = sublayer, transcoder, dict(changes)

    def forward(self, x: Tensor) -> Tensor:
        """Map x [.., T, D] to [.., T, D]."""
        numbers = [*self.changes]
        f = self.transcoder.features(x)[..., numbers]  # [.., T, n]
        changed = f.clone()
        for column, change in enumerate(self.changes.values()):
            changed[..., column] = change.of(f[..., column])
        output: Tensor = self.sublayer(x) + (changed - f) @ self.transcoder.decoder_weight[numbers]
        return output


@dataclass(frozen=True, eq=False)
class Steering:
    """Changed features, an `inspection.intervention.Intervention`."""

    dictionary: Dictionary
    changes: Mapping[str, Change]
    """The changes by the names of features, such as `decoder.1.feature.412`."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The changes in order, and the dictionary."""
        return *sorted(f"{name}={change}" for name, change in self.changes.items()), self.dictionary.digest

    def check(self, shape: ModelShape) -> None:
        """Check that the names are those of features.

        Raises:
            UserError: one is not.
        """
        for name in self.changes:
            self.dictionary.parse_feature(name)

    def applied(self, model: SequenceModel) -> SequenceModel:
        """Return a copy of a model that shares its weights, with the changed features."""
        by_sublayer: dict[str, dict[int, Change]] = {}
        for name, change in self.changes.items():
            feature = self.dictionary.parse_feature(name)
            by_sublayer.setdefault(feature.sublayer, {})[feature.number] = change
        steered: dict[str, nn.Module] = {}
        for sublayer, changes in by_sublayer.items():
            original = model.get_submodule(sublayer + OUTPUT)
            weight = next(original.parameters())
            # A copy: `to` changes a module, and others use the dictionary.
            transcoder = deepcopy(self.dictionary.transcoders[sublayer]).to(weight.device, weight.dtype)
            steered[sublayer] = SteeredFeedForward(original, transcoder, changes).eval()
        return with_sublayers(model, steered)


def steering(run: Path, changes: Sequence[str]) -> Steering:
    """Return what `--feature` asks for, by the dictionary of a run.

    Raises:
        UserError: the run has no dictionary, or as for `parse_changes`.
    """
    dictionary = Dictionary.load(run)
    return Steering(dictionary, parse_changes(dictionary, changes))


def parse_changes(dictionary: Dictionary, changes: Sequence[str]) -> dict[str, Change]:
    """Return changes such as `decoder.1.feature.412=0` by the names of features.

    Raises:
        UserError: there is no such feature, or a change is invalid or occurs twice.
    """
    by_name: dict[str, Change] = {}
    for text in changes:
        name, separator, change = text.partition("=")
        if not separator:
            raise UserError(f"{text!r} does not say how the feature changes", fix=f"Give {name}=0 or {name}=3x.")
        name = str(dictionary.parse_feature(name))
        if name in by_name:
            raise UserError(f"{name!r} is changed twice", fix="Leave one out.")
        by_name[name] = Change.parse(change)
    return by_name
