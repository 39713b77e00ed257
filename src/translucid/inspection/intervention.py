"""Interventions: changes of what a model computes, for all of its inputs, such as heads that are off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from translucid.models.kinds import extension_intervention

if TYPE_CHECKING:
    from translucid.models.model_shape import ModelShape
    from translucid.models.protocol import SequenceModel


class Intervention(Protocol):
    """A change of what a model computes."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What it changes, in any order of its options: equal if the output of a command is equal."""

    def check(self, shape: ModelShape) -> None:
        """Check that a model has what it changes.

        Raises:
            UserError: it has not.
        """

    def applied(self, model: SequenceModel) -> SequenceModel:
        """Return a copy of a model with the change; it shares the weights and can be used in several threads."""


def interventions_of(run: Path, options: Mapping[str, Sequence[str] | None]) -> list[Intervention]:
    """Return the interventions that a command's options ask for.

    Args:
        run: the run folder.
        options: the values of `ablate`, which are names of heads, and of the options of extensions
            (`models.kinds.Extension.interventions`).

    Raises:
        UserError: a value is invalid, or the run lacks what an extension needs.
    """
    from translucid.inspection.ablation import Ablation

    requested: list[Intervention] = []
    for name, values in options.items():
        if values and name == "ablate":
            requested.append(Ablation(tuple(values)))
        elif values:
            requested.append(extension_intervention(name)(run, tuple(values)))
    return requested
