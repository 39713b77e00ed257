"""The inputs and outputs of the feed-forward sublayers of a model, and copies in which other modules replace them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor, nn

from translucid.attention.points import recording
from translucid.circuits.dictionary import INPUT, OUTPUT
from translucid.decoding.maps import forced_features
from translucid.models.copying import AnyModel, shared_copy
from translucid.models.protocol import SequenceModel

if TYPE_CHECKING:
    from translucid.models.model_shape import ModelShape


class States(NamedTuple):
    """What a model computes for a batch of n tokens that it reads, without padding: of the source or of the target."""

    inputs: dict[str, Tensor]
    """The inputs of the sublayers [n, D] by their names."""
    outputs: dict[str, Tensor]
    """Their outputs [n, D]."""
    features: Tensor
    """[n, D], the features of the model from which the target tokens are predicted."""


def read_states(model: SequenceModel, sublayers: Iterable[str], source: Tensor, target: Tensor) -> States:
    """Compute the states of sublayers by teacher forcing.

    Args:
        model: the model, in evaluation mode.
        sublayers: the names of the sublayers, such as `decoder.1`.
        source: ids [B, S], end tokens included.
        target: ids [B, T], end tokens included.
    """
    names = [*sublayers]
    tokens = {"encoder": model.source_mask(source), "decoder": target != model.pad}
    with recording(model, [f"{name}{point}" for name in names for point in (INPUT, OUTPUT)]) as record:
        features = forced_features(model, model.encode(source), target)
    inputs, outputs = {}, {}
    for name in names:
        is_token = tokens[name.partition(".")[0]]
        inputs[name], outputs[name] = record[name + INPUT][is_token], record[name + OUTPUT][is_token]
    return States(inputs, outputs, features[tokens["decoder"]])


def with_sublayers(model: AnyModel, sublayers: Mapping[str, nn.Module]) -> AnyModel:
    """Return a copy of a model, which shares its weights, in which modules [.., D] -> [.., D] replace sublayers."""
    replaced = shared_copy(model)
    for name, module in sublayers.items():
        replaced.set_submodule(name + OUTPUT, module)
    return replaced


@dataclass(frozen=True, eq=False)
class Replacement:
    """Modules in place of sublayers, an `inspection.intervention.Intervention`."""

    sublayers: Mapping[str, nn.Module]
    """The modules [.., D] -> [.., D] by the names of sublayers."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The names of the sublayers; no command replaces them."""
        return tuple(self.sublayers)

    def check(self, shape: ModelShape) -> None:
        """Check nothing: the names come from the model."""

    def applied(self, model: SequenceModel) -> SequenceModel:
        """Return a copy of a model with the modules."""
        return with_sublayers(model, self.sublayers)
